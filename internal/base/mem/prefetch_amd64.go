package mem

// PrefetchWrite asks for the cache lines of b, to be written, and does not wait for them.
func PrefetchWrite(b []byte) {
	if len(b) > 0 {
		prefetchWrite(&b[0], (len(b)+63)/64)
	}
}

// prefetchWrite does so with one line at least.
//
//go:noescape
func prefetchWrite(first *byte, lines int)

package secure

// windowWords is the length of a replay window in words of 64 datagrams.
const windowWords = 32

// window remembers which counters of a sender have come: of the newest 1984 to 2048. Older
// ones count as replayed, for that is not known any more.
type window struct {
	high uint64 // the highest that has come
	seen [windowWords]uint64
}

// fresh reports whether c has not come yet.
func (w *window) fresh(c uint64) bool {
	if c > w.high {
		return true
	}
	return w.high/64-c/64 < windowWords && w.seen[c/64%windowWords]>>(c%64)&1 == 0
}

// mark notes that c has come, which is fresh.
func (w *window) mark(c uint64) {
	if c > w.high {
		for n := min(c/64-w.high/64, windowWords); n > 0; n-- {
			w.seen[(c/64-n+1)%windowWords] = 0
		}
		w.high = c
	}
	w.seen[c/64%windowWords] |= 1 << (c % 64)
}

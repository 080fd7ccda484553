//go:build !amd64

package mem

// PrefetchWrite is for amd64.
func PrefetchWrite([]byte) {}

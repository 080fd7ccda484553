//go:build !amd64

package mem

// Dirty is for amd64.
func Dirty([]byte) {}

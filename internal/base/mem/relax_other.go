//go:build !amd64

package mem

// Relax is of no use here.
func Relax() {}

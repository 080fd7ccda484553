//go:build !amd64

package mem

// CopyAcross is copy for memory that another core has read last and reads next.
func CopyAcross(dst, src []byte) int { return copy(dst, src) }

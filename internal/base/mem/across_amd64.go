package mem

import "golang.org/x/sys/cpu"

var movesLines = cpu.X86.HasERMS // read-only

// copyLines is copy by REP MOVSB, which writes whole cache lines and so takes them from the other
// core without what they hold. The stores of copy fetch that first: 4 KiB take twice as long
// where cores are far from each other.
func copyLines(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n == 0 || !movesLines {
		return copy(dst, src)
	}
	moveLines(&dst[0], &src[0], n)
	return n
}

// moveLines copies n bytes.
//
//go:noescape
func moveLines(dst, src *byte, n int)

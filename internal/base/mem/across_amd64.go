package mem

import "golang.org/x/sys/cpu"

// acrossLeast is from how many bytes on CopyAcross has another way than copy.
const acrossLeast = 2 << 10

var movesLines = cpu.X86.HasERMS // read-only

// CopyAcross is copy for memory that another core has read last and reads next, of which the
// two ranges do not overlap. REP MOVSB writes whole cache lines, and so takes them from that
// core without what they hold; the stores of copy fetch it first.
func CopyAcross(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n < acrossLeast || !movesLines {
		return copy(dst, src)
	}
	moveAcross(&dst[0], &src[0], n)
	return n
}

// moveAcross copies n bytes, at least one.
//
//go:noescape
func moveAcross(dst, src *byte, n int)

package inet

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2 // read-only

const sumBlock = 128

// wholeBlocks returns the sum of the blocks that b begins with, and how many bytes they are.
func wholeBlocks(b []byte) (Sum, int) {
	if !hasAVX2 {
		return 0, 0
	}
	n := len(b) / sumBlock
	return Sum(sumBlocks(&b[0], n)), n * sumBlock
}

// sumBlocks returns the sum of n blocks as words of 32 bits: of less than 16 GiB it is the
// whole one, so that no carry is to be added.
//
//go:noescape
func sumBlocks(b *byte, n int) uint64

package crc32c

import "golang.org/x/sys/cpu"

// fold takes whole blocks, and at least foldMin bytes: fewer are not worth it.
const (
	block   = 64
	foldMin = 512
)

var hasCRC = cpu.X86.HasSSE42 // read-only

var canFold = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42 // read-only

// foldable returns how many of the first n bytes of a buffer to give to fold.
func foldable(n int) int {
	if n < foldMin || !canFold {
		return 0
	}
	return n &^ (block - 1)
}

// short does for the state of a CRC32C what fold does, for buffers of any length
// up to some hundred bytes: those of small messages, for which hash/crc32 looks
// at too much before it begins. It reads whole words at multiples of 8, as
// the code that wrote them a moment ago did: where a load meets several stores
// that are under way, the processor waits.
//
//go:noescape
func short(state uint32, b []byte) uint32

// fold returns the state of a CRC32C, which is its complement, after b has been
// added. len(b) is a multiple of block, and at least 4 of them.
//
// It keeps 256 bytes that have the same remainder as all of the message so far
// (Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction, Intel 2009): to step on by D bits is to multiply each 64 bits of
// them with x^D modulo the polynomial, which the table folds holds for the
// distances that are needed.
//
//go:noescape
func fold(state uint32, b []byte) uint32

// folds are pairs of factors for the lower and the higher 64 bits of 16 bytes,
// by the distance that they carry them: 256 bytes, then 192, 128 and 64, which
// gather four registers in one, then 48, 32 and 16, which gather that in its
// last 16 bytes. Bits are reflected, as everywhere in CRC32C.
//
// The factors for D bits are x^(D+63) and x^(D-1); the test computes them anew.
var folds = [7][2]uint64{ // read-only
	{0xe9a5d8be00000000, 0x1426a81500000000}, // 256 bytes
	{0x7ccbbbf200000000, 0x31c9460800000000}, // 192 bytes
	{0x6577b24500000000, 0x7417153f00000000}, // 128 bytes
	{0x1c19243b00000000, 0x75bba45b00000000}, // 64 bytes
	{0xa46ef4aa00000000, 0x6051243f00000000}, // 48 bytes
	{0x33ccbbbc00000000, 0xa2158b3400000000}, // 32 bytes
	{0x3743f7bd00000000, 0x3171d43000000000}, // 16 bytes
}

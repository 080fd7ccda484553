// Package crc32c computes the CRC32C (Castagnoli; RFC 3720, appendix B.4) of
// long buffers at the speed at which memory can be read, where the processor
// can multiply polynomials 64 bytes at a time, and as hash/crc32 does elsewhere.
package crc32c

import "hash/crc32"

// castagnoli selects the processor's CRC32C instruction in hash/crc32, where
// there is one. Read-only.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Update returns the CRC32C of what crc is the one of, followed by b. The
// CRC32C of nothing is 0.
func Update(crc uint32, b []byte) uint32 {
	if n := foldable(len(b)); n > 0 {
		crc = ^fold(^crc, b[:n])
		b = b[n:]
	}
	if len(b) < foldMin && hasCRC {
		return ^short(^crc, b)
	}
	return crc32.Update(crc, castagnoli, b)
}

package inet

import (
	"encoding/binary"
	"math/bits"
)

// sumMin is from how many bytes on wholeBlocks is asked: fewer are not worth it.
const sumMin = 512

// Sum is a running Internet checksum (RFC 1071): the ones' complement sum of
// 16-bit words. Ones' complement addition does not care about the order of
// bytes, so words are added eight bytes at a time as they lie in memory, in
// little-endian order, and only the folded result is ever looked at.
// The zero value is the sum of nothing.
type Sum uint64

// Add returns the sum of s and b, which starts at an even offset of what is
// summed: see [Sum.Swap] for odd ones. An odd b is padded with a zero byte.
func (s Sum) Add(b []byte) Sum {
	v, c := uint64(s), uint64(0)
	if len(b) >= sumMin {
		blocks, n := wholeBlocks(b)
		v, c = bits.Add64(v, uint64(blocks), 0)
		v += c
		b = b[n:]
	}
	for len(b) >= 64 { // one carry chain per round: the carry flag does not survive the loop's own arithmetic
		v, c = bits.Add64(v, binary.LittleEndian.Uint64(b), 0)
		v, c = bits.Add64(v, binary.LittleEndian.Uint64(b[8:]), c)
		v, c = bits.Add64(v, binary.LittleEndian.Uint64(b[16:]), c)
		v, c = bits.Add64(v, binary.LittleEndian.Uint64(b[24:]), c)
		v, c = bits.Add64(v, binary.LittleEndian.Uint64(b[32:]), c)
		v, c = bits.Add64(v, binary.LittleEndian.Uint64(b[40:]), c)
		v, c = bits.Add64(v, binary.LittleEndian.Uint64(b[48:]), c)
		v, c = bits.Add64(v, binary.LittleEndian.Uint64(b[56:]), c)
		v, c = bits.Add64(v, 0, c)
		v += c
		b = b[64:]
	}
	for len(b) >= 8 {
		v, c = bits.Add64(v, binary.LittleEndian.Uint64(b), 0)
		v += c // cannot overflow: after a carry v is at most 2^64-2
		b = b[8:]
	}
	if len(b) > 0 {
		v, c = bits.Add64(v, short(b), 0)
		v += c
	}
	return Sum(v)
}

// short returns the 1 to 7 bytes of b as a number.
func short(b []byte) uint64 {
	var v uint64
	if len(b)&4 != 0 {
		v = uint64(binary.LittleEndian.Uint32(b))
		b = b[4:]
	}
	if len(b)&2 != 0 { // at an offset of 0 or 4, both even: adding is as good as shifting
		v += uint64(binary.LittleEndian.Uint16(b))
		b = b[2:]
	}
	if len(b)&1 != 0 {
		v += uint64(b[0])
	}
	return v
}

// AddWord returns the sum of s and a 16-bit field with value v.
func (s Sum) AddWord(v uint16) Sum {
	sum, c := bits.Add64(uint64(s), uint64(bits.ReverseBytes16(v)), 0)
	return Sum(sum + c)
}

// Merge returns the sum of s and t.
func (s Sum) Merge(t Sum) Sum {
	sum, c := bits.Add64(uint64(s), uint64(t), 0)
	return Sum(sum + c)
}

// Swap returns what s is when everything in it lies one byte further on. To
// add a buffer at an odd offset, add the Swap of its own sum.
func (s Sum) Swap() Sum { return Sum(bits.ReverseBytes16(s.fold())) }

// fold returns the 16-bit sum, as it lies in memory read in little-endian
// order. Adding a number to itself with its halves swapped leaves the ones'
// complement sum of the halves in the upper one: the carry out of the lower
// half is the end-around carry.
func (s Sum) fold() uint16 {
	v := uint64(s)
	w := uint32((v + bits.RotateLeft64(v, 32)) >> 32)
	return uint16((w + bits.RotateLeft32(w, 16)) >> 16)
}

// Good reports whether s, taken over data and its checksum, says that the data
// is intact.
func (s Sum) Good() bool { return s.fold() == 0xffff }

// PutChecksum writes the checksum, the complement of s, to the first two bytes of b.
func (s Sum) PutChecksum(b []byte) { binary.LittleEndian.PutUint16(b, ^s.fold()) }

// PutSum writes s itself to the first two bytes of b, where a device is to put the checksum when it has
// added the rest.
func (s Sum) PutSum(b []byte) { binary.LittleEndian.PutUint16(b, s.fold()) }

// Is reports whether the first two bytes of b are what PutSum writes.
func (s Sum) Is(b []byte) bool { return binary.LittleEndian.Uint16(b) == s.fold() }

// PutChecksumUDP is PutChecksum for UDP, where a zero would mean "no checksum"
// and is sent as its equal 0xffff (RFC 768).
func (s Sum) PutChecksumUDP(b []byte) {
	v := ^s.fold()
	if v == 0 {
		v = 0xffff
	}
	binary.LittleEndian.PutUint16(b, v)
}

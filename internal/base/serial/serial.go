// Package serial has sequence numbers that wrap, after RFC 1982 (serial number
// arithmetic, SERIAL_BITS = 32). It makes the comparison a method of a type of
// its own, so that the compiler finds a plain `<` between a sequence number
// and an integer, which would be right for the first four billion packets only.
package serial

// U32 is a 32-bit serial number. The order of two of them has a meaning only
// while they are less than 2^31 apart; a window of at most 2^31-1 packets
// guarantees it.
type U32 uint32

// Add returns s+n. n may be negative, which goes back (RFC 1982, section 3.1,
// forbids that; a window that slides needs it).
func (s U32) Add(n int32) U32 { return s + U32(n) }

// Less reports whether s is before t (RFC 1982, section 3.2).
func (s U32) Less(t U32) bool { return int32(s-t) < 0 }

// In reports whether s is one of the size numbers from start on.
func (s U32) In(start U32, size uint32) bool { return uint32(s-start) < size }

// Max returns the later of s and t.
func (s U32) Max(t U32) U32 {
	if s.Less(t) {
		return t
	}
	return s
}

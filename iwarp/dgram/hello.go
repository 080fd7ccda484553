package dgram

import (
	"encoding/binary"
	"net/netip"
)

// HelloLen is the length in bytes of what follows the header of a Hello or a
// HelloAck. A Hello is padded with zeros up to its Length.
const HelloLen = 4

// Hello is the body of a Hello and of a HelloAck. Two ends learn from it how
// large a datagram may be: a padded Hello that is answered got through.
type Hello struct {
	MaxPayload uint16 // largest UDP payload in bytes that the sender of this body receives
	Length     uint16 // UDP payload in bytes of the Hello: of this one, or of the one answered
}

// Put writes the body to the first HelloLen bytes of b.
func (h *Hello) Put(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(h.MaxPayload)<<16|uint32(h.Length))
}

// Parse reads the body from the start of b, which has HelloLen bytes at least,
// as Header.Parse has checked.
func (h *Hello) Parse(b []byte) {
	w := binary.BigEndian.Uint32(b)
	h.MaxPayload, h.Length = uint16(w>>16), uint16(w)
}

// PathLen is the length in bytes of an address and port in the list that follows the
// body of a Hello or a HelloAck with FlagPaths, behind one byte that counts them: where
// its sender can be reached, on one network after the other.
const PathLen = 18

// PathsLen returns the length in bytes of a list of n.
func PathsLen(n int) int { return 1 + n*PathLen }

// PutPaths writes the list to the first bytes of b. IPv4 addresses are mapped to IPv6.
func PutPaths(b []byte, at []netip.AddrPort) {
	b[0] = byte(len(at))
	for i, a := range at {
		to := b[1+i*PathLen:]
		as16 := a.Addr().As16()
		copy(to, as16[:])
		binary.BigEndian.PutUint16(to[16:], a.Port())
	}
}

// ParsePath reads one address and port of the list from the start of b, which has
// PathLen bytes at least.
func ParsePath(b []byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[:16])).Unmap(), binary.BigEndian.Uint16(b[16:]))
}

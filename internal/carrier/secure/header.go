package secure

import "encoding/binary"

// A datagram is encrypted like this; numbers are big-endian:
//
//	 0             4       5       6      8           16             24
//	| instance, 4 | 3 << 4| flags | 0, 0 | counter   | instance, 8  | ciphertext | tag, 16 |
//
// The version stands where the LLP header has its own, which is 2.
const (
	// HeaderLen is the length in bytes of what is in front of the ciphertext.
	HeaderLen = 24
	// TagLen is the length in bytes of the tag behind it.
	TagLen = 16
	// Overhead is how many bytes a datagram grows by.
	Overhead = HeaderLen + TagLen

	version   = 3 << 4
	flagGroup = 1 // it went to a multicast group
)

// Instance tells one life of a sender from all others: 96 random bits, which stand in its
// datagrams in clear.
type Instance [12]byte

// header is that of a datagram.
type header struct {
	who     uint32 // first four bytes of the instance
	instead uint64 // its other eight
	flags   uint8
	counter uint64
}

func (h *header) put(b []byte) {
	_ = b[HeaderLen-1]
	binary.BigEndian.PutUint64(b, uint64(h.who)<<32|version<<24|uint64(h.flags)<<16)
	binary.BigEndian.PutUint64(b[8:], h.counter)
	binary.BigEndian.PutUint64(b[16:], h.instead)
}

// parse reads the header at the start of b, which has HeaderLen bytes at least. false: it
// is none.
func (h *header) parse(b []byte) bool {
	_ = b[HeaderLen-1]
	w := binary.BigEndian.Uint64(b)
	h.who, h.flags = uint32(w>>32), uint8(w>>16)
	h.counter = binary.BigEndian.Uint64(b[8:])
	h.instead = binary.BigEndian.Uint64(b[16:])
	return w&0xff00ffff == version<<24 && h.flags&^flagGroup == 0
}

package secure

import "encoding/binary"

// A datagram is encrypted like this; numbers are big-endian:
//
//	 0             4       5       6      8           16             24
//	| instance, 4 | 3 << 4| flags | 0, pad| counter   | instance, 8  | ciphertext | tag, 16 |
//
// The version stands where the LLP header has its own, which is 2. The last pad bytes of the
// plaintext are zeros that the receiver cuts off.
const (
	// HeaderLen is the length in bytes of what is in front of the ciphertext.
	HeaderLen = 24
	// TagLen is the length in bytes of the tag behind it.
	TagLen = 16
	// Overhead is how many bytes a datagram grows by.
	Overhead = HeaderLen + TagLen

	version   = 3 << 4
	flagGroup = 1 // it went to a multicast group

	// wide is how many bytes of plaintext AES-GCM is fast with: eight blocks at once. What
	// is left over takes as long for one block as for six of those.
	wide = 128
	// narrow is how many bytes are left over at most where a pad costs more than it saves.
	narrow = 40
	// padded is the longest plaintext that gets a pad: with it, any path takes the datagram.
	padded = 8 * wide
)

// Instance tells one life of a sender from all others: 96 random bits, which stand in its
// datagrams in clear.
type Instance [12]byte

// header is that of a datagram.
type header struct {
	who     uint32 // first four bytes of the instance
	instead uint64 // its other eight
	flags   uint8
	pad     uint8 // below wide
	counter uint64
}

// padOf returns how many zeros follow n bytes of plaintext.
func padOf(n int) int {
	if over := n % wide; n < padded && over > narrow {
		return wide - over
	}
	return 0
}

func (h *header) put(b []byte) {
	_ = b[HeaderLen-1]
	binary.BigEndian.PutUint64(b, uint64(h.who)<<32|version<<24|uint64(h.flags)<<16|uint64(h.pad))
	binary.BigEndian.PutUint64(b[8:], h.counter)
	binary.BigEndian.PutUint64(b[16:], h.instead)
}

// parse reads the header at the start of b, which has HeaderLen bytes at least. false: it
// is none.
func (h *header) parse(b []byte) bool {
	_ = b[HeaderLen-1]
	w := binary.BigEndian.Uint64(b)
	h.who, h.flags, h.pad = uint32(w>>32), uint8(w>>16), uint8(w)
	h.counter = binary.BigEndian.Uint64(b[8:])
	h.instead = binary.BigEndian.Uint64(b[16:])
	return w&0xff00ff00 == version<<24 && h.flags&^flagGroup == 0 && h.pad < wide
}

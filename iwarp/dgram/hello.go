package dgram

import "encoding/binary"

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

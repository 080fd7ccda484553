package inet

import "encoding/binary"

// UDP is a view of a UDP header (RFC 768). Check Valid once; the accessors
// cannot fail afterwards.
type UDP []byte

// Offsets of the fields of a UDP header and its length in bytes.
const (
	udpSrc      = 0
	udpDst      = 2
	udpLength   = 4
	udpChecksum = 6

	UDPLen = 8
)

// Valid reports whether the whole header is in h and its length field counts
// the header at least. Compare Len with the size of the IP payload.
func (h UDP) Valid() bool { return len(h) >= UDPLen && h.Len() >= UDPLen }

// SrcPort returns the port of the sender.
func (h UDP) SrcPort() uint16 { return binary.BigEndian.Uint16(h[udpSrc:]) }

// DstPort returns the port of the receiver.
func (h UDP) DstPort() uint16 { return binary.BigEndian.Uint16(h[udpDst:]) }

// Len returns the length of the datagram in bytes, header included.
func (h UDP) Len() int { return int(binary.BigEndian.Uint16(h[udpLength:])) }

// HasChecksum reports whether the sender computed a checksum. In IPv4 it may
// leave it out (RFC 768).
func (h UDP) HasChecksum() bool { return binary.BigEndian.Uint16(h[udpChecksum:]) != 0 }

// PutUDP writes a UDP header without checksum to the first 8 bytes of b.
// length is in bytes, header included.
func PutUDP(b []byte, src, dst uint16, length int) {
	b = b[:UDPLen]
	binary.BigEndian.PutUint16(b[udpSrc:], src)
	binary.BigEndian.PutUint16(b[udpDst:], dst)
	binary.BigEndian.PutUint16(b[udpLength:], uint16(length))
	binary.BigEndian.PutUint16(b[udpChecksum:], 0)
}

package inet

import (
	"encoding/binary"
	"math/bits"
)

// IPv4 is a view of an IPv4 packet (RFC 791). Check Valid once; the accessors
// cannot fail afterwards.
type IPv4 []byte

// Offsets of the fields of an IPv4 header and its length in bytes without options.
const (
	ipVersion  = 0 // version and header length in 4-byte words
	ipTOS      = 1
	ipTotalLen = 2
	ipID       = 4
	ipFragment = 6 // 3 flags, then the fragment offset
	ipTTL      = 8
	ipProtocol = 9
	ipChecksum = 10
	ipSrc      = 12
	ipDst      = 16

	IPv4Len = 20
)

const (
	ipDontFragment = 0x4000
	ipMoreAndOff   = 0x3fff // more fragments, fragment offset: 0 in a whole packet
	ipVersion4Len5 = 0x45
)

// ProtoUDP is the protocol number of UDP.
const ProtoUDP = 17

// Valid reports whether the whole header is in h and says version 4, a header
// length of at least 20 bytes and a total length that is no shorter than the
// header. The packet behind the header may be longer than h (further buffers
// of a frame) or shorter (Ethernet padding): compare TotalLen with its size.
func (h IPv4) Valid() bool {
	if len(h) < IPv4Len || h[ipVersion]>>4 != 4 {
		return false
	}
	n := h.HeaderLen()
	return n >= IPv4Len && n <= len(h) && n <= h.TotalLen()
}

// HeaderLen returns the length of the header in bytes, options included.
func (h IPv4) HeaderLen() int { return int(h[ipVersion]&15) * 4 }

// TotalLen returns the length of the packet in bytes, header included.
func (h IPv4) TotalLen() int { return int(binary.BigEndian.Uint16(h[ipTotalLen:])) }

// ID returns the identification that fragments of one packet share.
func (h IPv4) ID() uint16 { return binary.BigEndian.Uint16(h[ipID:]) }

// Fragmented reports whether h is a piece of a larger packet.
func (h IPv4) Fragmented() bool {
	return binary.BigEndian.Uint16(h[ipFragment:])&ipMoreAndOff != 0
}

// TTL returns how many more routers the packet may pass.
func (h IPv4) TTL() uint8 { return h[ipTTL] }

// Protocol returns the protocol number of the payload.
func (h IPv4) Protocol() uint8 { return h[ipProtocol] }

// Src returns the address of the sender.
func (h IPv4) Src() [4]byte { return [4]byte(h[ipSrc:]) }

// Dst returns the address of the receiver.
func (h IPv4) Dst() [4]byte { return [4]byte(h[ipDst:]) }

// ChecksumGood reports whether the header is intact.
func (h IPv4) ChecksumGood() bool {
	s := headerSum((*[IPv4Len]byte)(h))
	if n := h.HeaderLen(); n > IPv4Len {
		s = s.Add(h[IPv4Len:n])
	}
	return s.Good()
}

// headerSum is Sum.Add for the length that every packet has, without its loops.
func headerSum(h *[IPv4Len]byte) Sum {
	v, c := bits.Add64(binary.LittleEndian.Uint64(h[0:]), binary.LittleEndian.Uint64(h[8:]), 0)
	v, c = bits.Add64(v, uint64(binary.LittleEndian.Uint32(h[16:])), c)
	return Sum(v + c)
}

// pseudo returns the sum of the pseudo header that the UDP checksum covers:
// addresses, protocol and UDP length (RFC 768).
func (h IPv4) pseudo(udpLen int) Sum {
	return Sum(ProtoUDP<<8) + // AddWord of a constant
		Sum(binary.LittleEndian.Uint32(h[ipSrc:])) +
		Sum(binary.LittleEndian.Uint32(h[ipDst:])) + // three small numbers: no carry out of 64 bits
		Sum(0).AddWord(uint16(udpLen))
}

// IPv4Fields are the fields of an IPv4 header that we choose. The rest is
// fixed: no options, best effort, "don't fragment" set.
type IPv4Fields struct {
	TotalLen int // bytes, header included
	ID       uint16
	TTL      uint8
	Protocol uint8
	Src, Dst [4]byte
}

// PutIPv4 writes an IPv4 header with its checksum to the first 20 bytes of b.
func PutIPv4(b []byte, f IPv4Fields) {
	b = b[:IPv4Len]
	b[ipVersion] = ipVersion4Len5
	b[ipTOS] = 0
	binary.BigEndian.PutUint16(b[ipTotalLen:], uint16(f.TotalLen))
	binary.BigEndian.PutUint16(b[ipID:], f.ID)
	binary.BigEndian.PutUint16(b[ipFragment:], ipDontFragment)
	b[ipTTL] = f.TTL
	b[ipProtocol] = f.Protocol
	binary.BigEndian.PutUint16(b[ipChecksum:], 0)
	copy(b[ipSrc:], f.Src[:])
	copy(b[ipDst:], f.Dst[:])
	Sum(0).Add(b).PutChecksum(b[ipChecksum:])
}

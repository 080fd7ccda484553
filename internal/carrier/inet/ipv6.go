package inet

import (
	"encoding/binary"
	"math/bits"
)

// IPv6 is a view of an IPv6 packet (RFC 8200). Check Valid once; the accessors
// cannot fail afterwards.
type IPv6 []byte

// Offsets of the fields of an IPv6 header and its length in bytes.
const (
	ip6Version    = 0 // version, traffic class, flow label
	ip6PayloadLen = 4
	ip6Next       = 6
	ip6HopLimit   = 7
	ip6Src        = 8
	ip6Dst        = 24

	IPv6Len = 40
)

// MinMTU6 is what every link carries of IPv6 in one packet (RFC 8200, section 5).
const MinMTU6 = 1280

// Valid reports whether the whole header is in h and says version 6. Compare
// PayloadLen with the size of what follows.
func (h IPv6) Valid() bool { return len(h) >= IPv6Len && h[ip6Version]>>4 == 6 }

// PayloadLen returns how many bytes follow the header, extension headers
// included. 0 may mean a jumbogram (RFC 2675).
func (h IPv6) PayloadLen() int { return int(binary.BigEndian.Uint16(h[ip6PayloadLen:])) }

// Next returns the protocol number of what follows: an extension header or the
// payload.
func (h IPv6) Next() uint8 { return h[ip6Next] }

// Src returns the address of the sender.
func (h IPv6) Src() [16]byte { return [16]byte(h[ip6Src:]) }

// Dst returns the address of the receiver.
func (h IPv6) Dst() [16]byte { return [16]byte(h[ip6Dst:]) }

// pseudo returns the sum of the pseudo header that the UDP checksum covers:
// addresses, UDP length and protocol (RFC 8200, section 8.1).
func (h IPv6) pseudo(udpLen int) Sum {
	a := (*[32]byte)(h[ip6Src:])
	v, c := bits.Add64(binary.LittleEndian.Uint64(a[0:]), binary.LittleEndian.Uint64(a[8:]), 0)
	v, c = bits.Add64(v, binary.LittleEndian.Uint64(a[16:]), c)
	v, c = bits.Add64(v, binary.LittleEndian.Uint64(a[24:]), c)
	v, c = bits.Add64(v, ProtoUDP<<8+uint64(bits.ReverseBytes16(uint16(udpLen))), c)
	return Sum(v + c)
}

// IPv6Fields are the fields of an IPv6 header that we choose. There are no
// extension headers, the traffic class is best effort, and the flow label is 0: packets of one endpoint are told
// apart by their ports.
type IPv6Fields struct {
	PayloadLen int // bytes behind the header
	HopLimit   uint8
	Next       uint8
	Src, Dst   [16]byte
}

// PutIPv6 writes an IPv6 header to the first 40 bytes of b.
func PutIPv6(b []byte, f IPv6Fields) {
	b = b[:IPv6Len]
	binary.BigEndian.PutUint32(b[ip6Version:], 6<<28)
	binary.BigEndian.PutUint16(b[ip6PayloadLen:], uint16(f.PayloadLen))
	b[ip6Next] = f.Next
	b[ip6HopLimit] = f.HopLimit
	copy(b[ip6Src:], f.Src[:])
	copy(b[ip6Dst:], f.Dst[:])
}

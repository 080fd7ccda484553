package inet

import (
	"encoding/binary"
	"net/netip"
)

// HeaderLen is the number of bytes in front of a UDP payload: Ethernet, IPv4
// without options, UDP. HeaderLen6 is that of IPv6.
const (
	HeaderLen  = EthernetLen + IPv4Len + UDPLen
	HeaderLen6 = EthernetLen + IPv6Len + UDPLen
)

// Offsets of the IP and UDP headers that we write.
const (
	ipAt   = EthernetLen
	udpAt  = EthernetLen + IPv4Len
	udpAt6 = EthernetLen + IPv6Len
)

// template is the header of every datagram of one path, with the checksums of
// what never changes added up beforehand. Only lengths, identification and
// checksums are left to patch.
type template struct {
	head   [HeaderLen]byte              // in two parts, so that to copy the one of IPv4 needs no call
	rest   [HeaderLen6 - HeaderLen]byte // of IPv6
	ipSum  uint16                       // of the IPv4 header with zero total length, id and checksum
	udpSum uint16                       // of pseudo header and UDP header with zero lengths and checksum
}

// addresses are the ends of a path.
type addresses struct {
	srcMAC, dstMAC MAC
	src, dst       netip.AddrPort
	ttl            uint8
}

func newTemplate(a addresses) template {
	if a.src.Addr().Is6() {
		return newTemplate6(a)
	}
	var t template
	PutEthernet(t.head[:], a.dstMAC, a.srcMAC, EtherIPv4)
	PutIPv4(t.head[ipAt:], IPv4Fields{
		TTL: a.ttl, Protocol: ProtoUDP,
		Src: a.src.Addr().As4(), Dst: a.dst.Addr().As4(),
	})
	PutUDP(t.head[udpAt:], a.src.Port(), a.dst.Port(), 0)
	ip := IPv4(t.head[ipAt:])
	binary.BigEndian.PutUint16(ip[ipChecksum:], 0)
	t.ipSum = Sum(0).Add(ip[:IPv4Len]).fold()
	t.udpSum = ip.pseudo(0).Add(t.head[udpAt:]).fold()
	return t
}

// put writes the header of a datagram with n bytes of payload to h and returns
// the sum that the UDP checksum starts from. The UDP checksum is left 0.
func (t *template) put(h *[HeaderLen]byte, id uint16, n int) Sum {
	*h = t.head
	udpLen, ipLen := uint16(UDPLen+n), uint16(IPv4Len+UDPLen+n)
	binary.BigEndian.PutUint16(h[ipAt+ipTotalLen:], ipLen)
	binary.BigEndian.PutUint16(h[ipAt+ipID:], id)
	Sum(t.ipSum).AddWord(ipLen).AddWord(id).PutChecksum(h[ipAt+ipChecksum:])
	binary.BigEndian.PutUint16(h[udpAt+udpLength:], udpLen)
	return Sum(t.udpSum).AddWord(udpLen).AddWord(udpLen) // once in the pseudo header, once in the header
}

// newTemplate6 is newTemplate over IPv6.
func newTemplate6(a addresses) template {
	var t template
	var h [HeaderLen6]byte
	PutEthernet(h[:], a.dstMAC, a.srcMAC, EtherIPv6)
	PutIPv6(h[ipAt:], IPv6Fields{
		HopLimit: a.ttl, Next: ProtoUDP, Src: a.src.Addr().As16(), Dst: a.dst.Addr().As16(),
	})
	PutUDP(h[udpAt6:], a.src.Port(), a.dst.Port(), 0)
	t.head, t.rest = [HeaderLen]byte(h[:]), [HeaderLen6 - HeaderLen]byte(h[HeaderLen:])
	t.udpSum = IPv6(h[ipAt:]).pseudo(0).Add(h[udpAt6:]).fold()
	return t
}

// put6 is put over IPv6, where nothing but the lengths changes and no datagram
// goes without the checksum.
func (t *template) put6(h *[HeaderLen6]byte, n int) Sum {
	*(*[HeaderLen]byte)(h[:]) = t.head
	*(*[HeaderLen6 - HeaderLen]byte)(h[HeaderLen:]) = t.rest
	udpLen := uint16(UDPLen + n)
	binary.BigEndian.PutUint16(h[ipAt+ip6PayloadLen:], udpLen)
	binary.BigEndian.PutUint16(h[udpAt6+udpLength:], udpLen)
	return Sum(t.udpSum).AddWord(udpLen).AddWord(udpLen)
}

// dst returns the address and port that the template is for.
func (t *template) dst() netip.AddrPort {
	if Ethernet(t.head[:]).Type() == EtherIPv6 {
		h := append(t.head[:], t.rest[:]...)
		return netip.AddrPortFrom(netip.AddrFrom16(IPv6(h[ipAt:]).Dst()), UDP(h[udpAt6:]).DstPort())
	}
	return netip.AddrPortFrom(netip.AddrFrom4(IPv4(t.head[ipAt:]).Dst()), UDP(t.head[udpAt:]).DstPort())
}

package inet

import (
	"encoding/binary"
	"net/netip"
)

// HeaderLen is the number of bytes in front of a UDP payload: Ethernet, IPv4
// without options, UDP.
const HeaderLen = EthernetLen + IPv4Len + UDPLen

// Offsets of the IPv4 and UDP headers that we write.
const (
	ipAt  = EthernetLen
	udpAt = EthernetLen + IPv4Len
)

// template is the header of every datagram of one path, with the checksums of
// what never changes added up beforehand. Only lengths, identification and
// checksums are left to patch.
type template struct {
	head   [HeaderLen]byte
	ipSum  Sum // of the IPv4 header with zero total length, id and checksum
	udpSum Sum // of pseudo header and UDP header with zero lengths and checksum
}

// addresses are the ends of a path.
type addresses struct {
	srcMAC, dstMAC MAC
	src, dst       netip.AddrPort
	ttl, tos       uint8
}

func newTemplate(a addresses) template {
	var t template
	PutEthernet(t.head[:], a.dstMAC, a.srcMAC, EtherIPv4)
	PutIPv4(t.head[ipAt:], IPv4Fields{
		TTL: a.ttl, TOS: a.tos, Protocol: ProtoUDP,
		Src: a.src.Addr().Unmap().As4(), Dst: a.dst.Addr().Unmap().As4(),
	})
	PutUDP(t.head[udpAt:], a.src.Port(), a.dst.Port(), 0)
	ip := IPv4(t.head[ipAt:])
	binary.BigEndian.PutUint16(ip[ipChecksum:], 0)
	t.ipSum = Sum(0).Add(ip[:IPv4Len])
	t.udpSum = ip.pseudo(0).Add(t.head[udpAt:])
	return t
}

// put writes the header of a datagram with n bytes of payload to h and returns
// the sum that the UDP checksum starts from. The UDP checksum is left 0.
func (t *template) put(h *[HeaderLen]byte, id uint16, n int) Sum {
	*h = t.head
	udpLen, ipLen := uint16(UDPLen+n), uint16(IPv4Len+UDPLen+n)
	binary.BigEndian.PutUint16(h[ipAt+ipTotalLen:], ipLen)
	binary.BigEndian.PutUint16(h[ipAt+ipID:], id)
	t.ipSum.AddWord(ipLen).AddWord(id).PutChecksum(h[ipAt+ipChecksum:])
	binary.BigEndian.PutUint16(h[udpAt+udpLength:], udpLen)
	return t.udpSum.AddWord(udpLen).AddWord(udpLen) // once in the pseudo header, once in the header
}

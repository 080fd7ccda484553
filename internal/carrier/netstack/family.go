package netstack

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// family is where IPv4 and IPv6 differ.
type family struct {
	name       string
	factory    stack.NetworkProtocolFactory
	protocol   tcpip.NetworkProtocolNumber
	ether      uint16 // Ethernet type
	headerLen  int    // of IP without options, in bytes
	everywhere tcpip.Subnet
}

// familyOf returns the family of an address. gVisor's IPv6 has no neighbour or
// router discovery then, and announces no groups: the kernel does that on the same
// device.
func familyOf(a netip.Addr) family {
	if a.Is4() {
		return family{"IPv4", ipv4.NewProtocol, ipv4.ProtocolNumber, inet.EtherIPv4, inet.IPv4Len, allOf(4)}
	}
	return family{"IPv6", ipv6.NewProtocol, ipv6.ProtocolNumber, inet.EtherIPv6, inet.IPv6Len, allOf(16)}
}

// allOf returns the network of all addresses of n bytes.
func allOf(n int) tcpip.Subnet {
	zero := make([]byte, n)
	s, _ := tcpip.NewSubnet(tcpip.AddrFromSlice(zero), tcpip.MaskFromBytes(zero)) // a prefix of 0 bits is one
	return s
}

// addr returns an address of the family as gVisor has it.
func (f *family) addr(a netip.Addr) tcpip.Address {
	if f.ether == inet.EtherIPv4 {
		return tcpip.AddrFrom4(a.As4())
	}
	return tcpip.AddrFrom16(a.As16())
}

// dst returns the destination of a packet.
func (f *family) dst(ip []byte) netip.Addr {
	if f.ether == inet.EtherIPv4 {
		return netip.AddrFrom4(inet.IPv4(ip).Dst())
	}
	return netip.AddrFrom16(inet.IPv6(ip).Dst())
}

// cut makes the IP header of a packet that of its segment number i, of n bytes behind it.
func (f *family) cut(ip []byte, n, i int) {
	if f.ether == inet.EtherIPv6 {
		header.IPv6(ip).SetPayloadLength(uint16(n))
		return
	}
	h := header.IPv4(ip)
	h.SetTotalLength(uint16(len(ip) + n))
	h.SetID(h.ID() + uint16(i))
	h.SetChecksum(0)
	h.SetChecksum(^h.CalculateChecksum())
}

// pseudo returns the sum of what TCP's checksum covers of a packet with n bytes
// behind its IP header, besides these: both addresses, n and the protocol.
func (f *family) pseudo(ip []byte, n int) inet.Sum {
	addrs := ip[header.IPv6MinimumSize-2*header.IPv6AddressSize : header.IPv6MinimumSize]
	if f.ether == inet.EtherIPv4 {
		addrs = ip[header.IPv4MinimumSize-2*header.IPv4AddressSize : header.IPv4MinimumSize]
	}
	return inet.Sum(0).Add(addrs).AddWord(protoTCP).AddWord(uint16(n))
}

package netstack

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
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

package device

import (
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
)

// openUDP opens a kernel UDP socket.
func openUDP(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	if err := s.takeAddress(); err != nil {
		return nil, err
	}
	return kudp.Open(kudp.Config{Arena: arena, Local: netip.AddrPortFrom(s.Addr, s.Port), MTU: s.MTU, Pool: s.pool})
}

// takeAddress makes Addr what Address says, unless it is given.
func (s *Spec) takeAddress() (err error) {
	if !s.Addr.IsValid() {
		s.Addr, err = Address(s.Device, s.IPv6)
	}
	return err
}

// Address returns the address that endpoints on a device have unless they are told:
// its first of IPv4, or, if that is asked for, its first of IPv6 that lasts and is not
// of the link only. Without a device it is that of loopback.
func Address(name string, ipv6 bool) (netip.Addr, error) {
	switch {
	case name == "" && ipv6:
		return netip.IPv6Loopback(), nil
	case name == "":
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	v4, v6, err := route.Addresses(name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("device: no network device %q here (xinfo lists them): %w", name, err)
	}
	return oneOf(name, v4, v6, ipv6)
}

// oneOf chooses between the two addresses of a device.
func oneOf(dev string, v4, v6 netip.Addr, ipv6 bool) (netip.Addr, error) {
	switch {
	case ipv6 && v6.IsValid():
		return v6, nil
	case ipv6:
		return v6, fmt.Errorf("device: %w: %s has no IPv6 address but those of its link: give it one (ip addr add fd00::1/64 dev %s)", errNoAddress, dev, dev)
	case v4.IsValid():
		return v4, nil
	case v6.IsValid():
		return v4, fmt.Errorf("device: %w: %s has no IPv4 address: give it one (ip addr add 10.0.0.1/24 dev %s), or use its IPv6 address %s (--ipv6, or XWARP_IPV6=1)", errNoAddress, dev, dev, v6)
	}
	return v4, fmt.Errorf("device: %w: %s has no IPv4 address: give it one (ip addr add 10.0.0.1/24 dev %s)", errNoAddress, dev, dev)
}

// ipUDPLen returns the length of the headers of IP and UDP.
func ipUDPLen(local netip.Addr) int {
	if local.Is4() {
		return inet.IPv4Len + inet.UDPLen
	}
	return inet.IPv6Len + inet.UDPLen
}

package device

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/ksock"
	"github.com/xwarp/xwarp/internal/mem"
)

// openUDP opens a kernel UDP socket.
func openUDP(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	if !s.Addr.IsValid() {
		addr, err := deviceAddr(s.Device)
		if err != nil {
			return nil, err
		}
		s.Addr = addr
	}
	return ksock.Open(ksock.Config{Arena: arena, Local: netip.AddrPortFrom(s.Addr, s.Port), MTU: s.MTU})
}

// deviceAddr returns the first IPv4 address of a device, or loopback's.
func deviceAddr(name string) (netip.Addr, error) {
	if name == "" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	dev, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("device: no network device %q here (xinfo lists them): %w", name, err)
	}
	addrs, err := dev.Addrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("device: addresses of %s: %w", name, err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			return p.Addr(), nil
		}
	}
	return netip.Addr{}, noAddress(name)
}

func noAddress(dev string) error {
	return fmt.Errorf("device: %s has no IPv4 address: give it one (ip addr add 10.0.0.1/24 dev %s)", dev, dev)
}

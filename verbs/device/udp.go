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
	addrs, err := deviceAddrs(name)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range addrs {
		if a.Is4() {
			return a, nil
		}
	}
	return netip.Addr{}, noAddress(name)
}

// deviceAddrs returns all addresses of a device.
func deviceAddrs(name string) ([]netip.Addr, error) {
	dev, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("device: no network device %q here (xinfo lists them): %w", name, err)
	}
	nets, err := dev.Addrs()
	if err != nil {
		return nil, fmt.Errorf("device: addresses of %s: %w", name, err)
	}
	var addrs []netip.Addr
	for _, n := range nets {
		if p, err := netip.ParsePrefix(n.String()); err == nil {
			addrs = append(addrs, p.Addr())
		}
	}
	return addrs, nil
}

func noAddress(dev string) error {
	return fmt.Errorf("device: %w: %s has no IPv4 address: give it one (ip addr add 10.0.0.1/24 dev %s)", errNoAddress, dev, dev)
}

package netstack

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// Config describes a stack. Port, Resolver, Local and MAC must be given.
type Config struct {
	// Port carries the frames. The stack closes it. Only TCP may arrive on it.
	Port fabric.Port
	// Resolver finds next hops. The stack does not close it.
	Resolver inet.Resolver
	// Local is the address that peers send to, of IPv4 or IPv6: all are of one family.
	Local netip.Addr
	// MAC is the Ethernet address of the device.
	MAC inet.MAC
	// MTU is the largest IP packet in bytes to send; default, and at most,
	// the port's.
	MTU int
	// Ifindex is the device of Port, in the network namespace of the thread that opens the stack: what
	// is more than a frame may leave it by a packet socket. Default 0: it goes in frames.
	Ifindex int
	// PortBase and Ports are the TCP ports whose frames come to Port: streams
	// are opened from them, and listeners have to be in them. Default 1 and
	// 65535: all.
	PortBase uint16
	Ports    int
	// Clock is what Poll's now is read from; default mono.Real.
	Clock mono.Clock
	// RecvBuffer and SendBuffer are the most bytes that one stream holds for
	// the peer that sends, and for us; default 8 MiB. It must be more than
	// bandwidth times delay. What is not used costs nothing.
	RecvBuffer, SendBuffer int
	// Linger is how long Close lets closed streams deliver what they still
	// have; default 1 s.
	Linger mono.Duration
}

const (
	tcpHeaderLen = 20
	minMTU       = 576 // RFC 9293, section 3.7.1: what every host takes
	minBuffer    = 4096
)

func (c Config) withDefaults() (Config, error) {
	if c.Clock == nil {
		c.Clock = mono.Real{}
	}
	if c.PortBase == 0 && c.Ports == 0 {
		c.PortBase, c.Ports = 1, 1<<16-1
	}
	c.RecvBuffer = cmp.Or(c.RecvBuffer, 8<<20)
	c.SendBuffer = cmp.Or(c.SendBuffer, 8<<20)
	c.Linger = cmp.Or(c.Linger, mono.Second)
	switch {
	case c.Port == nil:
		return c, errors.New("netstack: Config.Port is missing")
	case c.Resolver == nil:
		return c, errors.New("netstack: Config.Resolver is missing")
	case !c.Local.IsValid() || c.Local.Unmap().IsUnspecified() || c.Local.IsMulticast():
		return c, fmt.Errorf("netstack: local address %s: want an IPv4 address, or one of IPv6, of the device", c.Local)
	case c.Local.Is6() && c.Local.IsLinkLocalUnicast():
		return c, fmt.Errorf("netstack: local address %s: %w", c.Local, inet.ErrLinkLocal)
	case c.MAC.Group():
		return c, fmt.Errorf("netstack: %s is no address of a device", c.MAC)
	case c.PortBase == 0 || c.Ports < 1 || int(c.PortBase)+c.Ports > 1<<16:
		return c, fmt.Errorf("netstack: %d ports from %d on: want 1 to 65535", c.Ports, c.PortBase)
	case c.RecvBuffer < minBuffer || c.SendBuffer < minBuffer:
		return c, fmt.Errorf("netstack: buffers of %d and %d bytes: want %d at least", c.RecvBuffer, c.SendBuffer, minBuffer)
	}
	c.Local = c.Local.Unmap()
	caps := c.Port.Caps()
	most := min(caps.MTU, 1<<16-1, caps.MaxBufs*frameBytes-inet.EthernetLen-caps.Headroom())
	c.MTU = cmp.Or(c.MTU, most)
	least := minMTU
	if c.Local.Is6() {
		least = inet.MinMTU6
	}
	if c.MTU < least || c.MTU > most {
		return c, fmt.Errorf("netstack: MTU %d: want %d to %d, what the port takes", c.MTU, least, most)
	}
	return c, nil
}

// last returns the last port of the range.
func (c *Config) last() uint16 { return uint16(int(c.PortBase) + c.Ports - 1) }

// steered reports whether frames for a port come to us.
func (c *Config) steered(port uint16) bool { return port >= c.PortBase && port <= c.last() }

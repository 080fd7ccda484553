package device

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/internal/carrier/ktcp"
	"github.com/xwarp/xwarp/internal/carrier/netstack"
	"github.com/xwarp/xwarp/internal/carrier/split"
)

// ErrNoStreams is wrapped when Spec.RC is set for a fabric that has no TCP.
var ErrNoStreams = errors.New("queue pairs of type RC need TCP")

// onKernelTCP reports whether RC goes over TCP of the kernel.
func (s *Spec) onKernelTCP() bool { return s.Fabric == "tcp" || s.Fabric == "udp" && s.RC }

// checkStreams refuses what does not go together with streams.
func (s *Spec) checkStreams() error {
	if s.RC && s.Fabric == "shm" {
		return fmt.Errorf("device: %w, and fabric %q has none: use tcp, udp or xdp", ErrNoStreams, s.Fabric)
	}
	if s.Fabric == "tcp" && s.Faults != (fault.Config{}) {
		return errors.New("device: fabric \"tcp\" is the kernel's: nothing there can be lost on purpose; leave Faults away")
	}
	if s.onKernelTCP() && s.Capture != "" {
		dev := s.Device
		dev = cmp.Or(dev, "any")
		return fmt.Errorf("device: RC over fabric %q goes through the kernel and not through us: capture it with tcpdump -i %s -w %s tcp", s.Fabric, dev, s.Capture)
	}
	return nil
}

// tcpDefaults fills in the range of TCP ports.
func (s *Spec) tcpDefaults() {
	s.TCPBase = cmp.Or(s.TCPBase, bpf.DefaultTCPBase)
	s.TCPPorts = cmp.Or(s.TCPPorts, 1<<16-int(s.TCPBase))
}

// openNetstack opens TCP in user space on one side of a port, and returns the
// other side. After an error the port is closed.
func (o *opening) openNetstack(s *Spec, port fabric.Port, table *route.Table) (fabric.Port, error) {
	tcp, rest := split.New(port)
	stack, err := netstack.Open(netstack.Config{
		Port: tcp, Resolver: table, Local: s.Addr, MAC: table.Link().MAC, MTU: s.MTU, Ifindex: s.offloads(table),
		PortBase: s.TCPBase, Ports: s.TCPPorts, Clock: s.Clock,
	})
	if err != nil {
		return nil, errors.Join(err, tcp.Close(), rest.Close())
	}
	o.streams = stack
	return rest, nil
}

// offloads returns the index of the device if packets of more than a frame may leave it by a packet socket, or 0.
func (s *Spec) offloads(table *route.Table) int {
	if steered := s.slot != nil && len(s.slot.Pairs) > 0; s.Capture != "" || s.Queue != 0 || steered || s.Fabric == "xdp:asavie" {
		return 0 // what is captured passes the port, a packet socket does not choose the queue, and asavie receives one buffer
	}
	return table.Link().Index
}

// besideAFXDP is TCP for large data: a sender goes on in datagrams when a path has swallowed
// it for so long. Reno, because HyStart ends the slow start of Cubic with the first round trip that takes some microseconds longer than the
// shortest one. The window then stays at two dozen packets, as short messages do not fill it, and the kernel cuts each message of
// more than half of it in two.
func besideAFXDP() ktcp.Config {
	return ktcp.Config{Congestion: "reno", UserTimeout: 20 * time.Second, Mark: bpf.BypassMark}
}

// openTCP opens the kernel's TCP, as c says and s.
func openTCP(s *Spec, arena *mem.Arena, c ktcp.Config) (fabric.Streams, error) {
	err := s.takeAddress()
	if errors.Is(err, errNoAddress) { // TCP does with what there is
		s.Addr, err = Address(s.Device, !s.IPv6)
	}
	if err != nil {
		return nil, err
	}
	c.Arena, c.Local, c.MTU = arena, s.Addr, s.MTU
	t, err := ktcp.Open(c)
	if err != nil {
		return nil, err // not t: an interface with a nil in it is not nil
	}
	return t, nil
}

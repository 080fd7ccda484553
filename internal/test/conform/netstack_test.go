package conform

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/internal/carrier/ktcp"
	"github.com/xwarp/xwarp/internal/carrier/netstack"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

// opener opens a carrier of streams on a host, in whose network namespace it
// is called.
type opener func(h *testbed.Host) (fabric.Streams, []io.Closer, error)

// kernelTCP opens the kernel's TCP, which leaves its checksums to a veth: that computes
// none, and AF_XDP gets to see the frames as they are.
func kernelTCP(h *testbed.Host) (fabric.Streams, []io.Closer, error) {
	arena, err := mem.New(mem.Config{Size: 32 << 20, SmallPages: true})
	if err != nil {
		return nil, nil, err
	}
	s, err := ktcp.Open(ktcp.Config{Local: h.Addr, Arena: arena})
	if err != nil {
		return nil, nil, errors.Join(err, arena.Close())
	}
	return s, []io.Closer{arena}, nil
}

// userTCP returns what opens netstack over AF_XDP.
func userTCP(mode bpf.Mode, open func(xdp.Config) (fabric.Port, error)) opener {
	return func(h *testbed.Host) (s fabric.Streams, under []io.Closer, err error) {
		arena, err := mem.New(mem.Config{Size: 32 << 20, SmallPages: true})
		if err != nil {
			return nil, nil, err
		}
		table, err := route.Open(route.Config{Link: h.Dev})
		if err != nil {
			return nil, nil, errors.Join(err, arena.Close())
		}
		under = []io.Closer{table, arena}
		link := table.Link()
		port, err := open(xdp.Config{
			Device: h.Dev, Arena: arena, Mode: mode, Track: true,
			Steer: bpf.Config{PortBase: xdpPort, Addr: h.Addr, TCPPorts: bpf.DefaultTCPPorts},
		})
		if err == nil {
			ifindex := link.Index
			if _, one := port.(*asavie.Port); one { // it receives frames of one buffer only
				ifindex = 0
			}
			s, err = netstack.Open(netstack.Config{
				Port: port, Resolver: table, Local: h.Addr, MAC: link.MAC, Ifindex: ifindex,
				PortBase: bpf.DefaultTCPBase, Ports: bpf.DefaultTCPPorts,
				Linger: 20 * mono.Millisecond, // the other end of a case may not answer any more
			})
		}
		if err != nil {
			return nil, nil, errors.Join(err, table.Close(), arena.Close())
		}
		return s, under, nil
	}
}

// streamsOn holds two carriers on a veth pair to the contract. They stay open
// for all cases.
func streamsOn(t *testing.T, c testbed.Config, a, b opener) {
	tb := hosttest.New(t, c)
	var all [2]*keptStreams
	for i, open := range [2]opener{a, b} {
		all[i] = keepOpen(t, tb.Hosts[i], open)
	}
	many := 0
	if slow {
		many = 40
	}
	Streams(t, func(t *testing.T) StreamNet {
		return StreamNet{
			Step: yield, Allocates: true, Kept: true, Many: many,
			On:   func(i int, fn func() error) error { return tb.Hosts[i].Do(fn) },
			Open: func(i int) (fabric.Streams, []io.Closer, error) { return all[i], nil, nil },
		}
	})
}

// keepOpen opens a carrier on a host, which is closed when t ends.
func keepOpen(t *testing.T, h *testbed.Host, open opener) *keptStreams {
	t.Helper()
	var s fabric.Streams
	var under []io.Closer
	err := h.Do(func() (err error) {
		s, under, err = open(h)
		return err
	})
	if errors.Is(err, xdp.ErrUnsupported) {
		testenv.NoXDP(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	closeAll(t, s, under)
	return keepStreams(s)
}

func openOurs(c xdp.Config) (fabric.Port, error)   { return xdp.Open(c) }
func openAsavie(c xdp.Config) (fabric.Port, error) { return asavie.Open(c) }

// TestStreams_netstack runs over TCP in user space on AF_XDP.
func TestStreams_netstack(t *testing.T) {
	for _, c := range []struct {
		name string
		bed  testbed.Config
		open opener
	}{
		{"generic", testbed.Config{MTU: 1500}, userTCP(bpf.Generic, openOurs)},
		{"driver", testbed.Config{MTU: 9000}, userTCP(bpf.Driver, openOurs)},
		{"asavie", testbed.Config{MTU: 1500}, userTCP(bpf.Generic, openAsavie)},
		{"IPv6", testbed.Config{MTU: 1500, IPv6: true}, userTCP(bpf.Generic, openOurs)},
		{"VLAN", testbed.Config{MTU: 9000}, userTCP(bpf.Driver, openVLAN)},
	} {
		if slow && c.name != "generic" {
			continue
		}
		t.Run(c.name, func(t *testing.T) { streamsOn(t, c.bed, c.open, c.open) })
	}
}

// TestStreams_netstackAndKernel runs with TCP in user space at one end, and
// the kernel's at the other.
func TestStreams_netstackAndKernel(t *testing.T) {
	if slow {
		t.Skip("the race detector sees the same code in TestStreams_netstack")
	}
	ours := userTCP(bpf.Generic, openOurs)
	t.Run("dials", func(t *testing.T) { streamsOn(t, testbed.Config{MTU: 1500}, ours, kernelTCP) })
	t.Run("accepts", func(t *testing.T) { streamsOn(t, testbed.Config{MTU: 1500}, kernelTCP, ours) })
}

// TestStreams_netstackPipe runs in memory, with frames received in many buffers
// and some of them lost. Nobody can wait for a pipe in poll(2).
func TestStreams_netstackPipe(t *testing.T) {
	if slow {
		t.Skip("takes many minutes with the race detector, which sees the same code in TestStreams_netstack")
	}
	Streams(t, func(t *testing.T) StreamNet {
		rng := rand.New(rand.NewPCG(1, 1))
		a, b, err := NewPipe(PipeConfig{
			MTU: 1500, Frames: 4096, Depth: 1024, Chunks: []int{54, 700, 400},
			Wire: func(frame []byte) []byte {
				if rng.IntN(200) == 0 && !isReset(frame) {
					return nil
				}
				return frame
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		addrs := [2]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
		macs := [2]inet.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
		ways := inet.Fixed{}
		for i := range addrs {
			ways[addrs[i]] = inet.Hop{MAC: macs[i], Source: addrs[i], MTU: 1500}
		}
		// The first windows of more connections than 60 are more than the pipe
		// holds: on a loaded machine it then takes many minutes of back-off.
		return StreamNet{Step: yield, Allocates: true, Virtual: true, Many: 60, Open: func(i int) (fabric.Streams, []io.Closer, error) {
			s, err := netstack.Open(netstack.Config{Port: [2]*Pipe{a, b}[i], Resolver: ways, Local: addrs[i], MAC: macs[i]})
			return s, nil, err
		}}
	})
}

// isReset reports whether a frame holds a TCP segment that resets a connection.
// It is sent once: a peer that has nothing to send does not get to know when it
// is lost.
func isReset(frame []byte) bool {
	const flagsAt, rst = inet.EthernetLen + inet.IPv4Len + 13, 4
	return len(frame) > flagsAt && frame[flagsAt]&rst != 0
}

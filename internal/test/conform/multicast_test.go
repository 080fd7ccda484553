package conform

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

func TestMulticast_inetSim(t *testing.T) {
	Multicast(t, func(t *testing.T) ([3]fabric.Datagram, func(), func(int, func() error) error) {
		ends, step := openSim(t)
		return ends, step, nil
	})
}

// openSim opens an endpoint on each of three nodes.
func openSim(t *testing.T) (ends [3]fabric.Datagram, step func()) {
	w := sim.New(sim.Config{Seed: 1, Limit: mono.Duration(mono.Never)})
	nodes := w.Nodes(len(ends))
	for i, n := range nodes {
		port, err := n.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = newEndpoint(t, inet.Config{
			Port: port, Resolver: neighbours{w}, Local: netip.AddrPortFrom(n.Addr(), 4791), MAC: n.MAC(),
		})
	}
	return ends, steps(t, w, nodes[0])
}

// A decorator passes on what its carrier can.
func TestMulticast_fault(t *testing.T) {
	Multicast(t, func(t *testing.T) ([3]fabric.Datagram, func(), func(int, func() error) error) {
		ends, step := openSim(t)
		for i := range ends {
			d, err := fault.NewDatagram(ends[i], fault.Config{})
			if err != nil {
				t.Fatal(err)
			}
			ends[i] = d
		}
		return ends, step, nil
	})
}

func TestMulticast_kudpLoopback(t *testing.T) {
	arenas := newArenas(t)
	for _, c := range []kudp.Config{{}, {MTU: 1500, NoGSO: true, NoGRO: true}} {
		t.Run(fmt.Sprintf("MTU=%d,gro=%v", c.MTU, !c.NoGRO), func(t *testing.T) {
			Multicast(t, func(t *testing.T) (ends [3]fabric.Datagram, step func(), within func(int, func() error) error) {
				first := c
				first.Local = netip.MustParseAddrPort("127.0.0.1:0")
				a := openSocket(t, arenas[0], first)
				ends[0] = a
				for i := 1; i < len(ends); i++ {
					other := c
					other.Local = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(i + 1)}), a.Local().Port())
					ends[i] = openSocket(t, arenas[i], other)
				}
				return ends, runtime.Gosched, nil
			})
		})
	}
}

// three makes three hosts on a switch.
func three(t *testing.T, joined testbed.Switch) *testbed.Testbed {
	t.Helper()
	return hosttest.New(t, testbed.Config{Hosts: 3, Switch: joined})
}

func TestMulticast_kudpVeth(t *testing.T) {
	tb, arenas := three(t, testbed.Bridge), newArenas(t)
	Multicast(t, func(t *testing.T) (ends [3]fabric.Datagram, step func(), within func(int, func() error) error) {
		for i, h := range tb.Hosts {
			on(t, h, func() error {
				ends[i] = openSocket(t, arenas[i], kudp.Config{Local: netip.AddrPortFrom(h.Addr, 4791)})
				return nil
			})
		}
		return ends, runtime.Gosched, func(i int, f func() error) error { return tb.Hosts[i].Do(f) }
	})
}

// TestMulticast_xdp runs over AF_XDP sockets whose frames go through a bridge,
// or through our switch, to the devices of all others.
func TestMulticast_xdp(t *testing.T) {
	ours := func(c xdp.Config) (fabric.Port, error) { return xdp.Open(c) }
	theirs := func(c xdp.Config) (fabric.Port, error) { return asavie.Open(c) }
	for _, d := range []struct {
		name   string
		joined testbed.Switch
		mode   bpf.Mode
		open   func(xdp.Config) (fabric.Port, error)
	}{
		{"bridgeGeneric", testbed.Bridge, bpf.Generic, ours},
		{"bridgeDriver", testbed.Bridge, bpf.Driver, ours},
		{"switchGeneric", testbed.XDP, bpf.Generic, ours},
		{"bridgeAsavie", testbed.Bridge, bpf.Generic, theirs},
	} {
		t.Run(d.name, func(t *testing.T) {
			var ends [3]fabric.Datagram
			for i, h := range three(t, d.joined).Hosts {
				ends[i] = openXDP(t, h, d.open, d.mode, false)
			}
			Multicast(t, func(*testing.T) ([3]fabric.Datagram, func(), func(int, func() error) error) {
				return ends, runtime.Gosched, nil
			})
		})
	}
}

// mute is a carrier without multicast.
type mute struct{ fabric.Datagram }

func TestMulticast_faultOverMute(t *testing.T) {
	ends, _ := openSim(t)
	d, err := fault.NewDatagram(mute{ends[0]}, fault.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Join(groupA); !errors.Is(err, fabric.ErrNoMulticast) {
		t.Errorf("Join: %v", err)
	}
	if err := d.Leave(groupA); !errors.Is(err, fabric.ErrNoMulticast) {
		t.Errorf("Leave: %v", err)
	}
}

package conform

import (
	"errors"
	"net/netip"
	"os/exec"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

const xdpPort = 4791

// TestDatagram_xdp runs over AF_XDP sockets on a veth pair, with both drivers
// in both modes.
func TestDatagram_xdp(t *testing.T) {
	ours := func(c xdp.Config) (fabric.Port, error) { return xdp.Open(c) }
	theirs := func(c xdp.Config) (fabric.Port, error) { return asavie.Open(c) }
	for _, d := range []struct {
		name  string
		mode  bpf.Mode
		open  func(xdp.Config) (fabric.Port, error)
		ipv6  bool
		joins bool // several datagrams may leave as one packet: a veth refuses them where the other end is in driver mode
	}{
		{"generic", bpf.Generic, ours, false, true},
		{"driver", bpf.Driver, ours, false, true},
		{"asavieGeneric", bpf.Generic, theirs, false, false},
		{"asavieDriver", bpf.Driver, theirs, false, false},
		{"genericIPv6", bpf.Generic, ours, true, true},
		{"driverIPv6", bpf.Driver, ours, true, true},
		{"genericVLAN", bpf.Generic, openVLAN, false, false},
		{"driverVLAN", bpf.Driver, openVLAN, false, false},
		{"driverVLANIPv6", bpf.Driver, openVLAN, true, false},
	} {
		t.Run(d.name, func(t *testing.T) {
			var ends [2]*inet.Datagram
			for i, h := range hosttest.New(t, testbed.Config{MTU: 9000, IPv6: d.ipv6}).Hosts {
				ends[i] = openXDP(t, h, d.open, d.mode, d.joins)
			}
			Datagram(t, func(*testing.T) (a, b fabric.Datagram, step func()) { return ends[0], ends[1], runtime.Gosched })
			out, in := ends[0].Stats().TxAggregates, ends[1].Stats().RxAggregates
			if want := d.joins && d.mode == bpf.Generic; ends[0].Caps().Aggregates != want || out > 0 != want || in > 0 != want {
				t.Errorf("%d packets of several datagrams were sent, and %d arrived; the carrier sends them: %v", out, in, !want)
			}
		})
	}
}

// TestDatagram_xdpCutOnTheWay sends aggregates by way of a bridge one of whose ports does not take them: the kernel cuts them there.
func TestDatagram_xdpCutOnTheWay(t *testing.T) {
	ethtool, err := exec.LookPath("ethtool")
	if err != nil {
		t.Skip("needs ethtool: apt-get install ethtool")
	}
	for _, sums := range []string{"on", "off"} {
		tb := hosttest.New(t, testbed.Config{MTU: 9000, Switch: testbed.Bridge})
		for _, port := range []string{"p0", "p1"} {
			off := exec.Command(ethtool, "-K", port, "tx-udp-segmentation", "off", "tx-checksum-ip-generic", sums)
			if err := testbed.DoIn(tb.Name+"-sw", off.Run); err != nil {
				t.Fatalf("%v: %v", off, err)
			}
		}
		var ends [2]*inet.Datagram
		for i, h := range tb.Hosts {
			ends[i] = openXDP(t, h, func(c xdp.Config) (fabric.Port, error) { return xdp.Open(c) }, bpf.Generic, true)
		}
		a, b := newEnd(t, ends[0], runtime.Gosched), newEnd(t, ends[1], runtime.Gosched)
		meet(a, b)
		testAggregates(t, a, b)
		if out, in := ends[0].Stats().TxAggregates, ends[1].Stats().RxAggregates; out == 0 || in > 0 {
			t.Errorf("checksums %s: %d packets of several datagrams were sent, and %d arrived", sums, out, in)
		}
	}
}

// openVLAN opens a port whose frames have the tag of a VLAN.
func openVLAN(c xdp.Config) (fabric.Port, error) {
	c.Steer.VLAN = 100
	return xdp.Open(c)
}

// openXDP opens an endpoint on the device of a host. All cases of a suite share
// it: to open an AF_XDP socket takes longer than a case. joins says that several datagrams may leave as one packet.
func openXDP(t *testing.T, h *testbed.Host, open func(xdp.Config) (fabric.Port, error), mode bpf.Mode, joins bool) (e *inet.Datagram) {
	t.Helper()
	arena := newArena(t)
	on(t, h, func() error {
		table, err := route.Open(route.Config{Link: h.Dev})
		if err != nil {
			return err
		}
		testenv.Closing(t, table)
		port, err := open(xdp.Config{
			Device: h.Dev, Arena: arena, Mode: mode, Steer: bpf.Config{PortBase: xdpPort},
			RxDepth: 512, TxDepth: 512, Frames: 1536, Track: true,
		})
		if errors.Is(err, xdp.ErrUnsupported) {
			testenv.NoXDP(t, err)
		}
		if err != nil {
			return err
		}
		link := table.Link()
		c := inet.Config{Port: port, Resolver: table, Local: netip.AddrPortFrom(h.Addr, xdpPort), MAC: link.MAC}
		if joins {
			c.Ifindex = link.Index
		}
		e = newEndpoint(t, c)
		return nil
	})
	return e
}

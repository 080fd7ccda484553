package conform

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/ktcp"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/verbs"
)

// onlyRC runs the suite over streams.
func onlyRC(t *testing.T, net func(t *testing.T, hosts int) Net, p verbs.ConnParam) {
	Verbs(t, VerbsConfig{Net: net, Types: []verbs.QPType{verbs.RC}, Connect: p})
}

// simStreams is a network of streams in virtual time. A case is a task in it,
// on the first node.
func simStreams(t *testing.T, hosts int, c sim.StreamConfig) Net {
	w := sim.New(sim.Config{Seed: 1, Limit: mono.Duration(mono.Never), ArenaSize: 8 << 20})
	nodes := w.Nodes(hosts)
	var task *sim.Task
	return Net{
		Clock: w, Virtual: true,
		Streams: func(i int) (fabric.Streams, netip.Addr, []io.Closer, error) {
			return nodes[i].Streams(c), netip.Addr{}, nil, nil
		},
		Run: func(run func()) {
			w.Go(nodes[0], t.Name(), func(k *sim.Task) error {
				task = k
				run()
				return nil
			})
			if err := w.Run(); err != nil {
				t.Fatal(err)
			}
		},
		Step: func(idle int) { task.Sleep(mono.Microsecond * mono.Duration(min(1+idle/32, 50))) },
	}
}

// connects are ways to connect that all of the suite is run with.
var connects = []struct {
	name string
	p    verbs.ConnParam
}{
	{"plain", verbs.ConnParam{}},
	{"CRC", verbs.ConnParam{CRC: true}},
	{"markers", verbs.ConnParam{Markers: true}},
	{"both", verbs.ConnParam{CRC: true, Markers: true}},
	{"revision1", verbs.ConnParam{Revision: 1, CRC: true}},
	{"RTRWrite", verbs.ConnParam{RTR: mpa.RTRWrite}},
	{"RTRSend", verbs.ConnParam{RTR: mpa.RTRSend, CRC: true}},
}

// TestVerbsRC_sim runs in virtual time, over streams that are gentle and such
// that are cut anywhere.
func TestVerbsRC_sim(t *testing.T) {
	oneGoroutine(t)
	for _, c := range connects {
		t.Run(c.name, func(t *testing.T) {
			onlyRC(t, func(t *testing.T, hosts int) Net { return simStreams(t, hosts, sim.StreamConfig{}) }, c.p)
		})
	}
	for _, s := range []struct {
		name string
		p    verbs.ConnParam
		c    func() sim.StreamConfig
	}{
		{"jumbo", connects[1].p, func() sim.StreamConfig { return sim.StreamConfig{MSS: 8948} }},
		{"tiny", connects[3].p, func() sim.StreamConfig { return sim.StreamConfig{MSS: 88} }},
		{"random", connects[3].p, func() sim.StreamConfig {
			r := rand.New(rand.NewPCG(1, 1))
			return sim.StreamConfig{Segment: func(_ int, _ int64, n int) int { return 1 + r.IntN(3000) }}
		}},
		{"bytes", connects[0].p, func() sim.StreamConfig {
			return sim.StreamConfig{Segment: func(_ int, off int64, _ int) int {
				if off < 3000 {
					return 1
				}
				return 1000
			}}
		}},
		{"window", connects[6].p, func() sim.StreamConfig { return sim.StreamConfig{SendBuffer: 3001, RecvBuffer: 2003} }},
	} {
		t.Run(s.name, func(t *testing.T) {
			onlyRC(t, func(t *testing.T, hosts int) Net { return simStreams(t, hosts, s.c()) }, s.p)
		})
	}
}

// tcpNet is a network of hosts with kernel TCP.
func tcpNet(arenas [3]*mem.Arena, addr func(i int) netip.Addr, on func(i int, fn func() error) error) Net {
	return Net{Step: yield, On: on, Streams: func(i int) (fabric.Streams, netip.Addr, []io.Closer, error) {
		s, err := ktcp.Open(ktcp.Config{Local: addr(i), Arena: arenas[i]})
		return s, netip.Addr{}, nil, err
	}}
}

// TestVerbsRC_ktcpLoopback runs over kernel TCP on loopback, in both families.
func TestVerbsRC_ktcpLoopback(t *testing.T) {
	arenas := newArenas(t)
	for addr, p := range map[string]verbs.ConnParam{"127.0.0.1": {}, "::1": {CRC: true, Markers: true}} {
		t.Run(addr, func(t *testing.T) {
			onlyRC(t, func(*testing.T, int) Net {
				return tcpNet(arenas, func(int) netip.Addr { return netip.MustParseAddr(addr) }, nil)
			}, p)
		})
	}
}

// TestVerbsRC_ktcpVeth runs over kernel TCP between network namespaces.
func TestVerbsRC_ktcpVeth(t *testing.T) {
	arenas := newArenas(t)
	for _, c := range []struct {
		mtu    int
		family string
		p      verbs.ConnParam
	}{
		{1500, "IPv4", verbs.ConnParam{Markers: true}},
		{9000, "IPv6", verbs.ConnParam{CRC: true}},
	} {
		t.Run(fmt.Sprintf("MTU=%d,%s", c.mtu, c.family), func(t *testing.T) {
			tb := bed(t, c.mtu)
			addrs := addrsOf(t, tb.Testbed, c.family)
			onlyRC(t, func(*testing.T, int) Net {
				return tcpNet(arenas, func(i int) netip.Addr { return addrs[i] }, tb.on)
			}, c.p)
		})
	}
}

// carriersOn is a network of hosts on a testbed, each with the carrier that the
// opener with its number opens. They stay open for all cases.
func carriersOn(t *testing.T, tb *hosts, open ...opener) func(*testing.T, int) Net {
	var all [3]*keptStreams
	for i := range all {
		all[i] = keepOpen(t, tb.Hosts[i], open[i%len(open)])
	}
	return func(*testing.T, int) Net {
		return Net{Step: yield, On: tb.on, Streams: func(i int) (fabric.Streams, netip.Addr, []io.Closer, error) {
			return all[i], netip.Addr{}, nil, nil
		}}
	}
}

// TestVerbsRC_netstack runs over TCP in user space on AF_XDP, at all ends or
// with the kernel's at the others.
func TestVerbsRC_netstack(t *testing.T) {
	if slow {
		t.Skip("the race detector sees the same code in TestStreams_netstack and TestVerbsRC_sim")
	}
	ours := userTCP(bpf.Generic, openOurs)
	for _, c := range []struct {
		name string
		mtu  int
		open []opener
		p    verbs.ConnParam
	}{
		{"generic", 1500, []opener{ours}, verbs.ConnParam{}},
		{"driver", 9000, []opener{userTCP(bpf.Driver, openOurs)}, verbs.ConnParam{CRC: true, Markers: true}},
		{"mixed", 1500, []opener{ours, kernelTCP}, verbs.ConnParam{CRC: true}},
		{"mixedOtherWay", 9000, []opener{kernelTCP, ours}, verbs.ConnParam{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := bed(t, c.mtu)
			onlyRC(t, carriersOn(t, tb, c.open...), c.p)
		})
	}
}

package verbs_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/bond"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
)

// pathFrames is what the pool of a host with two NICs has: what both may receive into,
// and as much to send.
const pathFrames = 2048

// met is when hosts that begin to talk know each other on both networks.
const met = 400 * mono.Millisecond

// withSecond gives each node a second NIC, and has contexts opened on both.
func (f *simFabric) withSecond(mtu int) {
	f.nodes = f.nodes[:len(f.nodes):len(f.nodes)]
	for _, n := range f.nodes {
		b := n.Beside()
		f.second = append(f.second, b)
		f.hops[b.Addr()] = inet.Hop{MAC: b.MAC(), Source: b.Addr(), MTU: mtu}
	}
}

// openBoth opens a context on both NICs of a node.
func (f *simFabric) openBoth(t *sim.Task, i int, key uint64, d dgram.Config) (*verbs.Context, error) {
	pool, err := mem.NewPool(f.nodes[i].Arena(), pathFrames, true)
	if err != nil {
		return nil, err
	}
	var on []fabric.Datagram
	for _, n := range []*sim.Node{f.nodes[i], f.second[i]} {
		ep, err := inet.New(inet.Config{Port: n.OpenOn(pool, nil), Resolver: f.hops, Local: netip.AddrPortFrom(n.Addr(), simPort), MAC: n.MAC()})
		if err != nil {
			return nil, err
		}
		on = append(on, ep)
	}
	dg, err := bond.New(on, 64, t)
	if err != nil {
		return nil, err
	}
	return verbs.New(verbs.Config{
		ZeroBased: true,
		Datagram:  dg, Engine: progress.New(t, t), Key: key, Epoch: uint32(0xffffff00 + i), Dgram: d,
	})
}

// cut makes nothing arrive at a NIC, nor leave it, from one time to another.
func (f *simFabric) cut(n *sim.Node, from, until mono.Duration) {
	f.world.At(mono.Time(from), func() {
		n.Up.CutUntil, n.Down.CutUntil = mono.Time(until), mono.Time(until)
	})
}

// Messages between hosts with two NICs each arrive once and in order, whatever befalls
// one of the networks: while one is dead the other carries them, and nobody waits for
// long.
func TestPaths_oneDies(t *testing.T) {
	const peers = 3
	seeds := uint64(8)
	if verbs.Slow {
		seeds = 1
	}
	quiet, bad := sim.Faults{}, sim.Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.1, Corrupt: 0.02}
	for _, c := range []struct {
		name   string
		faults sim.Faults
		cut    func(f *simFabric)
		left   bool // somebody must leave a path
		large  bool // most messages are long
	}{
		{"none", quiet, func(*simFabric) {}, false, false},
		{"none, bad", bad, func(*simFabric) {}, false, false},
		{"first NIC of one host, for good", quiet, func(f *simFabric) { f.cut(f.nodes[0], met+2*mono.Millisecond, mono.Never.Sub(0)) }, true, false},
		{"second NIC of one host, for good", quiet, func(f *simFabric) { f.cut(f.second[1], met+2*mono.Millisecond, mono.Never.Sub(0)) }, false, false},
		{"first network, for good", quiet, func(f *simFabric) {
			for _, n := range f.nodes {
				f.cut(n, met+2*mono.Millisecond, mono.Never.Sub(0))
			}
		}, true, false},
		{"first NIC of one host, bad", bad, func(f *simFabric) { f.cut(f.nodes[0], met+2*mono.Millisecond, mono.Never.Sub(0)) }, true, false},
		{"in turn, bad", bad, func(f *simFabric) {
			for i := range mono.Duration(10) {
				n := f.nodes[0]
				if i%2 == 1 {
					n = f.second[0]
				}
				f.cut(n, met+(2+40*i)*mono.Millisecond, met+(2+40*i+35)*mono.Millisecond)
			}
		}, true, false},
		{"out only", quiet, func(f *simFabric) {
			f.world.At(mono.Time(met+2*mono.Millisecond), func() { f.nodes[0].Up.CutUntil = mono.Never })
		}, true, false},
		{"in only", quiet, func(f *simFabric) {
			f.world.At(mono.Time(met+2*mono.Millisecond), func() { f.nodes[0].Down.CutUntil = mono.Never })
		}, true, false},
		{name: "large", large: true, cut: func(*simFabric) {}},
		{name: "large, bad", large: true, faults: bad, cut: func(*simFabric) {}},
		{name: "large, second slow", large: true, cut: on(1, rate(1e9))},
		{name: "large, second far, bad", large: true, faults: bad, cut: on(1, delay(300*mono.Microsecond))},
		{name: "large, first far", large: true, cut: on(0, delay(300*mono.Microsecond))},
		{name: "large, loss on second", large: true, cut: on(1, losing(0.2))},
		{name: "large, loss on first", large: true, cut: on(0, losing(0.2))},
		{name: "large, second comes and goes", large: true, faults: bad, cut: func(f *simFabric) {
			for i := range mono.Duration(10) {
				f.cut(f.second[0], met+(2+10*i)*mono.Millisecond, met+(2+10*i+7)*mono.Millisecond)
			}
		}},
		{name: "large, second in only", large: true, cut: func(f *simFabric) {
			f.world.At(mono.Time(met+2*mono.Millisecond), func() { f.second[0].Up.CutUntil = mono.Never })
		}},
		{name: "large, second out only", large: true, cut: func(f *simFabric) {
			f.world.At(mono.Time(met+2*mono.Millisecond), func() { f.second[0].Down.CutUntil = mono.Never })
		}},
		{name: "large, first for good, second slow", large: true, left: true, cut: func(f *simFabric) {
			on(1, rate(1e9))(f)
			f.cut(f.nodes[0], met+2*mono.Millisecond, mono.Never.Sub(0))
		}},
	} {
		if c.large {
			seeds = min(seeds, 2)
		}
		if c.large && verbs.Slow && c.faults == quiet { // a world is one goroutine
			continue
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				t.Parallel()
				f := newSimFabric(sim.Config{Seed: seed, Up: sim.LinkConfig{Faults: c.faults}}, peers)
				f.withSecond(9000)
				c.cut(f)
				left, lost := uint64(0), uint64(0)
				for i := range peers {
					p := &player{f: f, id: i, peers: peers, count: 300, max: 40000}
					if c.large {
						p.count, p.max = 100, 120_000
					}
					f.world.Go(f.nodes[i], fmt.Sprint("rank ", i), func(t *sim.Task) error {
						if err := p.setup(t); err != nil {
							return err
						}
						for t.Now() < mono.Time(met) { // they meet, on the first network
							p.ctx.Engine().Step()
							t.Sleep(1e6)
						}
						defer func() {
							s, _ := p.ctx.Stats()
							left, lost = left+s.PathsLeft, lost+s.PeersLost
						}()
						return p.play(t)
					})
				}
				if err := f.world.Run(); err != nil {
					t.Fatal(err)
				}
				if c.left && left == 0 {
					t.Error("nobody has left a path")
				}
				if took := f.world.Now(); took > 8e9 {
					t.Errorf("it took %v", mono.Duration(took))
				}
				t.Logf("left %d, took %v", left, mono.Duration(f.world.Now()))
			})
		}
	}
}

package verbs_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/verbs"
)

// TestAssoc_nobodyForReliable: a context without a reliable queue pair does not
// mind peers that want one, before there was one and after.
func TestAssoc_nobodyForReliable(t *testing.T) {
	c := newManyPeers(t, 2)
	c.exchange(2)
	c.settle()
	c.server.qp.Destroy()
	key := c.server.mr.RKey()
	c.peers[0].talk(t, key) // to an association that is over
	for range 100 {
		c.clock.now = c.clock.now.Add(mono.Millisecond)
		c.server.ctx.Engine().Step()
		for _, p := range c.peers {
			p.ctx.Engine().Step()
		}
	}
	for i, p := range c.peers {
		if !p.ah.Lost() {
			t.Errorf("peer %d was not told", i)
		}
		var err error
		p.ah, err = p.pd.CreateAH(peerAddr(0)) // begins an association
		must(t, err)
		var wcs [4]verbs.WC
		p.scq.Poll(wcs[:])
		p.talk(t, key)
	}
	for range 1000 {
		c.clock.now = c.clock.now.Add(mono.Millisecond)
		c.server.ctx.Engine().Step()
		for _, p := range c.peers {
			p.ctx.Engine().Step()
		}
	}
	if st, _ := c.server.ctx.Stats(); st.RxStale == 0 || st.RxDuplicate != 0 {
		t.Errorf("%+v", st)
	}
	must(t, c.server.ctx.Close())
}

// TestAssoc_destroyWhileStalled: a Send waits for a receive when the queue pair
// goes away, or its association does.
func TestAssoc_destroyWhileStalled(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(server *member, from *verbs.AH)
	}{
		{"queue pair", func(server *member, _ *verbs.AH) { server.qp.Destroy() }},
		{"handle", func(_ *member, from *verbs.AH) { must(t, from.Destroy()) }},
		{"context", func(server *member, _ *verbs.AH) { must(t, server.ctx.Close()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newManyPeers(t, 1)
			server, p := x.open(100, 4, 4, 4*slotLen), x.peers[0] // a server without receives
			from, err := server.pd.CreateAH(peerAddr(1))
			must(t, err)
			p.ah, err = p.pd.CreateAH(peerAddr(100))
			must(t, err)
			must(t, p.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, InlineData: []byte("x"), AH: p.ah}))
			for i := 0; server.qp.Stats.RecvStalls == 0; i++ {
				x.clock.now = x.clock.now.Add(20 * mono.Microsecond)
				p.ctx.Engine().Step()
				server.ctx.Engine().Step()
			}
			free := x.net.Free()
			c.end(server, from)
			for range 100 {
				x.clock.now = x.clock.now.Add(20 * mono.Microsecond)
				server.ctx.Engine().Step()
				p.ctx.Engine().Step()
			}
			if x.net.Free() < free {
				t.Errorf("%d frames are free, before %d", x.net.Free(), free)
			}
			var wcs [4]verbs.WC
			if n := p.scq.Poll(wcs[:]); n != 1 || wcs[0].Status == verbs.Success {
				t.Errorf("%d completions, %v", n, wcs[0].Status)
			}
			if server.qp.Stats.Recvs != 0 {
				t.Error("a message was received by nobody")
			}
		})
	}
}

// pingPongs has n peers send small messages to a server that answers each. It
// returns the latencies in order, for each peer, and how much was sent again.
// The peer dead, if not 0, is cut off before what is measured begins.
func pingPongs(t *testing.T, n, rounds, dead int) (latencies [][]mono.Duration, resent uint64) {
	t.Helper()
	x := &incast{f: newSimFabric(sim.Config{Seed: 1, MTU: 1500, ArenaSize: 8 << 20}, n+1), n: n}
	latencies = make([][]mono.Duration, n+1)
	living := n
	if dead != 0 {
		living--
	}
	x.f.world.Go(x.f.nodes[0], "server", func(t *sim.Task) error { return x.answer(t, living) })
	for i := 1; i <= n; i++ {
		x.f.world.Go(x.f.nodes[i], fmt.Sprint("peer ", i), func(t *sim.Task) error {
			e, err := x.endpoint(t, i, 4, 4096)
			if err != nil {
				return err
			}
			for !x.ready {
				t.Sleep(mono.Microsecond)
			}
			if e.ah, err = e.pd.CreateAH(x.f.addr(0)); err != nil {
				return err
			}
			for r := range rounds {
				if i == dead && r == rounds/10 {
					x.f.nodes[i].Up.CutUntil, x.f.nodes[i].Down.CutUntil = mono.Never, mono.Never
					return nil // with an answer of the server on its way
				}
				from := t.Now()
				if err := roundTrip(e); err != nil {
					return err
				}
				if r >= rounds/5 {
					latencies[i] = append(latencies[i], t.Now().Sub(from))
				}
			}
			x.ended++
			x.f.nodes[0].Wake()
			return x.finish(e)
		})
	}
	if err := x.f.world.Run(); err != nil {
		t.Fatal(err)
	}
	return latencies, x.resent
}

// roundTrip sends 8 bytes and waits for the answer.
func roundTrip(e *end) error {
	rr := verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{e.mr.SGE(0, 64)}}
	if err := e.qp.PostRecv(&rr); err != nil {
		return err
	}
	if err := e.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: make([]byte, 8), AH: e.ah}); err != nil {
		return err
	}
	var one [1]verbs.WC
	for e.rcq.Poll(one[:]) == 0 {
		step(e.ctx)
	}
	if one[0].Status != verbs.Success {
		return fmt.Errorf("%+v", one[0])
	}
	return nil
}

// answer is the server: every Send is answered until the living peers have ended.
func (x *incast) answer(t *sim.Task, living int) error {
	const recvs = 512
	e, err := x.endpoint(t, 0, recvs, 4096)
	if err != nil {
		return err
	}
	rr := verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{e.mr.SGE(0, 64)}}
	for range recvs {
		if err := e.qp.PostRecv(&rr); err != nil {
			return err
		}
	}
	x.ready = true
	var wcs [32]verbs.WC
	for x.ended < living {
		step(e.ctx)
		for _, wc := range wcs[:e.rcq.Poll(wcs[:])] {
			if wc.Status != verbs.Success {
				return fmt.Errorf("%+v", wc)
			}
			if err := e.qp.PostRecv(&rr); err != nil {
				return err
			}
			if err := e.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: make([]byte, 8), AH: wc.Src}); err != nil {
				return err
			}
		}
	}
	return x.finish(e)
}

// quantile returns a quantile of all latencies.
func quantile(latencies [][]mono.Duration, q float64) mono.Duration {
	all := slices.Sorted(slices.Values(slices.Concat(latencies...)))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// TestScale_latencyFair: 64 peers that ping-pong with one server all wait equally
// long.
func TestScale_latencyFair(t *testing.T) {
	lat, _ := pingPongs(t, 64, 500, 0)
	median, most := quantile(lat, 0.5), quantile(lat, 1)
	t.Logf("median %v, 99 %% %v, most %v", median, quantile(lat, 0.99), most)
	for i, l := range lat[1:] {
		sum := mono.Duration(0)
		for _, d := range l {
			sum += d
		}
		if mean := sum / mono.Duration(len(l)); mean > median*3/2 || mean < median/2 {
			t.Errorf("peer %d waits %v on average; the median of all is %v", i+1, mean, median)
		}
	}
	if most > 20*median {
		t.Errorf("somebody waited %v; the median is %v", most, median)
	}
}

// TestScale_deadPeer: one of many that dies, while the server sends to it, does
// not delay the others.
func TestScale_deadPeer(t *testing.T) {
	without, _ := pingPongs(t, 32, 2000, 0)
	with, resent := pingPongs(t, 32, 2000, 7)
	if resent == 0 {
		t.Error("nothing was sent to the dead peer again")
	}
	for _, q := range []float64{0.5, 0.99, 1} {
		a, b := quantile(without, q), quantile(with, q)
		t.Logf("quantile %.2f: %v, with a dead peer %v", q, a, b)
		if b > a*11/10+5*mono.Microsecond {
			t.Errorf("quantile %.2f is %v with a dead peer, %v without", q, b, a)
		}
	}
}

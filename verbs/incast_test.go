package verbs_test

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
)

// incast is n senders that stream messages of 64 KiB to one receiver, whose
// link is the bottleneck.
type incast struct {
	f       *simFabric
	op      verbs.Opcode
	n       int
	cold    bool      // nobody has heard of anybody before the start
	from    mono.Time // of what is measured
	until   mono.Time
	key     uint32 // of the receiver's memory
	ready   bool
	ended   int
	bytes   []int64 // received in time, by sender
	lost    int     // peers
	dropped fabric.DatagramStats
	resent  uint64
	warm    sim.LinkStats // of the receiver's link at the time from
}

const (
	incastMessage = 64 << 10
	incastFlight  = 4 // messages that a sender has under way
	incastStart   = mono.Time(5 * mono.Millisecond)
)

// endpoint opens a context with a queue pair on node i.
func (x *incast) endpoint(t *sim.Task, i, recvs, memory int) (*end, error) {
	e := &end{}
	var err error
	if e.ctx, err = x.f.open(t, i, 9, dgram.Config{PeerLost: mono.Second}); err != nil {
		return nil, err
	}
	if e.pd, err = e.ctx.AllocPD(); err != nil {
		return nil, err
	}
	e.scq, _ = e.ctx.CreateCQ(verbs.CQInit{Depth: max(16, recvs)})
	e.rcq, _ = e.ctx.CreateCQ(verbs.CQInit{Depth: recvs})
	if e.qp, err = e.pd.CreateQP(verbs.QPInit{
		Type: verbs.RD, SendCQ: e.scq, RecvCQ: e.rcq, Cap: verbs.QPCap{MaxSendWR: max(16, recvs), MaxRecvWR: recvs},
	}); err != nil {
		return nil, err
	}
	at, err := e.ctx.Arena().Alloc(memory, 4096)
	if err != nil {
		return nil, err
	}
	e.mr, err = e.pd.RegMR(e.ctx.Arena().At(at, memory), verbs.LocalWrite|verbs.RemoteWrite)
	return e, err
}

// finish counts what went wrong and closes.
func (x *incast) finish(e *end) error {
	for ev, ok := e.ctx.GetAsyncEvent(); ok; ev, ok = e.ctx.GetAsyncEvent() {
		if ev.Type == verbs.EventPeerLost {
			x.lost++
		}
	}
	st, dg := e.ctx.Stats()
	x.resent += st.TxResent
	x.dropped.RxDropped += dg.RxDropped
	return e.ctx.Close()
}

func (x *incast) receive(t *sim.Task) error {
	const recvs = 512
	e, err := x.endpoint(t, 0, recvs, incastMessage)
	if err != nil {
		return err
	}
	post := func() error {
		return e.qp.PostRecv(&verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{e.mr.SGE(0, incastMessage)}})
	}
	for range recvs {
		if err := post(); err != nil {
			return err
		}
	}
	x.key, x.ready = e.mr.RKey(), true
	var wcs [32]verbs.WC
	for x.ended < x.n {
		step(e.ctx)
		for _, wc := range wcs[:e.rcq.Poll(wcs[:])] {
			if wc.Status != verbs.Success || wc.ByteLen != incastMessage {
				return fmt.Errorf("receive completion %+v", wc)
			}
			if err := post(); err != nil {
				return err
			}
		}
	}
	return x.finish(e)
}

// step makes an engine go on, and waits when there is nothing to do.
func step(c *verbs.Context) {
	if c.Engine().Step() == 0 {
		c.Engine().Park()
	}
}

func (x *incast) send(t *sim.Task, i int) error {
	e, err := x.endpoint(t, i, 4, incastMessage)
	if err != nil {
		return err
	}
	for !x.ready || x.cold && t.Now() < incastStart {
		t.Sleep(mono.Microsecond)
	}
	if e.ah, err = e.pd.CreateAH(x.f.addr(0)); err != nil {
		return err
	}
	if !x.cold {
		if err := x.acquaint(t, e); err != nil {
			return err
		}
	}
	flight := 0
	var wcs [incastFlight]verbs.WC
	for open := true; open || flight > 0; open = t.Now() < x.until {
		for ; open && flight < incastFlight; flight++ {
			wr := verbs.SendWR{
				Opcode: x.op, Flags: verbs.Signaled, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{e.mr.SGE(0, incastMessage)}, AH: e.ah,
			}
			if x.op == verbs.OpRDMAWrite {
				wr.RKey = x.key
			}
			if err := e.qp.PostSend(&wr); err != nil {
				return err
			}
		}
		step(e.ctx)
		for _, wc := range wcs[:e.scq.Poll(wcs[:])] {
			if wc.Status != verbs.Success {
				return fmt.Errorf("sender %d at %v: %+v", i, t.Now(), wc)
			}
			flight--
			if now := t.Now(); now >= x.from && now < x.until {
				x.bytes[i-1] += incastMessage
			}
		}
	}
	x.ended++
	x.f.nodes[0].Wake()
	return x.finish(e)
}

// acquaint writes a little, so that the path is known, and waits for the common
// start.
func (x *incast) acquaint(t *sim.Task, e *end) error {
	wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.Inline | verbs.Signaled, InlineData: make([]byte, 8), RKey: x.key, AH: e.ah}
	if err := e.qp.PostSend(&wr); err != nil {
		return err
	}
	var one [1]verbs.WC
	for e.scq.Poll(one[:]) == 0 {
		step(e.ctx)
	}
	for t.Now() < incastStart {
		if e.ctx.Engine().Step() == 0 {
			t.Sleep(mono.Microsecond)
		}
	}
	return nil
}

// jain is the fairness index of Jain, Chiu and Hawe: 1 when all are equal, 1/n
// when one has all.
func jain(share []int64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range share {
		sum += float64(x)
		squares += float64(x) * float64(x)
	}
	return sum * sum / (float64(len(share)) * squares)
}

// runIncast returns the receiver's link, the fraction of its speed that arrived
// as payload, and the fairness.
func runIncast(t *testing.T, c sim.Config, op verbs.Opcode, n int, length mono.Duration, cold bool) (x *incast, goodput float64, hash uint64) {
	t.Helper()
	c.ArenaSize = 8 << 20
	x = &incast{
		f: newSimFabric(c, n+1), op: op, n: n, cold: cold, bytes: make([]int64, n),
		from: mono.Time(length / 4), until: mono.Time(length),
	}
	x.f.world.Go(x.f.nodes[0], "receiver", x.receive)
	for i := 1; i <= n; i++ {
		x.f.world.Go(x.f.nodes[i], fmt.Sprint("sender ", i), func(t *sim.Task) error { return x.send(t, i) })
	}
	x.f.world.At(x.from, func() { x.warm = x.f.nodes[0].Down.Stats() })
	if err := x.f.world.Run(); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, b := range x.bytes {
		total += b
	}
	bits := float64(x.f.nodes[0].Down.BitsPerSecond) * float64(x.until.Sub(x.from)) / 1e9
	return x, float64(total) * 8 / bits, x.f.world.TraceHash()
}

// TestIncast_fair: many senders to one receiver lose nothing to speak of, fill
// its link, and get equal parts of it, be it that they have met before, or that
// all begin with their first Hello at the same time.
func TestIncast_fair(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     verbs.Opcode
		n, mtu int
		length mono.Duration
		queue  int // bytes
		cold   bool
	}{
		{"8 writes", verbs.OpRDMAWrite, 8, 9000, 80 * mono.Millisecond, 256 << 10, false},
		{"8 sends", verbs.OpSend, 8, 9000, 80 * mono.Millisecond, 256 << 10, false},
		{"8 writes, MTU 1500", verbs.OpRDMAWrite, 8, 1500, 60 * mono.Millisecond, 256 << 10, false},
		{"64 writes", verbs.OpRDMAWrite, 64, 9000, 200 * mono.Millisecond, 1 << 20, false},
		{"64 sends", verbs.OpSend, 64, 9000, 200 * mono.Millisecond, 1 << 20, false},
		{"64 writes, MTU 1500", verbs.OpRDMAWrite, 64, 1500, 160 * mono.Millisecond, 256 << 10, false},
		{"8 strangers write", verbs.OpRDMAWrite, 8, 9000, 80 * mono.Millisecond, 256 << 10, true},
		{"64 strangers write", verbs.OpRDMAWrite, 64, 9000, 200 * mono.Millisecond, 1 << 20, true},
		{"64 strangers send", verbs.OpSend, 64, 9000, 200 * mono.Millisecond, 1 << 20, true},
		{"64 strangers write, MTU 1500", verbs.OpRDMAWrite, 64, 1500, 160 * mono.Millisecond, 256 << 10, true},
	} {
		if verbs.Slow && c.n > 8 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range max(2, 16/uint64(c.n)) {
				config := sim.Config{Seed: seed, MTU: c.mtu, Down: sim.LinkConfig{Queue: c.queue}}
				x, goodput, _ := runIncast(t, config, c.op, c.n, c.length, c.cold)
				link := x.f.nodes[0].Down.Stats()
				full, passed := link.QueueFull-x.warm.QueueFull, link.Frames-x.warm.Frames
				lost := float64(full) / float64(full+passed)
				fair := jain(x.bytes)
				t.Logf("seed %d: goodput %.3f, Jain %.4f, queue %d KiB, lost in it %.4f (%d before), at the receiver %d",
					seed, goodput, fair, link.QueueMax>>10, lost, x.warm.QueueFull, x.dropped.RxDropped)
				if goodput < 0.9 || fair < 0.95 || lost > 0.01 || x.lost != 0 {
					t.Errorf("seed %d: goodput %.3f, Jain %.4f, lost %.4f, %d peers lost; want 0.9, 0.95, less than 0.01, 0",
						seed, goodput, fair, lost, x.lost)
				}
			}
		})
	}
}

// TestIncast_repeats: the same seed gives the same run.
func TestIncast_repeats(t *testing.T) {
	hash := func(seed uint64) uint64 {
		_, _, h := runIncast(t, sim.Config{Seed: seed, MTU: 1500}, verbs.OpSend, 8, 10*mono.Millisecond, false)
		return h
	}
	if a, b := hash(1), hash(1); a != b {
		t.Errorf("two runs with one seed differ: %x and %x", a, b)
	}
	if hash(1) == hash(2) {
		t.Error("two seeds give one run")
	}
}

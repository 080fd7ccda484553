package reliable

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/addrtable"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/internal/test/mesh"
	"github.com/xwarp/xwarp/verbs"
)

// rig is two endpoints on queue pairs of verbs, over a mesh that loses what the
// test says, with a clock that the test moves.
type rig struct {
	t     testing.TB
	now   mono.Time
	net   *mesh.Net
	ends  [2]*rigEnd
	loses func() bool
}

type rigEnd struct {
	*QueuePair
	carrier fabric.Datagram
	ctx     *verbs.Context
	pd      *verbs.PD
	peer    *Peer
	mr      *verbs.MR
	got     [][]byte
	wcs     []verbs.WC
}

// secondPort is how much higher the port of the second path is (docs/PROTOCOL.md,
// section 4).
const secondPort = 8192

// toArena puts the memory of an end into the arena, from where it can be sent without
// a copy.
func (e *rigEnd) toArena(t testing.TB) {
	const n = 1 << 20
	at, err := e.ctx.Arena().Alloc(n, mem.FrameSize)
	must(t, err)
	e.mr, err = e.pd.RegMR(e.ctx.Arena().At(at, n), verbs.LocalWrite|verbs.RemoteWrite)
	must(t, err)
}

// Now implements mono.Clock.
func (r *rig) Now() mono.Time { return r.now }

// Park implements progress.Parker.
func (r *rig) Park(mono.Time, mono.Duration) bool { return false }

func newRig(t testing.TB, payload int) *rig { return newRigOf(t, payload, false) }

// newRigOf returns a rig, with a second path for large data or without.
func newRigOf(t testing.TB, payload int, second bool) *rig {
	t.Helper()
	return newRigWith(t, payload, second, func(d fabric.Datagram) fabric.Datagram { return d })
}

// newRigWith returns a rig on carriers that wrap makes of those of the mesh.
func newRigWith(t testing.TB, payload int, second bool, wrap func(fabric.Datagram) fabric.Datagram) *rig {
	t.Helper()
	r := &rig{t: t, now: 1, loses: func() bool { return false }}
	var err error
	r.net, err = mesh.New(mesh.Config{MaxPayload: payload, Arena: 16 << 20})
	must(t, err)
	r.net.Wire = func(from, to fabric.Remote, b []byte) {
		if !r.loses() {
			r.net.Deliver(from, to, b)
		}
	}
	addrs := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:18700"), netip.MustParseAddrPort("10.0.0.2:18700")}
	for i := range r.ends {
		e := &rigEnd{carrier: wrap(r.net.Open(addrs[i], 0))}
		c := verbs.Config{Datagram: e.carrier, Engine: progress.New(r, r), Key: 7, Epoch: uint32(i + 1)}
		if second {
			c.Bulk = r.net.Open(netip.AddrPortFrom(addrs[i].Addr(), addrs[i].Port()+secondPort), 0)
		}
		e.ctx, err = verbs.New(c)
		must(t, err)
		e.pd, err = e.ctx.AllocPD()
		must(t, err)
		e.QueuePair, err = New(e.ctx, e.pd, Config{MaxMessage: 20000, MaxSendWR: 32, ARQ: arq.Config{PeerLost: mono.Second}})
		must(t, err)
		e.mr, err = e.pd.RegMR(make([]byte, 1<<20), verbs.LocalWrite|verbs.RemoteWrite)
		must(t, err)
		r.ends[i] = e
	}
	for i, e := range r.ends {
		other := r.ends[1-i]
		ah, err := e.pd.CreateAH(addrs[1-i])
		must(t, err)
		e.peer, err = e.Peer(ah, other.Num(), other.Segment(), other.ctx.Epoch())
		must(t, err)
	}
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// step moves everything and lets d pass.
func (r *rig) step(d mono.Duration) {
	for _, e := range r.ends {
		e.ctx.Engine().Step()
		var wcs [16]verbs.WC
		n, _ := e.Poll(r.now, wcs[:])
		for i := range wcs[:n] {
			wc := &wcs[i]
			if wc.Opcode != verbs.OpRecv {
				e.wcs = append(e.wcs, *wc)
				continue
			}
			e.got = append(e.got, bytes.Clone(e.Message(wc)))
			e.Release(wc)
		}
	}
	r.now = r.now.Add(d)
}

// until steps until done says so.
func (r *rig) until(what string, done func() bool) {
	r.t.Helper()
	for range 200_000 {
		if done() {
			return
		}
		r.step(20 * mono.Microsecond)
	}
	r.t.Fatalf("%s: it does not happen", what)
}

func (e *rigEnd) inline(id uint64, b []byte) *verbs.SendWR {
	return &verbs.SendWR{WRID: id, Opcode: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, InlineData: b}
}

func (e *rigEnd) long(id uint64, op verbs.Opcode, at, n int) *verbs.SendWR {
	wr := &verbs.SendWR{WRID: id, Opcode: op, Flags: verbs.Signaled, NumSGE: 1}
	wr.SGL[0] = e.mr.SGE(at, n)
	return wr
}

// Messages and Writes of all sizes, one after the other, over a carrier that
// loses: what arrives is what was sent.
func TestQueuePair_everySize(t *testing.T) {
	for _, payload := range []int{1472, 8972, 20000} {
		for _, loss := range []float64{0, 0.15} {
			r := newRig(t, payload)
			r.ends[0].toArena(t)
			rng := rand.New(rand.NewPCG(1, uint64(payload)))
			r.loses = func() bool { return rng.Float64() < loss }
			a, b := r.ends[0], r.ends[1]
			for i := range a.mr.Bytes() {
				a.mr.Bytes()[i] = byte(rng.Uint32())
			}
			sizes := []int{0, 1, MaxInline, int(a.part) - 1, int(a.part), int(a.part) + 1, 20000, 100_000}
			for k, n := range sizes {
				id := uint64(k)
				at := rng.IntN(1 << 19)
				write := a.long(id, verbs.OpRDMAWrite, at, n)
				write.RKey, write.RemoteAddr = b.mr.RKey(), b.mr.Addr()+77
				must(t, a.PostSend(a.peer, write))
				n = min(n, 20000)
				must(t, a.PostSend(a.peer, a.long(id, verbs.OpSend, at, n)))
				r.until("a message", func() bool { return len(b.got) == 1 && len(a.wcs) == 2 })
				if got := b.got[0]; !bytes.Equal(got, a.mr.Bytes()[at:at+n]) {
					t.Fatalf("a message of %d bytes came as one of %d", n, len(got))
				}
				if n := sizes[k]; !bytes.Equal(b.mr.Bytes()[77:77+n], a.mr.Bytes()[at:at+n]) {
					t.Fatalf("a Write of %d bytes went wrong", n)
				}
				if stats, _ := a.ctx.Stats(); sizes[k] > 4*payload && payload > 8000 && stats.TxDirect == 0 {
					t.Fatal("nothing was sent from where it lies")
				}
				for i, op := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpSend} {
					if wc := a.wcs[i]; wc.WRID != id || wc.Status != verbs.Success || wc.Opcode != op {
						t.Fatalf("%+v", wc)
					}
				}
				a.wcs, b.got = a.wcs[:0], b.got[:0]
			}
			if loss > 0 && a.Resent == 0 {
				t.Error("nothing was sent again, and a part of it was lost")
			}
		}
	}
}

// A Write that is sent again must not be placed again: by then the target's
// user may have put something else there.
func TestQueuePair_writesOnce(t *testing.T) {
	r := newRig(t, 1472)
	a, b := r.ends[0], r.ends[1]
	wr := a.long(1, verbs.OpRDMAWrite, 0, 100)
	wr.RKey, wr.RemoteAddr = b.mr.RKey(), b.mr.Addr()
	a.mr.Bytes()[0] = 1
	lost := 0
	must(t, a.PostSend(a.peer, wr))
	r.loses = func() bool { lost++; return lost <= 3 } // what comes back
	r.until("the Write", func() bool { return b.mr.Bytes()[0] == 1 })
	b.mr.Bytes()[0] = 9
	r.until("the acknowledgement", func() bool { return len(a.wcs) == 1 })
	if b.mr.Bytes()[0] != 9 || a.Resent == 0 {
		t.Errorf("byte 0 is %d, %d chunks were sent again", b.mr.Bytes()[0], a.Resent)
	}
}

func TestQueuePair_fullQueue(t *testing.T) {
	r := newRig(t, 1472)
	r.loses = func() bool { return true }
	a, b := r.ends[0], r.ends[1]
	posted := 0
	for ; posted < 100; posted++ {
		err := a.PostSend(a.peer, a.inline(uint64(posted), []byte{byte(posted)}))
		if errors.Is(err, verbs.ErrQueueFull) {
			break
		}
		must(t, err)
	}
	if posted != 32 {
		t.Errorf("%d requests were taken, want 32", posted)
	}
	r.loses = func() bool { return false }
	r.until("all messages", func() bool { return len(b.got) == posted && len(a.wcs) == posted })
	for i, got := range b.got {
		if len(got) != 1 || int(got[0]) != i {
			t.Fatalf("message %d is % x", i, got)
		}
	}
}

// A silent peer is lost: the first request says so, the others are flushed, and
// so are those that are posted later.
func TestQueuePair_lostPeer(t *testing.T) {
	r := newRig(t, 1472)
	a, b := r.ends[0], r.ends[1]
	must(t, a.PostSend(a.peer, a.inline(0, nil)))
	r.until("the first", func() bool { return len(a.wcs) == 1 })
	r.loses = func() bool { return true }
	for i := range 3 {
		must(t, a.PostSend(a.peer, a.inline(uint64(i+1), nil)))
	}
	r.until("the loss", func() bool { return len(a.wcs) == 4 })
	if r.now < mono.Time(mono.Second) || !a.peer.Lost() || b.peer.Lost() {
		t.Errorf("at %v, lost: %v, %v", r.now, a.peer.Lost(), b.peer.Lost())
	}
	must(t, a.PostSend(a.peer, a.inline(4, nil)))
	r.loses = func() bool { return false }
	must(t, b.PostSend(b.peer, b.inline(0, []byte("too late"))))
	r.until("the last", func() bool { return len(a.wcs) == 5 && a.Foreign > 0 })
	for i, want := range []verbs.Status{verbs.Success, verbs.RetryExcErr, verbs.WRFlushErr, verbs.WRFlushErr, verbs.WRFlushErr} {
		if wc := a.wcs[i]; wc.Status != want || wc.WRID != uint64(i) {
			t.Errorf("completion %d: %+v", i, wc)
		}
	}
	if len(a.got) != 0 {
		t.Error("a lost peer is still heard")
	}
}

// A path that swallows what is long, and nothing else, is the loss of the peer for who has
// to send that: the peer asks, and answers, and yet nothing can reach it.
func TestQueuePair_pathSwallows(t *testing.T) {
	r := newRig(t, 1472)
	a, b := r.ends[0], r.ends[1]
	must(t, b.PostSend(b.peer, b.inline(0, nil)))
	r.until("the first", func() bool { return len(b.wcs) == 1 })
	r.net.Wire = func(from, to fabric.Remote, d []byte) {
		if len(d) < 600 {
			r.net.Deliver(from, to, d)
		}
	}
	must(t, a.PostSend(a.peer, a.long(1, verbs.OpSend, 0, 1000)))
	start := r.now
	for !a.peer.Lost() && r.now < start.Add(30*mono.Second) {
		r.step(mono.Millisecond)
	}
	if took := r.now.Sub(start); !a.peer.Lost() || took < mono.Second || len(a.wcs) != 1 || a.wcs[0].Status != verbs.RetryExcErr {
		t.Errorf("after %v, lost: %v, %+v", took, a.peer.Lost(), a.wcs)
	}
	if b.Asks == 0 {
		t.Error("the peer has not asked meanwhile")
	}
}

// The user knows that the peer is gone: it need not be silent for long first.
func TestQueuePair_abandon(t *testing.T) {
	r := newRig(t, 1472)
	a := r.ends[0]
	r.loses = func() bool { return true }
	must(t, a.PostSend(a.peer, a.inline(0, nil)))
	must(t, a.PostSend(a.peer, a.long(1, verbs.OpSend, 0, 20_000)))
	r.step(mono.Microsecond)
	a.Abandon(a.peer)
	a.Abandon(a.peer)
	must(t, a.PostSend(a.peer, a.inline(2, nil)))
	r.until("the end", func() bool { return len(a.wcs) == 3 })
	if r.now > mono.Time(mono.Second) || !a.peer.Lost() || a.Lost() != nil || len(a.requests.free) != 32 {
		t.Errorf("at %v, %d requests are free", r.now, len(a.requests.free))
	}
}

func TestQueuePair_refuses(t *testing.T) {
	r := newRig(t, 1472)
	a := r.ends[0]
	two := a.long(0, verbs.OpSend, 0, 10)
	two.NumSGE = 2
	for name, wr := range map[string]*verbs.SendWR{
		"an RDMA Read":     a.long(0, verbs.OpRDMARead, 0, 10),
		"two elements":     two,
		"too long":         a.long(0, verbs.OpSend, 0, 20001),
		"too long, inline": a.inline(0, make([]byte, MaxInline+1)),
	} {
		if err := a.PostSend(a.peer, wr); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []Config{{}, {MaxMessage: -1}, {MaxMessage: 1, MaxSendWR: -1}, {MaxMessage: 1, Buffer: -1}} {
		if _, err := New(a.ctx, a.pd, c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	if _, err := a.Peer(a.peer.ah, 2, a.Segment()-1, 1); err == nil {
		t.Error("a peer with another MTU was taken")
	}
}

// Packets of strangers change nothing.
func TestQueuePair_strangers(t *testing.T) {
	r := newRig(t, 1472)
	a, b := r.ends[0], r.ends[1]
	b.peers = addrtable.Table[Peer]{}
	must(t, a.PostSend(a.peer, a.inline(1, []byte("who?"))))
	for range 100 {
		r.step(10 * mono.Microsecond)
	}
	if len(b.got) != 0 || b.Foreign == 0 || b.spare != len(b.protocol.rx)/b.stride {
		t.Errorf("%d messages, %d packets of strangers, %d receive buffers", len(b.got), b.Foreign, b.spare)
	}
	wr := a.long(2, verbs.OpRDMAWrite, 0, 10)
	wr.RKey, wr.RemoteAddr = b.mr.RKey(), b.mr.Addr()
	foreign := b.Foreign
	must(t, a.PostSend(a.peer, wr))
	for range 100 {
		r.step(10 * mono.Microsecond)
	}
	if b.Foreign <= foreign {
		t.Error("a chunk of a stranger was not noticed")
	}
}

// What comes from the address of a peer, and from another life of its endpoint or for
// another one of this, is a stranger's: the UDP checksum does not cover the address.
func TestQueuePair_epochs(t *testing.T) {
	r := newRig(t, 1472)
	a, b := r.ends[0], r.ends[1]
	try := func() {
		t.Helper()
		write := a.long(2, verbs.OpRDMAWrite, 0, 10)
		write.RKey, write.RemoteAddr = b.mr.RKey(), b.mr.Addr()
		must(t, a.PostSend(a.peer, a.inline(1, []byte("who?"))))
		must(t, a.PostSend(a.peer, write))
		for range 100 {
			r.step(10 * mono.Microsecond)
		}
		if len(b.got) != 0 || len(a.wcs) != 0 {
			t.Errorf("%d messages arrived, %d requests are complete", len(b.got), len(a.wcs))
		}
	}
	a.peer.ah.SetEpoch(b.ctx.Epoch() + 1)
	try()
	if stats, _ := b.ctx.Stats(); b.Foreign != 0 || stats.RxStale == 0 {
		t.Errorf("%d datagrams for another endpoint, %d taken for strangers'", stats.RxStale, b.Foreign)
	}
	a.peer.ah.SetEpoch(b.ctx.Epoch())
	r.until("everything", func() bool { return len(b.got) == 1 && len(a.wcs) == 2 })
	a.wcs, b.got = nil, nil
	b.peer.epoch++
	if try(); b.Foreign == 0 {
		t.Error("a stranger was not noticed")
	}
}

func TestAllocs_QueuePair(t *testing.T) {
	r := newRig(t, 1472)
	a, b := r.ends[0], r.ends[1]
	small := a.inline(1, make([]byte, 100))
	large := a.long(2, verbs.OpSend, 0, 5000)
	write := a.long(3, verbs.OpRDMAWrite, 0, 5000)
	write.RKey, write.RemoteAddr = b.mr.RKey(), b.mr.Addr()
	var wcs [16]verbs.WC
	round := func() {
		must(t, a.PostSend(a.peer, small))
		must(t, a.PostSend(a.peer, write))
		must(t, a.PostSend(a.peer, large))
		for left := 5; left > 0; {
			for _, e := range r.ends {
				e.ctx.Engine().Step()
				n, _ := e.Poll(r.now, wcs[:])
				for i := range wcs[:n] {
					if left--; wcs[i].Opcode == verbs.OpRecv {
						e.Release(&wcs[i])
					}
				}
			}
			r.now = r.now.Add(5 * mono.Microsecond)
		}
	}
	for range 20 {
		round()
	}
	if n := testing.AllocsPerRun(200, round); n != 0 {
		t.Errorf("%v allocations for two messages and a Write", n)
	}
	if a.Resent != 0 {
		t.Errorf("%d packets were sent again, and nothing was lost", a.Resent)
	}
}

// Who only waits for a peer hears of its loss too, and a peer that is there is
// asked now and then and not lost.
func TestQueuePair_keepAlive(t *testing.T) {
	r := newRig(t, 1472)
	a, b := r.ends[0], r.ends[1]
	must(t, a.PostSend(a.peer, a.inline(0, nil)))
	for r.now < mono.Time(4*mono.Second) {
		r.step(mono.Millisecond)
	}
	if a.Lost() != nil || b.Lost() != nil || a.Asks+b.Asks == 0 || a.Asks+b.Asks > 40 {
		t.Fatalf("after 4 s, %d and %d times asked whether the peer is there", a.Asks, b.Asks)
	}
	r.loses = func() bool { return true }
	start := r.now
	r.until("the loss", func() bool { return b.peer.Lost() })
	if took := r.now.Sub(start); took < mono.Second || took > 3*mono.Second || b.Lost() != b.peer || b.Lost() != nil {
		t.Errorf("lost after %v", took)
	}
}

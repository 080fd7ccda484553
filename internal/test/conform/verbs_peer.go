package conform

import (
	"math/rand/v2"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/verbs"
)

// peerCases are about peers that end, vanish and come back.
var peerCases = []verbsCase{
	{name: "peerCloses", on: onRD, hosts: 3, run: peerCloses},
	{name: "peerVanishes", on: onRD, hosts: 3, impatient: true, run: peerVanishes},
	{name: "peerRestarts", on: onRD, hosts: 3, run: peerRestarts},
	{name: "peerRestartsUD", on: onUD, hosts: 3, run: peerRestartsUD},
	{name: "cutOffForAWhile", on: onRD, hosts: 3, run: cutOffForAWhile},
	{name: "handleDestroyed", on: onRD, hosts: 3, run: handleDestroyed},
	{name: "nobodyThere", on: onUD, run: nobodyThere},
	{name: "alien", on: onBoth, hosts: 3, alien: true, run: alien},
	{name: "garbage", on: onBoth, hosts: 3, run: garbage},
}

// lost waits until a hears that b is lost, and checks that its requests have
// ended, the first with the reason, and that the handle is dead for new ones.
func (r *rig) lost(a, b *host, ids []uint64, events ...verbs.EventType) {
	r.t.Helper()
	for _, id := range ids {
		wc := r.next(a.scq)
		if wc.WRID != id || wc.Status != verbs.RetryExcErr && wc.Status != verbs.WRFlushErr {
			r.t.Fatalf("completion %+v, want request %d to fail", wc, id)
		}
	}
	a.hears(b, events...)
	if !a.ahs[b.i].Lost() {
		r.t.Error("the handle is said to be alive")
	}
	wr := a.wr(verbs.OpSend, b, a.region(8, 0).SGE(0, 8))
	a.post(wr)
	if wc := r.next(a.scq); wc.WRID != wr.WRID || wc.Status == verbs.Success {
		r.t.Errorf("completion %+v of what was posted to a lost peer", wc)
	}
}

// sendInVain posts Sends that find no receive.
func (r *rig) sendInVain(a, b *host) (ids []uint64) {
	r.t.Helper()
	src := a.region(5000, 0)
	for range 3 {
		wr := a.wr(verbs.OpSend, b, src.SGE(0, 5000))
		a.post(wr)
		ids = append(ids, wr.WRID)
	}
	return ids
}

// peerCloses ends a context in an orderly way, with requests to it unfinished.
func peerCloses(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	r.exchange(a, b)
	r.exchange(b, c)
	ids := r.sendInVain(a, b)
	for range 200 {
		r.turn()
	}
	b.close()
	r.lost(a, b, ids, verbs.EventPeerRestarted, verbs.EventPeerLost) // it says goodbye once, or that it does not know us
	r.exchange(a, c)
	b.open()
	b.introduce(a)
	b.introduce(c)
	r.exchange(a, b)
	r.exchange(b, c)
}

// introduce lets a host in its new life speak to a peer first, which proves to
// the peer that it is another one.
func (h *host) introduce(peer *host) {
	h.r.t.Helper()
	h.meet(peer)
	dst := peer.region(8, verbs.LocalWrite|verbs.RemoteWrite)
	h.do(at(h.wr(verbs.OpRDMAWrite, peer, h.region(8, 0).SGE(0, 8)), dst, 0))
	peer.meet(h)
}

// peerVanishes stops a host without a word.
func peerVanishes(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	r.exchange(a, b)
	b.wire.cut, b.still = true, true
	ids := r.sendInVain(a, b)
	r.lost(a, b, ids, verbs.EventPeerLost)
	r.exchange(a, c)
}

// peerRestarts takes a host away and puts another in its place that knows
// nothing: the old handle fails, a new one works.
func peerRestarts(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	r.exchange(a, b)
	r.exchange(b, c)
	ids := r.sendInVain(a, b)
	b.wire.cut = true // it cannot say goodbye
	b.close()
	b.open()
	old := a.ahs[b.i]
	b.introduce(a)
	if a.ahs[b.i] == old {
		r.t.Fatal("the handle is the old one")
	}
	a.ahs[b.i] = old
	r.lost(a, b, ids, verbs.EventPeerRestarted)
	a.meet(b)
	r.exchange(a, b)
	r.exchange(a, c)
	// c speaks first.
	b.meet(c)
	old = c.ahs[b.i]
	send := c.wr(verbs.OpSend, b, c.region(8, 0).SGE(0, 8))
	c.post(send)
	if wc := r.next(c.scq); wc.WRID != send.WRID || wc.Status != verbs.RetryExcErr && wc.Status != verbs.WRFlushErr {
		r.t.Errorf("completion %+v of what was sent to the life before", wc)
	}
	c.hears(b, verbs.EventPeerRestarted)
	if c.meet(b); c.ahs[b.i] == old {
		r.t.Fatal("the handle is the old one")
	}
	r.exchange(b, c)
}

// peerRestartsUD has nobody to tell: handles stay as they are.
func peerRestartsUD(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	r.exchange(a, b)
	b.close()
	src := a.region(100, 0).fill(1)
	a.do(func() verbs.SendWR {
		wr := a.wr(verbs.OpSend, nil, src.SGE(0, 100))
		wr.AH, wr.RemoteQPN = a.ahs[b.i], 2
		return wr
	}()) // into the void
	r.exchange(a, c)
	b.open()
	b.meet(a)
	b.meet(c)
	// The carrier may need a moment to notice.
	dst := b.region(100, verbs.LocalWrite)
	id := b.recv(a, dst.SGE(0, 100))
	for b.rcq.Len() == 0 {
		a.do(a.wr(verbs.OpSend, b, src.SGE(0, 100)))
		r.rest(mono.Millisecond)
	}
	b.received(id, verbs.OpRecv, a)
	dst.equals(src.b)
	c.meet(b)
	r.exchange(a, b)
	r.exchange(b, c)
}

// cutOffForAWhile loses everything that two hosts say for some round trips.
// Nothing of it is lost for good, and the third hears nothing of it.
func cutOffForAWhile(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	const size = 100_000
	src, dst := a.region(size, 0), b.region(size, verbs.LocalWrite|verbs.RemoteWrite)
	for i := range 5 {
		wr := at(a.wr(verbs.OpRDMAWrite, b, src.fill(i).SGE(0, size)), dst, 0)
		a.post(wr)
		b.wire.cut = true
		r.exchange(a, c)
		r.rest(10 * mono.Millisecond)
		b.wire.cut = false
		a.sent(&wr, verbs.Success)
		dst.equals(src.b)
		r.exchange(a, b)
	}
}

// handleDestroyed ends an association from one end.
func handleDestroyed(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	r.exchange(a, b)
	ids := r.sendInVain(a, b)
	r.must(a.ahs[b.i].Destroy())
	r.flushed(a.scq, ids)
	r.exchange(a, c)
	r.exchange(b, c)
	r.again(a, b)
}

// nobodyThere sends to where nobody listens any more.
func nobodyThere(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	r.exchange(a, b)
	qpn := b.qp.Num()
	b.qp.Destroy()
	for range 10 {
		wr := a.wr(verbs.OpSend, b, a.region(8, 0).SGE(0, 8))
		wr.RemoteQPN = qpn
		a.do(wr)
	}
	r.rest(5 * mono.Millisecond) // the next queue pair may have the same number
	var err error
	b.qp, err = b.pd.CreateQP(verbs.QPInit{Type: r.typ, SendCQ: b.scq, RecvCQ: b.rcq})
	r.must(err)
	r.exchange(a, b)
}

// alien sends from another job, which knows everything but the job's key: it is
// not heard.
func alien(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	src, dst := c.region(8, 0).fill(1), b.region(8, verbs.LocalWrite|verbs.RemoteWrite)
	ops := []verbs.Opcode{verbs.OpSend, verbs.OpRDMAWriteRecord}
	if r.typ == verbs.RD {
		ops = append(ops, verbs.OpRDMAWrite)
	}
	for _, op := range ops {
		wr := at(c.wr(op, b, src.SGE(0, 8)), dst, 0)
		wr.Flags = 0
		c.post(wr)
	}
	r.until(func() bool {
		s, d := b.ctx.Stats()
		return s.RxForeign+d.RxForged > 0
	})
	r.exchange(a, b)
	dst.is(0, nil)
	if b.qp.Stats.Recvs != 1 {
		r.t.Errorf("%d messages are counted", b.qp.Stats.Recvs)
	}
	c.qp.Destroy()
	for c.scq.Len() > 0 { // flushed
		r.next(c.scq)
	}
}

// garbage sends datagrams of all lengths that make no sense, from the address
// of a host that is known: nobody is disturbed, the host itself included.
func garbage(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	r.exchange(b, c)
	d := c.wire.Datagram
	to, err := d.Resolve(b.addr)
	r.must(err)
	rng := rand.New(rand.NewPCG(1, 2))
	most := min(d.Caps().MaxPayload, mem.FrameSize-d.Caps().Headroom)
	for round := range 20 {
		batch := fabric.NewBatch(8, 1)
		for i := range 8 {
			f, ok := d.Frame()
			if !ok {
				break
			}
			f += mem.Addr(d.Caps().Headroom)
			n := rng.IntN(min(most, 1+60*round))
			p := d.Arena().At(f, n)
			for k := range p {
				p[k] = byte(rng.Uint32())
			}
			if n > 5 && i%2 == 0 {
				p[4] = 2<<4 | byte(i) // our version, and some type
			}
			batch.Pkts = append(batch.Pkts, fabric.Packet{First: int32(i), Bufs: 1, Len: int32(n), To: to, Sealed: true})
			batch.Descs = append(batch.Descs, fabric.Desc{Addr: f, Len: uint32(n)})
		}
		d.Send(batch)
		d.Flush()
		for range 5 {
			r.turn()
		}
	}
	r.until(func() bool {
		s, _ := b.ctx.Stats()
		return s.RxMalformed+s.RxForeign+s.RxCorrupt >= 80
	})
	r.exchange(a, b)
	r.exchange(b, c)
}

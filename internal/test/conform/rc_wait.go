package conform

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"

	"github.com/xwarp/xwarp/verbs"
)

// rcWaitCases are about messages that wait for a receive: QPInit.RecvWait.
var rcWaitCases = []verbsCase{
	{name: "waitsForReceive", on: onRC, qp: withWait, run: waitsForReceive},
	{name: "waitPushesBack", on: onRC, qp: withWait, run: waitPushesBack},
	{name: "waitInLine", on: onRC, hosts: 3, qp: withSharedWait, run: waitInLine},
	{name: "waitManyQueuePairs", on: onRC, hosts: 3, apart: true, qp: withSharedWait, run: waitManyQueuePairs},
	{name: "waitCompletionQueueFull", on: onRC, qp: withSharedWait, run: waitCompletionQueueFull},
	{name: "waitThenEnd", on: onRC, hosts: 3, qp: withSharedWait, run: waitThenEnd},
	{name: "waitEndsHere", on: onRC, hosts: 3, qp: withSharedWait, run: waitEndsHere},
	{name: "waitIsOfRC", on: onBoth, run: waitIsOfRC},
}

func withWait(_ *host, init *verbs.QPInit) { init.RecvWait = true }

// withSharedWait gives the second host a shared receive queue at which its queue
// pairs wait.
func withSharedWait(h *host, init *verbs.QPInit) {
	init.RecvWait = true
	if h.i != 1 {
		return
	}
	if h.srq == nil {
		var err error
		h.srq, err = h.pd.CreateSRQ(verbs.SRQInit{MaxWR: 64})
		h.r.must(err)
	}
	init.SRQ = h.srq
}

// recvShared posts a receive for whoever is the next to send.
func (h *host) recvShared(id uint64, sgl ...verbs.SGE) {
	h.r.t.Helper()
	wr := verbs.RecvWR{WRID: id, NumSGE: uint8(len(sgl))}
	copy(wr.SGL[:], sgl)
	h.r.must(h.srq.PostRecv(&wr))
}

// nothing lets time pass, and expects that nothing is received meanwhile.
func (h *host) nothing() {
	r := h.r
	r.t.Helper()
	r.rest(2e6)
	if n := h.rcq.Len(); n > 0 {
		r.t.Fatalf("host %d: %d completions where no receive was posted", h.i, n)
	}
}

// stalled waits until n messages from a peer have found no receive.
func (h *host) stalled(from *host, n uint64) {
	h.r.t.Helper()
	h.r.until(func() bool { return h.to(from).Stats.RecvStalls >= n })
}

// waitsForReceive sends messages of all kinds that find no receive. Each waits,
// and so does the Write behind it; both go on when there is a receive.
func waitsForReceive(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	count := uint64(0)
	waits := func() {
		count++
		b.stalled(a, count)
		b.nothing()
	}
	for _, n := range []int{0, 8, 10_000, 200_000} {
		src, dst := a.region(n, 0).fill(n), b.region(n, verbs.LocalWrite)
		after, mark := a.region(8, 0).fill(9), b.region(8, verbs.LocalWrite|verbs.RemoteWrite)
		first, second := a.wr(verbs.OpSend, b, src.SGE(0, n)), a.wr(verbs.OpRDMAWriteWithImm, b)
		second.ImmData = 77
		write := at(a.wr(verbs.OpRDMAWrite, b, after.SGE(0, 8)), mark, 0)
		a.post(first)
		a.post(second)
		a.post(write)
		waits()
		b.received(b.recv(a, dst.SGE(0, n)), verbs.OpRecv, a)
		dst.equals(src.b)
		waits()
		mark.is(0, nil)
		if wc := b.received(b.recv(a), verbs.OpRecvRDMAWithImm, a); wc.ImmData != 77 {
			r.t.Errorf("%d bytes: completion %+v", n, wc)
		}
		mark.becomes(after.b)
		for _, wr := range []*verbs.SendWR{&first, &second, &write} {
			a.sent(wr, verbs.Success)
		}
	}
	if s := b.to(a).Stats; s.RecvStalls != 8 {
		r.t.Errorf("8 messages have waited, counted are %d", s.RecvStalls)
	}
	r.everything(a, b)
}

// waitPushesBack sends much more than the carriers hold to somebody who does not
// receive: the sender has to wait, and in the end all arrives in order.
func waitPushesBack(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	const size = 160_000
	count := 64
	if r.net.Virtual {
		count = 16 // the simulator's buffers are small
	}
	src, dst := a.region(size, 0).fill(1), b.region(size, verbs.LocalWrite)
	var sends []verbs.SendWR
	for range count {
		wr := a.wr(verbs.OpSend, b, src.SGE(0, size))
		a.post(wr)
		sends = append(sends, wr)
	}
	b.nothing()
	r.rest(20e6)
	done := a.scq.Len()
	if done > count/2 {
		r.t.Errorf("%d of %d Sends are complete, of %d bytes each, though nothing was received", done, count, size)
	}
	for i := range count {
		clear(dst.b)
		b.received(b.recv(a, dst.SGE(0, size)), verbs.OpRecv, a)
		if i%10 == 0 {
			dst.equals(src.b)
		}
	}
	for i := range sends {
		a.sent(&sends[i], verbs.Success)
	}
}

// waitInLine lets two queue pairs wait at one queue: receives that come one by
// one go to them in turn, and many at once to both.
func waitInLine(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	const count = 60
	sources := []*host{a, c}
	id, hello := c.recv(b), b.wr(verbs.OpSend, c) // a responder may not speak first
	b.post(hello)
	c.received(id, verbs.OpRecv, b)
	b.sent(&hello, verbs.Success)
	var sends [2][]verbs.SendWR
	for i, h := range sources {
		src := h.region(count, 0).fill(0)
		for k := range count {
			wr := h.wr(verbs.OpSend, b, src.SGE(0, k))
			h.post(wr)
			sends[i] = append(sends[i], wr)
		}
	}
	b.nothing()
	dst := b.region(count, verbs.LocalWrite)
	var got [2]int
	take := func() {
		wc := r.next(b.rcq)
		i := 0
		if wc.QPNum == b.to(c).Num() {
			i = 1
		}
		if wc.Status != verbs.Success || int(wc.ByteLen) != got[i] {
			r.t.Fatalf("completion %+v, want message %d of host %d", wc, got[i], sources[i].i)
		}
		got[i]++
	}
	for range 40 {
		for i, h := range sources {
			b.stalled(h, uint64(got[i])+1)
		}
		b.recvShared(1, dst.SGE(0, count))
		take()
		if d := got[0] - got[1]; d < -1 || d > 1 {
			r.t.Fatalf("of receives that come one by one %v were served", got)
		}
	}
	for range 40 {
		b.recvShared(1, dst.SGE(0, count))
	}
	for range 40 {
		take()
	}
	if got[0] < 30 || got[1] < 30 {
		r.t.Errorf("of 40 receives at once each of two should have some: %v", got)
	}
	for range 40 {
		b.recvShared(1, dst.SGE(0, count))
	}
	for range 40 {
		take()
	}
	for i, h := range sources {
		for k := range sends[i] {
			h.sent(&sends[i][k], verbs.Success)
		}
	}
}

// waitManyQueuePairs has two hosts send over ten connections to one, which has
// few receives and posts them late: all arrives, once, in the order of each
// connection.
func waitManyQueuePairs(r *rig) {
	b := r.hosts[1]
	const lanes, count, most, slots = 10, 200, 2000, 5
	type lane struct {
		from      *host
		out       *verbs.QP
		sent, got int
	}
	var all []*lane
	index := map[uint32]*lane{} // by number of the queue pair that receives
	src := make([]*region, len(r.hosts))
	for i := range lanes {
		h := r.hosts[i%2*2]
		r.join(h, b)
		l := &lane{from: h, out: h.to(b)}
		all = append(all, l)
		index[b.to(h).Num()] = l
	}
	for _, h := range []*host{r.hosts[0], r.hosts[2]} {
		src[h.i] = h.region(count*8+most, 0)
		for k := range count {
			binary.BigEndian.PutUint64(src[h.i].b[8*k:], uint64(k)<<8|uint64(h.i))
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	send := func(l *lane) {
		for range rng.IntN(20) {
			if l.sent == count {
				return
			}
			n := []int{8, 8, 100, most}[l.sent%4]
			wr := verbs.SendWR{Opcode: verbs.OpSend, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{src[l.from.i].SGE(8*l.sent, n)}}
			if l.out.PostSend(&wr) != nil {
				return
			}
			l.sent++
		}
	}
	dst := b.region(slots*most, verbs.LocalWrite)
	free := []uint64{0, 1, 2, 3, 4}
	var wcs [slots]verbs.WC
	for left := count * lanes; left > 0; r.turn() {
		for _, l := range all {
			send(l)
		}
		for len(free) > 0 && rng.IntN(3) > 0 {
			id := free[len(free)-1]
			free = free[:len(free)-1]
			b.recvShared(id, dst.SGE(int(id)*most, most))
		}
		for _, wc := range wcs[:b.rcq.Poll(wcs[:])] {
			l := index[wc.QPNum]
			word := binary.BigEndian.Uint64(dst.b[int(wc.WRID)*most:])
			if wc.Status != verbs.Success || word != uint64(l.got)<<8|uint64(l.from.i) {
				r.t.Fatalf("completion %+v with %#x, want message %d of host %d", wc, word, l.got, l.from.i)
			}
			l.got++
			left--
			free = append(free, wc.WRID)
		}
	}
}

// waitCompletionQueueFull waits for room in the completion queue as for a
// receive.
func waitCompletionQueueFull(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	small, err := b.ctx.CreateCQ(verbs.CQInit{Depth: 2})
	r.must(err)
	b.rcq = small
	b.renew()
	dst := b.region(8, verbs.LocalWrite)
	src := a.region(8, 0)
	for i := range 7 {
		b.recvShared(uint64(i), dst.SGE(0, 8))
		a.do(a.wr(verbs.OpSend, b, src.SGE(0, 8)))
	}
	r.rest(2e6)
	if n := b.rcq.Len(); n != 2 {
		r.t.Errorf("%d completions in a queue of 2", n)
	}
	for i := range 7 {
		b.received(uint64(i), verbs.OpRecv, a)
	}
}

// waitThenEnd ends connections at the end that sends, while messages of it wait:
// in order everything arrives before the end, and abruptly nothing hangs.
func waitThenEnd(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	dst := b.region(100, verbs.LocalWrite)
	for _, abrupt := range []bool{false, true} {
		src := a.region(100, 0).fill(3)
		for range 5 {
			a.do(a.wr(verbs.OpSend, b, src.SGE(0, 100)))
		}
		b.nothing()
		if abrupt {
			r.must(a.to(b).Modify(verbs.StateErr))
		} else {
			r.must(a.rc.ids[b.i].Disconnect())
		}
		b.nothing()
		for i := range 5 {
			b.recvShared(uint64(i), dst.SGE(0, 100))
		}
		r.parted(a, b)
		n := b.rcq.Len()
		if !abrupt && n != 5 {
			r.t.Errorf("%d of 5 messages have arrived that were sent before the end", n)
		}
		var wcs [5]verbs.WC
		for _, wc := range wcs[:b.rcq.Poll(wcs[:])] {
			if wc.Status != verbs.Success || wc.ByteLen != 100 {
				r.t.Errorf("completion %+v", wc)
			}
		}
		for range b.srq.Len() { // c uses up what is left
			c.do(c.wr(verbs.OpSend, b))
			b.received(anyRecv, verbs.OpRecv, c)
		}
		r.join(a, b)
	}
}

// waitEndsHere ends connections at the end where messages wait, in all ways. The
// others at the shared queue go on.
func waitEndsHere(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	for _, x := range []struct {
		name string
		size int
		end  func()
	}{
		{"disconnect", 300_000, func() { r.must(b.rc.ids[a.i].Disconnect()) }},
		{"destroy", 1000, func() { b.to(a).Destroy() }},
		{"error", 300_000, func() { r.must(b.to(a).Modify(verbs.StateErr)) }},
		{"reset", 300_000, func() { r.must(b.to(a).Modify(verbs.StateReset)) }},
	} {
		big := a.region(x.size, 0)
		for range 20 {
			wr := a.wr(verbs.OpSend, b, big.SGE(0, x.size))
			wr.Flags = 0
			a.post(wr)
		}
		src, dst := c.region(100, 0).fill(4), b.region(100, verbs.LocalWrite)
		wr := c.wr(verbs.OpSend, b, src.SGE(0, 100))
		c.post(wr)
		b.nothing()
		x.end()
		b.nothing()
		b.recvShared(5, dst.SGE(0, 100))
		b.received(5, verbs.OpRecv, c)
		c.sent(&wr, verbs.Success)
		dst.equals(src.b)
		r.parted(a, b)
		var wcs [32]verbs.WC
		for _, wc := range wcs[:a.scq.Poll(wcs[:])] {
			if wc.Status == verbs.Success {
				r.t.Errorf("%s: completion %+v of an unsignaled request", x.name, wc)
			}
		}
		r.join(a, b)
	}
}

// waitIsOfRC asks for what datagrams do anyway.
func waitIsOfRC(r *rig) {
	h := r.hosts[0]
	init := h.init()
	init.RecvWait = true
	if _, err := h.pd.CreateQP(init); !errors.Is(err, verbs.ErrInvalid) {
		r.t.Errorf("a queue pair of type %v that waits: %v", r.typ, err)
	}
}

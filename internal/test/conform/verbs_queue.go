package conform

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/verbs"
)

// queueCases are about queues, states and notification.
var queueCases = []verbsCase{
	{name: "sharedReceives", on: onAll, hosts: 3, qp: withSRQ, run: sharedReceives},
	{name: "sendQueueFull", on: onRel, run: sendQueueFull},
	{name: "completionQueueFull", on: onAll, run: completionQueueFull},
	{name: "states", on: onBoth, qp: func(_ *host, init *verbs.QPInit) { init.Reset = true }, run: states},
	{name: "drain", on: onRel, run: drain},
	{name: "errFlushes", on: onAll, hosts: 3, run: errFlushes},
	{name: "destroyFlushes", on: onAll, hosts: 3, run: destroyFlushes},
	{name: "channel", on: onAll, run: channel},
	{name: "channelSleeps", on: onAll, run: channelSleeps},
}

// withSRQ gives the second host a shared receive queue.
func withSRQ(h *host, init *verbs.QPInit) {
	if h.i == 1 && h.srq != nil {
		init.SRQ = h.srq
	} else if h.i == 1 {
		srq, err := h.pd.CreateSRQ(verbs.SRQInit{MaxWR: 20, Limit: 4})
		h.r.must(err)
		init.SRQ, h.srq = srq, srq
	}
}

// sharedReceives lets two hosts and two queue pairs use up one queue.
func sharedReceives(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	src, dst := a.region(100, 0).fill(1), b.region(20*100, verbs.LocalWrite)
	srcC := c.region(100, 0).fill(2)
	post := func(i int) error {
		return b.srq.PostRecv(&verbs.RecvWR{WRID: uint64(i), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{dst.SGE(i*100, 100)}})
	}
	for i := range 20 {
		r.must(post(i))
	}
	if err := post(0); !errors.Is(err, verbs.ErrQueueFull) {
		r.t.Errorf("the 21st of 20: %v", err)
	}
	rr := verbs.RecvWR{}
	if err := b.to(a).PostRecv(&rr); !errors.Is(err, verbs.ErrInvalid) {
		r.t.Errorf("a receive of the queue pair's own: %v", err)
	}
	want := make([]byte, 20*100)
	for i := range 16 {
		from, data := a, src
		if i%3 == 0 {
			from, data = c, srcC
		}
		from.do(from.wr(verbs.OpSend, b, data.SGE(0, 50+i)))
		wc := b.received(uint64(i), verbs.OpRecv, from)
		copy(want[i*100:], data.b[:wc.ByteLen])
	}
	if e, ok := b.ctx.GetAsyncEvent(); ok || b.srq.Len() != 4 {
		r.t.Errorf("%d are left, event %+v", b.srq.Len(), e)
	}
	a.do(a.wr(verbs.OpSend, b, src.SGE(0, 10)))
	b.received(16, verbs.OpRecv, a)
	copy(want[1600:], src.b[:10])
	if e := b.hears(nil, verbs.EventSRQLimitReached); e.SRQ != b.srq {
		r.t.Errorf("event %+v", e)
	}
	r.must(b.srq.Modify(3)) // three are left: armed, not due
	a.do(a.wr(verbs.OpSend, b, src.SGE(0, 10)))
	b.received(17, verbs.OpRecv, a)
	copy(want[1700:], src.b[:10])
	b.hears(nil, verbs.EventSRQLimitReached)
	dst.equals(want)
	if err := b.srq.Destroy(); err == nil {
		r.t.Error("destroyed while a queue pair uses it")
	}
	for _, q := range b.qps() {
		r.must(q.Modify(verbs.StateErr))
		if e := b.hears(nil, verbs.EventQPLastWQEReached); e.QP != q {
			r.t.Errorf("event %+v", e)
		}
	}
	if b.srq.Len() != 2 { // they are not the queue pair's
		r.t.Errorf("%d receives are left", b.srq.Len())
	}
	b.destroy()
	r.must(b.srq.Destroy())
}

// sendQueueFull posts until there is no room, and again when there is.
func sendQueueFull(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	src, dst := a.region(8, 0), b.region(8, verbs.LocalWrite|verbs.RemoteWrite)
	b.still = true
	posted := 0
	for {
		wr := at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, 8)), dst, 0)
		wr.Flags = 0
		err := a.try(&wr)
		if errors.Is(err, verbs.ErrQueueFull) {
			break
		}
		r.must(err)
		posted++
	}
	if posted != 512 && (r.typ != verbs.RC || posted != 513) { // on RC the first one is complete when it is posted
		r.t.Errorf("%d requests fit, want 512", posted)
	}
	b.still = false
	last := at(a.wr(verbs.OpRDMAWrite, b, src.fill(7).SGE(0, 8)), dst, 0)
	for errors.Is(a.try(&last), verbs.ErrQueueFull) {
		r.turn()
	}
	a.sent(&last, verbs.Success)
	dst.becomes(src.b)
}

// completionQueueFull fills a completion queue: what would overflow it cannot
// be posted.
func completionQueueFull(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	small, err := a.ctx.CreateCQ(verbs.CQInit{Depth: 4})
	r.must(err)
	a.scq, a.rcq = small, small
	a.renew()
	src, dst := a.region(8, verbs.LocalWrite), b.region(8, verbs.LocalWrite)
	a.recv(b, src.SGE(0, 8))
	for range 3 {
		b.recv(a, dst.SGE(0, 8))
		wr := a.wr(verbs.OpSend, b, src.SGE(0, 8))
		a.post(wr)
	}
	wr := a.wr(verbs.OpSend, b, src.SGE(0, 8))
	if err := a.try(&wr); !errors.Is(err, verbs.ErrQueueFull) {
		r.t.Errorf("a request too many: %v", err)
	}
	if err := a.to(b).PostRecv(&verbs.RecvWR{}); !errors.Is(err, verbs.ErrQueueFull) {
		r.t.Errorf("a receive too many: %v", err)
	}
	for range 3 {
		if wc := r.next(a.scq); wc.Status != verbs.Success || wc.Opcode != verbs.OpSend {
			r.t.Errorf("completion %+v", wc)
		}
		r.next(b.rcq)
	}
	a.destroy()
	if wc := r.next(small); wc.Status != verbs.WRFlushErr || wc.Opcode != verbs.OpRecv {
		r.t.Errorf("completion %+v", wc)
	}
}

// states walks a queue pair up, tries all other ways, and uses it.
func states(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	next := map[verbs.QPState][]verbs.QPState{
		verbs.StateReset: {verbs.StateReset, verbs.StateInit, verbs.StateErr},
		verbs.StateInit:  {verbs.StateReset, verbs.StateInit, verbs.StateRTR, verbs.StateErr},
		verbs.StateRTR:   {verbs.StateReset, verbs.StateRTS, verbs.StateErr},
		verbs.StateRTS:   {verbs.StateReset, verbs.StateRTS, verbs.StateSQD, verbs.StateErr},
	}
	src, dst := a.region(8, verbs.LocalWrite), b.region(8, verbs.LocalWrite)
	for _, h := range []*host{a, b} {
		for _, to := range []verbs.QPState{verbs.StateInit, verbs.StateRTR, verbs.StateRTS, verbs.StateRTS} {
			at := h.qp.State()
			for s := verbs.StateReset; s <= verbs.StateErr; s++ {
				legal := false
				for _, n := range next[at] {
					legal = legal || n == s
				}
				if !legal {
					if err := h.qp.Modify(s); !errors.Is(err, verbs.ErrInvalid) || h.qp.State() != at {
						r.t.Errorf("from %v to %v: %v", at, s, err)
					}
				}
			}
			if at < verbs.StateRTS {
				wr := h.wr(verbs.OpSend, r.hosts[1-h.i], src.SGE(0, 8))
				if err := h.qp.PostSend(&wr); !errors.Is(err, verbs.ErrInvalid) {
					r.t.Errorf("posted a Send in %v: %v", at, err)
				}
			}
			if at == verbs.StateReset {
				if err := h.qp.PostRecv(&verbs.RecvWR{}); !errors.Is(err, verbs.ErrInvalid) {
					r.t.Errorf("posted a receive in %v: %v", at, err)
				}
			}
			r.must(h.qp.Modify(to))
			if h.qp.State() != to {
				r.t.Fatalf("state is %v, want %v", h.qp.State(), to)
			}
		}
	}
	id := b.recv(a, dst.SGE(0, 8))
	a.do(a.wr(verbs.OpSend, b, src.SGE(0, 8)))
	b.received(id, verbs.OpRecv, a)
	r.exchange(a, b)
}

// drain stops a send queue: what has begun ends, the rest waits until the
// queue pair goes on.
func drain(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	const size = 300_000
	src, dst := a.region(size, 0).fill(1), b.region(2*size, verbs.LocalWrite|verbs.RemoteWrite)
	r.exchange(a, b)
	r.turn()
	first := at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, size)), dst, 0)
	a.post(first) // begins at once, as nothing else is under way
	r.must(a.to(b).Modify(verbs.StateSQD))
	second := at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, size)), dst, size)
	a.post(second)
	a.sent(&first, verbs.Success)
	if e := a.hears(nil, verbs.EventSQDrained); e.QP != a.to(b) {
		r.t.Errorf("event %+v", e)
	}
	for range 200 {
		r.turn()
	}
	if a.scq.Len() != 0 {
		r.t.Error("a request went out of a drained queue")
	}
	dst.gets(0, src.b)
	r.must(a.to(b).Modify(verbs.StateRTS))
	a.sent(&second, verbs.Success)
	dst.becomes(append(append([]byte(nil), src.b...), src.b...))
}

// outstanding posts requests to a host that does not answer, and receives.
func (r *rig) outstanding(a, b *host) (sends, recvs []uint64) {
	r.t.Helper()
	src, dst := a.region(5000, verbs.LocalWrite), b.region(5000, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	for range 3 {
		recvs = append(recvs, a.recv(b, src.SGE(0, 8)))
	}
	b.still = true
	ops := []verbs.Opcode{verbs.OpSend}
	if r.typ == verbs.RD {
		ops = []verbs.Opcode{verbs.OpSend, verbs.OpRDMAWrite, verbs.OpRDMARead, verbs.OpSend}
	} else if r.typ == verbs.RC { // what follows a Read waits for it; a Send alone is done when it is sent
		ops = []verbs.Opcode{verbs.OpRDMARead, verbs.OpSend, verbs.OpRDMAWrite, verbs.OpRDMARead}
	}
	for _, op := range ops {
		wr := at(a.wr(op, b, src.SGE(0, 8)), dst, 0)
		wr.Flags = 0
		a.post(wr)
		sends = append(sends, wr.WRID)
	}
	return sends, recvs
}

// flushed expects that requests end unfinished, in order.
func (r *rig) flushed(q *verbs.CQ, ids []uint64) {
	r.t.Helper()
	for _, id := range ids {
		if wc := r.next(q); wc.WRID != id || wc.Status != verbs.WRFlushErr {
			r.t.Fatalf("completion %+v, want request %d flushed", wc, id)
		}
	}
}

// errFlushes ends everything outstanding, and what is posted afterwards.
func errFlushes(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	sends, recvs := r.outstanding(a, b)
	r.must(a.to(b).Modify(verbs.StateErr))
	if r.typ != verbs.UD { // an unreliable Send may be done when it is posted
		r.flushed(a.scq, sends)
	}
	r.flushed(a.rcq, recvs)
	to := c
	if r.typ == verbs.RC {
		to = b
	}
	wr := a.wr(verbs.OpSend, to, a.region(8, 0).SGE(0, 8))
	wr.Flags = 0
	a.post(wr)
	r.flushed(a.scq, []uint64{wr.WRID})
	r.flushed(a.rcq, []uint64{a.recv(to)})
	b.still = false
	r.exchange(b, c)
	if r.typ == verbs.RC {
		r.exchange(a, c)
		r.again(a, b)
		return
	}
	// From Reset it can be used again.
	for _, s := range []verbs.QPState{verbs.StateReset, verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
		r.must(a.qp.Modify(s))
	}
	if r.typ == verbs.RD {
		r.again(a, c)
		return
	}
	r.exchange(a, c)
}

func destroyFlushes(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	sends, recvs := r.outstanding(a, b)
	q := a.to(b)
	q.Destroy()
	if r.typ != verbs.UD {
		r.flushed(a.scq, sends)
	}
	r.flushed(a.rcq, recvs)
	wr := a.wr(verbs.OpSend, c, a.region(8, 0).SGE(0, 8))
	if err := q.PostSend(&wr); !errors.Is(err, verbs.ErrClosed) {
		r.t.Errorf("PostSend afterwards: %v", err)
	}
	if err := q.PostRecv(&verbs.RecvWR{}); !errors.Is(err, verbs.ErrClosed) {
		r.t.Errorf("PostRecv afterwards: %v", err)
	}
	b.still = false
	r.exchange(b, c)
}

// listen gives a host another receive queue, with a channel.
func (h *host) listen() *verbs.CompChannel {
	r := h.r
	r.t.Helper()
	ch, err := h.ctx.CreateCompChannel()
	r.must(err)
	cq, err := h.ctx.CreateCQ(verbs.CQInit{Channel: ch})
	r.must(err)
	h.rcq = cq
	h.renew()
	return ch
}

// unlisten takes the queue and the channel away again.
func (h *host) unlisten(ch *verbs.CompChannel) {
	h.r.t.Helper()
	if err := ch.Close(); err == nil {
		h.r.t.Error("closed a channel that a queue uses")
	}
	h.destroy()
	h.r.must(h.rcq.Destroy())
	h.r.must(ch.Close())
}

// channel arms a completion queue for all events, for solicited ones, and not
// at all.
func channel(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	ch := b.listen()
	src, dst := a.region(8, 0), b.region(8, verbs.LocalWrite)
	arrives := func(flags verbs.SendFlags) {
		id := b.recv(a, dst.SGE(0, 8))
		wr := a.wr(verbs.OpSend, b, src.SGE(0, 8))
		wr.Flags |= flags
		a.do(wr)
		b.received(id, verbs.OpRecv, a)
	}
	event := func(want bool, when string) {
		r.t.Helper()
		cq, ok := ch.GetEvent()
		if ok != want || ok && cq != b.rcq {
			r.t.Errorf("%s: event %v", when, ok)
		}
	}
	arrives(0)
	event(false, "not armed")
	r.must(b.rcq.ReqNotify(false))
	event(false, "armed, and nothing came")
	arrives(0)
	event(true, "armed")
	event(false, "armed, second look")
	arrives(0)
	event(false, "armed once, second message")
	r.must(b.rcq.ReqNotify(true))
	arrives(0)
	event(false, "armed for solicited ones")
	arrives(verbs.Solicited)
	event(true, "solicited")
	b.unlisten(ch)
}

// channelSleeps waits in poll(2) for completions, with a channel's descriptor.
// The sender has a goroutine of its own, so that it is not asleep as well.
func channelSleeps(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	if b.fd() < 0 {
		r.t.Skip("the carrier has no descriptor")
	}
	const rounds = 20
	ch := b.listen()
	src, dst := a.region(8, 0), b.region(8, verbs.LocalWrite)
	r.exchange(a, b)
	next, done := make(chan struct{}, rounds), make(chan struct{})
	go func() {
		defer close(done)
		for range next {
			wr := a.wr(verbs.OpSend, b, src.SGE(0, 8))
			if err := a.try(&wr); err != nil {
				panic(err)
			}
			wc := make([]verbs.WC, 1)
			for a.scq.Poll(wc) == 0 {
				a.ctx.Engine().Step()
			}
			if wc[0].Status != verbs.Success { // whoever sleeps would never hear of it
				panic(fmt.Sprintf("completion %+v", wc[0]))
			}
		}
	}()
	for i := range rounds {
		rr := verbs.RecvWR{WRID: uint64(i), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{dst.SGE(0, 8)}}
		r.must(b.to(a).PostRecv(&rr))
		r.must(b.rcq.ReqNotify(false))
		posted := i%2 == 0
		if posted { // it may be there before b looks; else b may sleep before
			next <- struct{}{}
		}
		for cq, ok := ch.GetEvent(); !ok || cq != b.rcq; cq, ok = ch.GetEvent() {
			fds := []unix.PollFd{{Fd: int32(ch.FD()), Events: unix.POLLIN}}
			if !posted {
				posted = true
				next <- struct{}{}
			}
			if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
				r.t.Fatal(err)
			}
		}
		b.received(uint64(i), verbs.OpRecv, a)
	}
	close(next)
	for stop := false; !stop; {
		b.ctx.Engine().Step()
		select {
		case <-done:
			stop = true
		default:
		}
	}
	b.unlisten(ch)
}

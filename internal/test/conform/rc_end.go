package conform

import (
	"errors"

	"github.com/xwarp/xwarp/verbs"
)

// rcEndCases are about how connections end.
var rcEndCases = []verbsCase{
	{name: "disconnectIdle", on: onRC, hosts: 3, run: disconnectIdle},
	{name: "disconnectBoth", on: onRC, hosts: 3, run: disconnectBoth},
	{name: "disconnectAtWork", on: onRC, hosts: 3, run: disconnectAtWork},
	{name: "disconnectDelivers", on: onRC, hosts: 3, run: disconnectDelivers},
	{name: "abort", on: onRC, hosts: 3, run: abort},
	{name: "errorEndsConnection", on: onRC, hosts: 3, run: errorEnds},
	{name: "contextCloses", on: onRC, hosts: 3, run: contextCloses},
	{name: "processGone", on: onRC, hosts: 3, run: processGone},
}

// over waits until a host hears that its connection with a peer has ended, in
// order or not, and checks that nothing can be done with the queue pair.
func (h *host) over(peer *host, orderly bool) {
	r := h.r
	r.t.Helper()
	e := h.heard(verbs.CMDisconnected)
	if e.ID != h.rc.ids[peer.i] || (e.Err == nil) != orderly {
		r.t.Fatalf("host %d: the connection ends with %v", h.i, e.Err)
	}
	if s := h.to(peer).State(); s != verbs.StateErr {
		r.t.Fatalf("host %d: the queue pair is in state %v", h.i, s)
	}
	wr := h.wr(verbs.OpSend, peer, h.region(8, 0).SGE(0, 8))
	wr.Flags = 0
	h.post(wr)
	r.flushed(h.scq, []uint64{wr.WRID})
	r.flushed(h.rcq, []uint64{h.recv(peer)})
}

// clear takes away what is left of a connection that both ends know is over,
// and makes a new one that works. c was not disturbed.
func (r *rig) clear(a, b, c *host) {
	r.t.Helper()
	for _, pair := range [][2]*host{{a, b}, {b, a}} {
		h, peer := pair[0], pair[1]
		r.must(h.rc.ids[peer.i].Destroy())
		h.to(peer).Destroy()
		for ok := true; ok; {
			_, ok = h.ctx.GetAsyncEvent()
		}
	}
	r.exchange(a, c)
	r.exchange(c, b)
	r.join(a, b)
	r.everything(a, b)
}

func disconnectIdle(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	for _, h := range []*host{a, b} {
		peer := r.hosts[1-h.i]
		recvs := []uint64{a.recv(b), a.recv(b)}
		there := []uint64{b.recv(a), b.recv(a)}
		r.must(h.rc.ids[peer.i].Disconnect())
		r.flushed(a.rcq, recvs)
		r.flushed(b.rcq, there)
		a.over(b, true)
		b.over(a, true)
		r.must(h.rc.ids[peer.i].Disconnect()) // again: nothing happens
		if _, ok := a.ctx.GetAsyncEvent(); ok {
			r.t.Error("an orderly end is an event")
		}
		r.clear(a, b, c)
	}
}

// disconnectBoth lets both ends think of it at the same time.
func disconnectBoth(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	recvs, there := []uint64{a.recv(b)}, []uint64{b.recv(a)}
	r.must(a.rc.ids[b.i].Disconnect())
	r.must(b.rc.ids[a.i].Disconnect())
	r.flushed(a.rcq, recvs)
	r.flushed(b.rcq, there)
	a.over(b, true)
	b.over(a, true)
	r.clear(a, b, c)
}

// disconnectAtWork disconnects with requests of all kinds under way, at either
// end. Each ends once: some with success, the others flushed.
func disconnectAtWork(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	for round := range 6 {
		const size = 40_000
		src, sink := a.region(size, 0).fill(1), a.region(size, verbs.LocalWrite)
		dst := b.region(size, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
		var sends, recvs, there []uint64
		for i := range 24 {
			recvs = append(recvs, a.recv(b))
			there = append(there, b.recv(a, dst.SGE(0, size)))
			op := []verbs.Opcode{verbs.OpSend, verbs.OpRDMARead, verbs.OpRDMAWrite, verbs.OpSend}[i%4]
			g := src
			if op == verbs.OpRDMARead {
				g = sink
			}
			wr := a.wr(op, b, g.SGE(0, size))
			if op != verbs.OpSend {
				wr = at(wr, dst, 0)
			}
			a.post(wr)
			sends = append(sends, wr.WRID)
		}
		for range round * round {
			r.turn()
		}
		h, peer := a, b
		if round%2 == 1 {
			h, peer = b, a
		}
		r.must(h.rc.ids[peer.i].Disconnect())
		r.ended(a.scq, sends)
		r.ended(b.rcq, there)
		r.flushed(a.rcq, recvs)
		for _, x := range [][2]*host{{a, b}, {b, a}} { // a Read that cannot be answered any more may be an error
			e := x[0].heard(verbs.CMDisconnected)
			if e.ID != x[0].rc.ids[x[1].i] || x[0].to(x[1]).State() != verbs.StateErr {
				r.t.Fatalf("host %d: event %+v", x[0].i, e)
			}
		}
		r.clear(a, b, c)
	}
}

// ended expects that requests end, in order: some with success, the others
// flushed, but for at most one that is to blame. It returns how many have
// succeeded.
func (r *rig) ended(q *verbs.CQ, ids []uint64) (done int) {
	r.t.Helper()
	blamed := false
	for i, id := range ids {
		wc := r.next(q)
		switch {
		case wc.WRID != id:
			r.t.Fatalf("completion %+v, want request %d", wc, id)
		case wc.Status == verbs.Success && done == i:
			done++
		case wc.Status != verbs.WRFlushErr && (blamed || wc.Status == verbs.Success):
			r.t.Fatalf("completion %+v behind one that failed", wc)
		case wc.Status != verbs.WRFlushErr:
			blamed = true
		}
	}
	return done
}

// disconnectDelivers disconnects right behind Sends that are complete: they
// arrive.
func disconnectDelivers(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	const count, size = 30, 5000
	src, dst := a.region(size, 0).fill(1), b.region(count*size, verbs.LocalWrite)
	var there, sends []uint64
	for i := range count {
		there = append(there, b.recv(a, dst.SGE(i*size, size)))
		wr := a.wr(verbs.OpSend, b, src.SGE(0, size))
		a.post(wr)
		sends = append(sends, wr.WRID)
	}
	for range 3 {
		r.turn()
	}
	r.must(a.rc.ids[b.i].Disconnect())
	sent, got := r.ended(a.scq, sends), r.ended(b.rcq, there)
	if got < sent {
		r.t.Errorf("%d Sends are complete, %d have arrived", sent, got)
	}
	want := make([]byte, len(dst.b))
	for i := range got {
		copy(want[i*size:], src.b)
	}
	if got < count { // one more may have begun
		copy(want[got*size:(got+1)*size], dst.b[got*size:])
	}
	dst.equals(want)
	a.heard(verbs.CMDisconnected)
	b.heard(verbs.CMDisconnected)
	r.clear(a, b, c)
}

// abort takes the identifier away from under a connection.
func abort(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	sends, recvs := r.outstanding(a, b)
	there := []uint64{b.recv(a), b.recv(a)}
	id := a.rc.ids[b.i]
	r.must(id.Destroy())
	b.still = false
	r.ended(a.scq, sends)
	r.flushed(a.rcq, recvs)
	r.ended(b.rcq, there)
	if s := a.to(b).State(); s != verbs.StateErr {
		r.t.Errorf("the queue pair is in state %v", s)
	}
	b.over(a, false)
	b.hears(a, verbs.EventQPFatal)
	a.rc.ids[b.i] = nil
	a.to(b).Destroy()
	a.rc.qps[b.i] = nil
	r.must(b.rc.ids[a.i].Destroy())
	b.to(a).Destroy()
	r.exchange(a, c)
	r.exchange(b, c)
	r.join(a, b)
	r.exchange(a, b)
}

// errorEnds ends a connection by the state of one queue pair.
func errorEnds(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	for _, to := range []verbs.QPState{verbs.StateErr, verbs.StateReset} {
		sends, recvs := r.outstanding(a, b)
		there := []uint64{b.recv(a), b.recv(a)}
		r.must(a.to(b).Modify(to))
		b.still = false
		if to == verbs.StateErr {
			r.ended(a.scq, sends)
			r.flushed(a.rcq, recvs)
		}
		r.ended(b.rcq, there)
		r.parted(a, b)
		r.exchange(a, c)
		r.exchange(b, c)
		r.join(a, b)
		r.exchange(a, b)
	}
}

// contextCloses ends a context in order, with requests to it unfinished.
func contextCloses(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	sends, recvs := r.outstanding(a, b)
	r.must(b.ctx.Close())
	b.ctx, b.still = nil, false
	r.ended(a.scq, sends)
	r.flushed(a.rcq, recvs)
	for _, h := range []*host{a, c} {
		e := h.heard(verbs.CMDisconnected)
		if e.ID != h.rc.ids[b.i] || h.to(b).State() != verbs.StateErr {
			r.t.Fatalf("host %d: event %+v", h.i, e)
		}
	}
	r.comesBack(b)
}

// processGone closes the carrier under a context, as the end of a process does.
func processGone(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	sends, recvs := r.outstanding(a, b)
	r.must(b.rc.streams.Close())
	for i, id := range sends {
		wc := r.next(a.scq)
		want := verbs.WRFlushErr
		if i == 0 {
			want = verbs.RetryExcErr
		}
		if wc.WRID != id || wc.Status != want {
			r.t.Fatalf("completion %+v, want %v of request %d", wc, want, id)
		}
	}
	r.flushed(a.rcq, recvs)
	for _, h := range []*host{a, c} {
		e := h.heard(verbs.CMDisconnected)
		if e.ID != h.rc.ids[b.i] || !errors.Is(e.Err, verbs.ErrConnection) {
			r.t.Fatalf("host %d: event %+v", h.i, e)
		}
		h.hears(b, verbs.EventQPFatal)
	}
	_ = b.ctx.Close() // what it says of a carrier that is closed does not matter
	b.ctx, b.still = nil, false
	r.comesBack(b)
}

// comesBack opens a host anew that was closed, and connects it with all others.
func (r *rig) comesBack(b *host) {
	r.t.Helper()
	b.rc = newRCHost(len(r.hosts))
	b.open()
	for _, h := range r.hosts {
		if h == b {
			continue
		}
		r.must(h.rc.ids[b.i].Destroy())
		h.to(b).Destroy()
		for ok := true; ok; {
			_, ok = h.ctx.GetAsyncEvent()
		}
		r.join(h, b)
		r.everything(h, b)
	}
	r.exchange(r.hosts[0], r.hosts[2])
}

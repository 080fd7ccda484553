package conform

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// sendCases are about Send and receives.
var sendCases = []verbsCase{
	{name: "sendSizes", on: onAll, run: sendSizes},
	{name: "sendGathersAndScatters", on: onAll, run: sendGathers},
	{name: "inline", on: onAll, run: sendInline},
	{name: "unsignaled", on: onAll, run: sendUnsignaled},
	{name: "solicited", on: onAll, run: sendSolicited},
	{name: "order", on: onRel, run: sendOrder},
	{name: "manyAtOnce", on: onRel, hosts: 3, run: sendMany},
	{name: "waitsForReceive", on: onRD, hosts: 3, run: sendWaits},
	{name: "lostWithoutReceive", on: onUD, run: sendWithoutReceive},
	{name: "tooLongForUD", on: onUD, run: sendTooLong},
	{name: "severalQueuePairs", on: onUD, run: sendToQueuePairs},
	{name: "handleFromCompletion", on: onBoth, run: sendAnswer},
	{name: "multicast", on: onUD, hosts: 3, run: sendMulticast},
}

// seg returns how long a message of one segment may be: on RC that follows
// from the path, and is as on Ethernet here.
func (r *rig) seg() int {
	if r.typ == verbs.RC {
		return 1424
	}
	return r.hosts[0].ctx.Attr().MaxSeg
}

// sizes returns message sizes around everything that has a limit.
func (r *rig) sizes() []int {
	seg := r.seg()
	all := []int{0, 1, 7, 8, 9, 255, verbs.MaxInline, 257, 1000, 4095, 4096, seg - 1, seg}
	if r.typ == verbs.UD {
		return slices.DeleteFunc(all, func(n int) bool { return n > seg })
	}
	return append(all, seg+1, seg+4, seg+5, 2*seg, 3*seg+7, 300_000)
}

func sendSizes(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	sizes := r.sizes()
	most := sizes[len(sizes)-1]
	src, dst := a.region(most, 0), b.region(most, verbs.LocalWrite)
	for i, n := range sizes {
		src.fill(i)
		clear(dst.b)
		id := b.recv(a, dst.SGE(0, most))
		wr := a.wr(verbs.OpSend, b, src.SGE(0, n))
		a.post(wr)
		if wc := b.received(id, verbs.OpRecv, a); wc.ByteLen != uint32(n) || wc.Flags != 0 {
			r.t.Fatalf("%d bytes: completion %+v", n, wc)
		}
		dst.is(0, src.b[:n])
		a.sent(&wr, verbs.Success)
	}
}

func sendGathers(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	size := min(3*r.seg()/4, 3000)
	if r.typ != verbs.UD {
		size = 20_000
	}
	src, dst := a.region(size, 0), b.region(4*size, verbs.LocalWrite)
	for i, cut := range [][3]int{{0, 0, 0}, {1, 2, 3}, {0, size / 2, size / 2}, {size / 3, size / 2, size - 1}, {size, size, size}} {
		src.fill(i)
		clear(dst.b)
		x, y, z := cut[0], cut[1], cut[2]
		lens := [4]int{size - z, z - y, 0, y} // in this order, each in a quarter of dst, from the last one on
		var sgl []verbs.SGE
		want, rest := make([]byte, 4*size), src.b
		for k, n := range lens {
			quarter := (3 - k) * size
			sgl = append(sgl, dst.SGE(quarter, n))
			rest = rest[copy(want[quarter:quarter+n], rest):]
		}
		id := b.recv(a, sgl...)
		a.do(a.wr(verbs.OpSend, b, src.SGE(0, x), src.SGE(x, y-x), src.SGE(y, z-y), src.SGE(z, size-z)))
		b.received(id, verbs.OpRecv, a)
		dst.equals(want)
	}
}

// sendInline changes its data as soon as it is posted.
func sendInline(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	dst := b.region(1000, verbs.LocalWrite)
	for _, n := range []int{0, 1, 8, 100, verbs.MaxInline} {
		clear(dst.b)
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(i + n)
		}
		wr := a.wr(verbs.OpSend, b)
		wr.Flags |= verbs.Inline
		wr.InlineData = append([]byte(nil), want...)
		id := b.recv(a, dst.SGE(0, 1000))
		a.post(wr)
		clear(wr.InlineData)
		b.received(id, verbs.OpRecv, a)
		a.sent(&wr, verbs.Success)
		dst.is(0, want)
	}
	wr := a.wr(verbs.OpSend, b)
	wr.Flags |= verbs.Inline
	wr.InlineData = make([]byte, verbs.MaxInline+1)
	if err := a.try(&wr); !errors.Is(err, verbs.ErrInvalid) {
		r.t.Errorf("%d bytes inline: %v", verbs.MaxInline+1, err)
	}
}

// sendUnsignaled fills the queue twice over with requests of which one in 16
// makes a completion.
func sendUnsignaled(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	src, dst := a.region(100, 0).fill(1), b.region(100, verbs.LocalWrite)
	for range 70 {
		for range 16 {
			b.recv(a, dst.SGE(0, 100))
		}
		var last verbs.SendWR
		for i := range 16 {
			last = a.wr(verbs.OpSend, b, src.SGE(0, 100))
			if i < 15 {
				last.Flags = 0
			}
			a.post(last)
		}
		for range 16 {
			b.received(anyRecv, verbs.OpRecv, a)
		}
		a.sent(&last, verbs.Success)
	}
	if a.to(b).Stats.Sends != 70*16 {
		r.t.Errorf("%d Sends are counted", a.to(b).Stats.Sends)
	}
}

func sendSolicited(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	src, dst := a.region(8, 0), b.region(8, verbs.LocalWrite)
	for i := range 4 {
		wr := a.wr(verbs.OpSend, b, src.SGE(0, 8))
		want := verbs.WCFlags(0)
		if i%2 == 0 {
			wr.Flags |= verbs.Solicited
			want = verbs.WCWithSolicited
		}
		id := b.recv(a, dst.SGE(0, 8))
		a.do(wr)
		if wc := b.received(id, verbs.OpRecv, a); wc.Flags != want {
			r.t.Errorf("flags of the request %#x, of the completion %#x", wr.Flags, wc.Flags)
		}
	}
}

// sendOrder posts messages of all sizes at once: they complete in order at both
// ends, whatever order they travel in. Which receive each of them takes is
// another matter: the first that arrives takes the first.
func sendOrder(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	const count, most = 60, 30_000
	src, dst := a.region(most, 0).fill(3), b.region(count*most, verbs.LocalWrite)
	var wrs [count]verbs.SendWR
	size := func(i int) int { return i * i * i * 91 % (most + 1) }
	slot := map[uint64]int{} // of a receive
	for i := range wrs {
		slot[b.recv(a, dst.SGE(i*most, most))] = i
	}
	for i := range wrs {
		wrs[i] = a.wr(verbs.OpSend, b, src.SGE(0, size(i)))
		a.post(wrs[i])
	}
	want := make([]byte, count*most)
	for i := range wrs {
		wc := b.received(anyRecv, verbs.OpRecv, a)
		at, ok := slot[wc.WRID]
		if !ok || wc.ByteLen != uint32(size(i)) {
			r.t.Fatalf("message %d: %+v", i, wc)
		}
		delete(slot, wc.WRID)
		copy(want[at*most:], src.b[:size(i)])
	}
	for i := range wrs {
		a.sent(&wrs[i], verbs.Success)
	}
	dst.equals(want)
}

// sendMany lets two hosts send to a third, which answers, all at once.
func sendMany(r *rig) {
	const count = 100
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	sums := map[*host]int{}
	for _, h := range r.hosts {
		src, dst := h.region(5000, 0).fill(h.i), h.region(5000, verbs.LocalWrite)
		for range count {
			for _, from := range r.hosts {
				if from != h {
					h.recv(from, dst.SGE(0, 5000))
				}
			}
		}
		for i := range count {
			for _, to := range r.hosts {
				if to != h {
					wr := h.wr(verbs.OpSend, to, src.SGE(0, 1+i*49%5000))
					h.post(wr)
				}
			}
		}
	}
	for _, h := range []*host{a, b, c} {
		for range 2 * count {
			if wc := r.next(h.rcq); wc.Status != verbs.Success {
				r.t.Fatalf("host %d: %+v", h.i, wc)
			} else {
				sums[h] += int(wc.ByteLen)
			}
			if wc := r.next(h.scq); wc.Status != verbs.Success {
				r.t.Fatalf("host %d: %+v", h.i, wc)
			}
		}
	}
	if sums[a] != sums[b] || sums[b] != sums[c] {
		r.t.Errorf("bytes received: %v", sums)
	}
}

// sendWaits posts receives long after the messages were sent. Meanwhile others
// are served.
func sendWaits(r *rig) {
	const count = 20
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	src, dst := a.region(count, 0).fill(1), b.region(count, verbs.LocalWrite)
	var wrs [count]verbs.SendWR
	for i := range wrs {
		wrs[i] = a.wr(verbs.OpSend, b, src.SGE(i, 1))
		a.post(wrs[i])
	}
	for range 300 {
		r.turn()
	}
	r.exchange(a, c)
	one := c.region(100, 0).fill(9)
	to := b.region(100, verbs.LocalWrite|verbs.RemoteWrite)
	c.do(at(c.wr(verbs.OpRDMAWrite, b, one.SGE(0, 100)), to, 0)) // needs no receive
	to.is(0, one.b)
	for i := range wrs {
		id := b.recv(a, dst.SGE(i, 1))
		b.received(id, verbs.OpRecv, a)
	}
	for i := range wrs {
		a.sent(&wrs[i], verbs.Success)
	}
	dst.equals(src.b)
}

// sendWithoutReceive loses what nobody has posted a receive for, and no more.
func sendWithoutReceive(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	src := a.region(10, 0)
	a.do(a.wr(verbs.OpSend, b, src.SGE(0, 10)))
	r.until(func() bool { return b.qp.Stats.RecvDrops == 1 })
	r.exchange(a, b)
	// A message that is longer than its receive is an error of the receive's.
	dst := b.region(10, verbs.LocalWrite)
	id := b.recv(a, dst.SGE(0, 9))
	a.do(a.wr(verbs.OpSend, b, src.fill(1).SGE(0, 10)))
	if wc := r.next(b.rcq); wc.Status != verbs.LocLenErr || wc.WRID != id {
		r.t.Errorf("completion %+v", wc)
	}
	if dst.b[9] != 0 {
		r.t.Error("it was written behind the receive buffer")
	}
	r.exchange(a, b)
}

func sendTooLong(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	seg := a.ctx.Attr().MaxSeg
	src := a.region(seg+1, 0)
	wr := a.wr(verbs.OpSend, b, src.SGE(0, seg+1))
	if err := a.try(&wr); !errors.Is(err, verbs.ErrInvalid) {
		r.t.Errorf("%d bytes: %v", seg+1, err)
	}
	r.exchange(a, b)
}

// sendToQueuePairs has several queue pairs on one host, and sends to one that
// is not there.
func sendToQueuePairs(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	src := a.region(16, 0).fill(5)
	var qps []*verbs.QP
	for range 4 {
		qp, err := b.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: b.scq, RecvCQ: b.rcq})
		r.must(err)
		qps = append(qps, qp)
	}
	dst := b.region(4*16, verbs.LocalWrite)
	for i, qp := range qps {
		r.must(qp.PostRecv(&verbs.RecvWR{WRID: uint64(i), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{dst.SGE(i*16, 16)}}))
	}
	r.must(qps[3].Modify(verbs.StateErr)) // flushes its receive
	if wc := r.next(b.rcq); wc.WRID != 3 || wc.Status != verbs.WRFlushErr || wc.QPNum != qps[3].Num() {
		r.t.Fatalf("completion %+v", wc)
	}
	for _, qpn := range []uint32{0, 1, 0xfffffe, qps[3].Num(), qps[2].Num(), qps[0].Num(), qps[1].Num()} {
		wr := a.wr(verbs.OpSend, b, src.SGE(0, 16))
		wr.RemoteQPN = qpn
		a.do(wr)
		for i, qp := range qps[:3] {
			if qp.Num() != qpn {
				continue
			}
			if wc := r.next(b.rcq); wc.WRID != uint64(i) || wc.QPNum != qpn || wc.SrcQP != a.qp.Num() || wc.Status != verbs.Success {
				r.t.Fatalf("completion %+v, want receive %d of queue pair %d", wc, i, qpn)
			}
		}
	}
	for _, qp := range qps {
		qp.Destroy()
	}
	r.exchange(a, b)
}

// sendAnswer answers to whoever sent, as a server does.
func sendAnswer(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	src, dst := a.region(8, verbs.LocalWrite).fill(5), b.region(8, verbs.LocalWrite)
	b.ahs[a.i] = nil
	id := b.recv(a, dst.SGE(0, 8))
	a.do(a.wr(verbs.OpSend, b, src.SGE(0, 8)))
	wc := b.received(id, verbs.OpRecv, a)
	ah, err := b.pd.CreateAHFromWC(&wc)
	r.must(err)
	if ah.Remote() != a.addr {
		r.t.Fatalf("handle of %v, want %v", ah.Remote(), a.addr)
	}
	b.ahs[a.i] = ah
	clear(src.b)
	id = a.recv(b, src.SGE(0, 8))
	wr := b.wr(verbs.OpSend, a, dst.SGE(0, 8))
	if r.typ == verbs.UD {
		wr.RemoteQPN = wc.SrcQP
	}
	b.do(wr)
	a.received(id, verbs.OpRecv, b)
	src.equals(dst.b)
}

// sendMulticast sends to a group that two hosts belong to, one of them with two
// queue pairs.
func sendMulticast(r *rig) {
	if !r.net.Multicast {
		r.t.Skip("the carrier has no multicast")
	}
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	group := netip.MustParseAddr("239.1.2.3")
	second, err := b.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: b.scq, RecvCQ: b.rcq})
	r.must(err)
	join := func(h *host, q *verbs.QP) error { return r.on(h, func() error { return q.AttachMcast(group) }) }
	r.must(join(b, b.qp))
	r.must(join(b, second))
	r.must(join(c, c.qp))
	ah, err := a.pd.CreateAH(netip.AddrPortFrom(group, b.addr.Port()))
	r.must(err)
	src := a.region(1000, 0).fill(1)
	send := func() {
		wr := a.wr(verbs.OpSend, nil, src.SGE(0, 1000))
		wr.AH, wr.RemoteQPN = ah, verbs.MulticastQPN
		a.do(wr)
	}
	dstB, dstC := b.region(2000, verbs.LocalWrite), c.region(1000, verbs.LocalWrite)
	b.recv(a, dstB.SGE(0, 1000))
	r.must(second.PostRecv(&verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{dstB.SGE(1000, 1000)}}))
	id := c.recv(a, dstC.SGE(0, 1000))
	send()
	for range 2 {
		if wc := r.next(b.rcq); wc.Status != verbs.Success || wc.SrcQP != a.qp.Num() {
			r.t.Fatalf("completion %+v", wc)
		}
	}
	c.received(id, verbs.OpRecv, a)
	dstB.equals(append(append([]byte(nil), src.b...), src.b...))
	dstC.equals(src.b)
	// After Detach only the others hear it.
	leave := func(h *host, q *verbs.QP) error { return r.on(h, func() error { return q.DetachMcast(group) }) }
	r.must(leave(b, b.qp))
	r.must(leave(b, second))
	b.recv(a, dstB.SGE(0, 1000))
	id = c.recv(a, dstC.SGE(0, 1000))
	send()
	c.received(id, verbs.OpRecv, a)
	r.rest(5 * mono.Millisecond)
	if b.rcq.Len() != 0 {
		r.t.Error("it is heard after Detach")
	}
	b.qp.Destroy()
	r.flushed(b.rcq, []uint64{id - 1})
	second.Destroy()
}

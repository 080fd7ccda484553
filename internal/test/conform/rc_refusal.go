package conform

import (
	"errors"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/verbs"
)

// rcRefusalCases end a connection with a Terminate.
var rcRefusalCases = []verbsCase{
	{name: "sendFindsNoReceive", on: onRC, hosts: 3, run: sendFindsNoReceive},
	{name: "refusedLargeRC", on: onRC, hosts: 3, run: refusedLargeRC},
	{name: "longerThanReceiveRC", on: onRC, hosts: 3, run: longerThanReceiveRC},
	{name: "sendWithInvRefusedRC", on: onRC, hosts: 3, run: sendWithInvRefusedRC},
	{name: "windowOfAnother", on: onRC, hosts: 3, run: windowOfAnother},
	{name: "refusedAtWork", on: onRC, hosts: 3, run: refusedAtWork},
	{name: "zeroLength", on: onRC, run: zeroLength},
}

// terminated waits until both ends hear that b has terminated the connection
// because of cause, and connects them anew. c is not disturbed.
func (r *rig) terminated(a, b, c *host, cause iwarp.Cause) {
	r.t.Helper()
	for ok := true; ok; { // the events of the queue pairs come before
		_, ok = a.ctx.GetAsyncEvent()
	}
	atA, atB := r.parted(a, b)
	for _, x := range []struct {
		e      verbs.CMEvent
		remote bool
	}{{atA, true}, {atB, false}} {
		if why, ok := errors.AsType[*iwarp.TerminateError](x.e.Err); !ok || why.Cause != cause || why.Remote != x.remote {
			r.t.Fatalf("the connection ends with %v, want a Terminate (remote %v): %v", x.e.Err, x.remote, cause)
		}
	}
	r.exchange(a, c)
	r.exchange(b, c)
	r.join(a, b)
	r.exchange(a, b)
}

// sendFindsNoReceive sends what nobody has posted a receive for: to a queue pair
// that is an error of the sender's (RFC 5041, section 7.2).
func sendFindsNoReceive(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	for _, n := range []int{0, 8, 10_000} {
		src, dst := a.region(n, 0).fill(1), b.region(n, verbs.LocalWrite)
		id := b.recv(a, dst.SGE(0, n))
		first := a.wr(verbs.OpSend, b, src.SGE(0, n))
		a.post(first)
		second := a.wr(verbs.OpSend, b, src.SGE(0, n))
		a.post(second)
		b.received(id, verbs.OpRecv, a)
		dst.equals(src.b)
		a.sent(&first, verbs.Success)
		a.denied(&second, b, verbs.RemInvReqErr, verbs.RemOpErr)
		b.hears(a, verbs.EventQPReqErr)
		r.terminated(a, b, c, ddp.NoBuffer)
	}
	// So it is for Immediate Data.
	wr := a.wr(verbs.OpRDMAWriteWithImm, b)
	a.post(wr)
	a.denied(&wr, b, verbs.RemInvReqErr, verbs.RemOpErr)
	b.hears(a, verbs.EventQPReqErr)
	r.terminated(a, b, c, ddp.NoBuffer)
}

// refusedLargeRC writes many segments of which only the last ones are not
// granted.
func refusedLargeRC(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	const n = 100_000
	src, dst := a.region(n, 0).fill(1), b.region(n-5, verbs.LocalWrite|verbs.RemoteWrite)
	var sends []uint64
	for _, k := range []int{10, n, 10} {
		wr := at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, k)), dst, 0)
		a.post(wr)
		sends = append(sends, wr.WRID)
	}
	if done := r.ended(a.scq, sends); done == 0 {
		r.t.Error("what came before the error has failed")
	}
	b.hears(a, verbs.EventQPAccessErr)
	r.terminated(a, b, c, ddp.BaseBounds)
	r.canaries()
}

// longerThanReceiveRC sends more than there is room for: both ends hear of it.
func longerThanReceiveRC(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	for _, n := range []int{101, 2000, 5000} {
		src, dst := a.region(n, 0).fill(1), b.region(n, verbs.LocalWrite)
		id := b.recv(a, dst.SGE(0, 100))
		rest := b.recv(a)
		wr := a.wr(verbs.OpSend, b, src.SGE(0, n))
		a.post(wr)
		if wc := r.next(b.rcq); wc.Status != verbs.LocLenErr || wc.WRID != id {
			r.t.Fatalf("%d bytes: completion %+v of the receive", n, wc)
		}
		r.flushed(b.rcq, []uint64{rest})
		a.denied(&wr, b, verbs.RemInvReqErr)
		for i, x := range dst.b[100:] {
			if x != 0 {
				r.t.Fatalf("%d bytes: byte %d behind the receive buffer has changed", n, i)
			}
		}
		b.hears(a, verbs.EventQPReqErr)
		r.terminated(a, b, c, ddp.MessageTooLong)
	}
}

// sendWithInvRefusedRC names keys that are not the peer's to end: they stay
// valid.
func sendWithInvRefusedRC(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	src, dst := a.region(8, 0).fill(1), b.region(8, verbs.LocalWrite)
	g := b.region(8, verbs.LocalWrite|verbs.RemoteWrite)
	alone, err := b.ctx.AllocPD()
	r.must(err)
	other := b.regionOf(alone, 8, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteInvalidate)
	for _, key := range []uint32{g.RKey(), other.RKey(), g.RKey() ^ 0x5500} {
		id := b.recv(a, dst.SGE(0, 8))
		wr := a.wr(verbs.OpSendWithInv, b, src.SGE(0, 8))
		wr.InvKey = key
		a.post(wr)
		a.denied(&wr, b, verbs.RemAccessErr)
		if wc := r.next(b.rcq); wc.WRID != id || wc.Status == verbs.Success {
			r.t.Fatalf("completion %+v of the receive", wc)
		}
		b.hears(a, verbs.EventQPAccessErr, verbs.EventQPReqErr)
		r.again(a, b)
	}
	c.do(at(c.wr(verbs.OpRDMAWrite, b, c.region(8, 0).fill(3).SGE(0, 8)), g, 0))
	r.exchange(b, c)
}

// windowOfAnother uses the key of a window that was bound for another queue
// pair, and of one whose queue pair is gone.
func windowOfAnother(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	g := b.region(100, verbs.LocalWrite|verbs.MWBind)
	forC := b.bind(c, g, 0, 100, verbs.RemoteWrite)
	src := a.region(100, 0).fill(1)
	wr := through(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, 100)), forC, g, 0)
	a.post(wr)
	a.denied(&wr, b, verbs.RemAccessErr)
	b.hears(a, verbs.EventQPAccessErr)
	r.terminated(a, b, c, ddp.NotAssociated)
	g.is(0, nil)
	from := c.region(100, 0).fill(2)
	c.do(through(c.wr(verbs.OpRDMAWrite, b, from.SGE(0, 100)), forC, g, 0))
	g.gets(0, from.b)
	r.part(b, c)
	r.join(b, c)
	clear(g.b)
	wr = through(c.wr(verbs.OpRDMAWrite, b, from.SGE(0, 100)), forC, g, 0)
	c.post(wr)
	c.denied(&wr, b, verbs.RemAccessErr)
	b.hears(c, verbs.EventQPAccessErr)
	r.parted(c, b)
	g.is(0, nil)
	r.join(c, b)
	r.exchange(b, c)
}

// refusedAtWork makes one of many requests fail, in both directions at once:
// every request and every receive ends once.
func refusedAtWork(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	for bad := range 8 {
		const size = 3000
		var sends, recvs [2][]uint64
		for i, h := range []*host{a, b} {
			peer := r.hosts[1-i]
			src, sink := h.region(size, 0).fill(1), h.region(size, verbs.LocalWrite)
			dst := peer.region(size, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
			for range 8 {
				recvs[1-i] = append(recvs[1-i], peer.recv(h, dst.SGE(0, size)))
			}
			for k := range 8 {
				wr := h.wr(verbs.OpSend, peer, src.SGE(0, size))
				switch k % 3 {
				case 1:
					wr = at(h.wr(verbs.OpRDMARead, peer, sink.SGE(0, size)), dst, 0)
				case 2:
					wr = at(h.wr(verbs.OpRDMAWrite, peer, src.SGE(0, size)), dst, 0)
				}
				if k == bad && i == 0 {
					wr.Opcode, wr.RKey, wr.RemoteAddr = verbs.OpRDMARead, dst.RKey()^0x7700, dst.Addr()
					wr.SGL[0] = sink.SGE(0, size)
				}
				h.post(wr)
				sends[i] = append(sends[i], wr.WRID)
			}
		}
		if done := r.ended(a.scq, sends[0]); done > bad {
			r.t.Errorf("%d requests have succeeded, and the bad one was number %d", done, bad)
		}
		r.ended(b.scq, sends[1])
		r.ended(a.rcq, recvs[0])
		r.ended(b.rcq, recvs[1])
		b.hears(a, verbs.EventQPAccessErr)
		r.terminated(a, b, c, rdmap.InvalidSTag)
	}
}

// zeroLength does operations of no bytes, which need no key.
func zeroLength(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	for range 3 {
		for _, op := range []verbs.Opcode{verbs.OpSend, verbs.OpRDMAWrite, verbs.OpRDMARead, verbs.OpRDMAWriteWithImm} {
			recv := op == verbs.OpSend || op == verbs.OpRDMAWriteWithImm
			var id uint64
			if recv {
				id = b.recv(a)
			}
			a.do(a.wr(op, b))
			if recv {
				want := verbs.OpRecv
				if op == verbs.OpRDMAWriteWithImm {
					want = verbs.OpRecvRDMAWithImm
				}
				if wc := b.received(id, want, a); wc.ByteLen != 0 {
					r.t.Errorf("%v: completion %+v", op, wc)
				}
			}
		}
	}
	r.exchange(a, b)
}

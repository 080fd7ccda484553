package conform

import (
	"bytes"
	"errors"
	"net/netip"
	"syscall"

	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/verbs"
)

// rcConnectCases are about how connections begin.
var rcConnectCases = []verbsCase{
	{name: "privateData", on: onRC, apart: true, run: privateData},
	{name: "rejected", on: onRC, apart: true, run: rejected},
	{name: "nobodyListens", on: onRC, apart: true, run: nobodyListens},
	{name: "initiatorLeaves", on: onRC, apart: true, run: initiatorLeaves},
	{name: "listenerLeaves", on: onRC, apart: true, run: listenerLeaves},
	{name: "receivesBeforeAccept", on: onRC, apart: true, run: receivesBeforeAccept},
	{name: "responderSpeaksFirst", on: onRC, apart: true, run: responderSpeaksFirst},
	{name: "framing", on: onRC, apart: true, run: framing},
	{name: "peerToPeer", on: onRC, apart: true, run: peerToPeer},
	{name: "revision1", on: onRC, apart: true, run: revision1},
	{name: "severalConnections", on: onRC, apart: true, run: severalConnections},
	{name: "statesRC", on: onRC, apart: true, run: statesRC},
	{name: "queuePairAgain", on: onRC, apart: true, run: queuePairAgain},
}

// with returns how the rig connects, but for what change does.
func (r *rig) with(change func(p *verbs.ConnParam)) verbs.ConnParam {
	p := r.config.Connect
	change(&p)
	return p
}

// blob is n bytes of private data.
func blob(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*3 + seed)
	}
	return b
}

// mostPrivate returns how many bytes of private data a start-up frame has room
// for.
func (r *rig) mostPrivate() int {
	if r.config.Connect.Revision == 1 {
		return 256
	}
	return 252
}

func privateData(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	most := r.mostPrivate()
	for n := range most + 1 {
		if n > 8 && n < most-4 && n%40 != 0 {
			continue
		}
		there, back := blob(n, 1), blob(most-n, 2)
		id := a.dial(b.addr)
		a.connect(id, r.with(func(p *verbs.ConnParam) { p.PrivateData = there }))
		req := b.heard(verbs.CMConnectRequest)
		if !bytes.Equal(req.Param.PrivateData, there) {
			r.t.Fatalf("%d bytes arrive as %x", n, req.Param.PrivateData)
		}
		r.must(req.ID.CreateQP(b.pd, b.init()))
		if err := req.ID.Accept(r.with(func(p *verbs.ConnParam) { p.PrivateData = make([]byte, most+1) })); !errors.Is(err, verbs.ErrInvalid) {
			r.t.Fatalf("%d bytes: %v", most+1, err)
		}
		r.must(req.ID.Accept(r.with(func(p *verbs.ConnParam) { p.PrivateData = back })))
		a.rc.ids[1], a.rc.qps[1], b.rc.ids[0], b.rc.qps[0] = id, id.QP, req.ID, req.ID.QP
		if e := a.heard(verbs.CMEstablished); !bytes.Equal(e.Param.PrivateData, back) {
			r.t.Fatalf("%d bytes come back as %x", len(back), e.Param.PrivateData)
		}
		b.heard(verbs.CMEstablished)
		r.part(a, b)
	}
	id := a.dial(b.addr)
	r.must(id.CreateQP(a.pd, a.init()))
	if err := id.Connect(r.with(func(p *verbs.ConnParam) { p.PrivateData = make([]byte, most+1) })); !errors.Is(err, verbs.ErrInvalid) {
		r.t.Errorf("%d bytes: %v", most+1, err)
	}
	r.must(id.Destroy())
	id.QP.Destroy()
}

// rejected refuses connections, with all lengths of private data, and then takes
// one of the same queue pair.
func rejected(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	qp, err := a.pd.CreateQP(a.init())
	r.must(err)
	for _, n := range []int{0, 1, 100, r.mostPrivate()} {
		id := a.dial(b.addr)
		a.connectWith(id, qp, r.config.Connect)
		req := b.heard(verbs.CMConnectRequest)
		if err := req.ID.Reject(make([]byte, r.mostPrivate()+1)); !errors.Is(err, verbs.ErrInvalid) {
			r.t.Fatalf("rejecting with %d bytes: %v", r.mostPrivate()+1, err)
		}
		r.must(req.ID.Reject(blob(n, 3)))
		e := a.heard(verbs.CMRejected)
		if _, ok := errors.AsType[*mpa.RejectedError](e.Err); e.ID != id || !bytes.Equal(e.Param.PrivateData, blob(n, 3)) || !ok {
			r.t.Fatalf("rejected with %d bytes: %x, %v", n, e.Param.PrivateData, e.Err)
		}
		if qp.State() != verbs.StateInit {
			r.t.Fatalf("the queue pair is in state %v", qp.State())
		}
		r.must(id.Destroy())
		r.must(req.ID.Destroy())
	}
	id := a.dial(b.addr)
	a.connectWith(id, qp, r.config.Connect)
	id2 := b.accept(r.config.Connect)
	a.rc.ids[1], a.rc.qps[1], b.rc.ids[0], b.rc.qps[0] = id, qp, id2, id2.QP
	a.heard(verbs.CMEstablished)
	b.heard(verbs.CMEstablished)
	r.exchange(a, b)
}

// connectWith begins to connect a queue pair that is not the identifier's.
func (h *host) connectWith(id *verbs.CMID, qp *verbs.QP, p verbs.ConnParam) {
	h.r.t.Helper()
	p.QP = qp
	h.r.must(h.r.on(h, func() error { return id.Connect(p) }))
}

// nobodyListens connects to where somebody has listened, and to where nobody
// ever has.
func nobodyListens(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	at := b.addr
	r.must(b.rc.listener.Destroy())
	for range 3 {
		id := a.dial(at)
		a.connect(id, r.config.Connect)
		e := a.heard(verbs.CMRejected)
		if e.ID != id || !errors.Is(e.Err, syscall.ECONNREFUSED) {
			r.t.Fatalf("event %+v", e)
		}
		if s := id.QP.State(); s != verbs.StateInit {
			r.t.Errorf("the queue pair is in state %v", s)
		}
		r.must(id.Destroy())
		id.QP.Destroy()
	}
	var err error
	b.rc.listener, err = b.rc.cm.CreateID()
	r.must(err)
	r.must(b.rc.listener.BindAddr(netip.AddrPortFrom(at.Addr(), 0)))
	r.must(r.on(b, func() error { return b.rc.listener.Listen(1) }))
	b.addr = b.rc.listener.LocalAddr()
	r.join(a, b)
	r.exchange(a, b)
}

// initiatorLeaves gives up while the other end decides.
func initiatorLeaves(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	id := a.dial(b.addr)
	a.connect(id, r.config.Connect)
	req := b.heard(verbs.CMConnectRequest)
	r.must(id.Destroy())
	if s := id.QP.State(); s != verbs.StateInit {
		r.t.Errorf("the queue pair is in state %v", s)
	}
	id.QP.Destroy()
	if e := b.heard(verbs.CMConnectError); e.ID != req.ID || e.Err == nil {
		r.t.Errorf("event %+v", e)
	}
	r.must(req.ID.Destroy())
	r.join(a, b)
	r.exchange(a, b)
}

// listenerLeaves takes a listener away from those who wait for it.
func listenerLeaves(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	id := a.dial(b.addr)
	a.connect(id, r.config.Connect)
	req := b.heard(verbs.CMConnectRequest)
	r.must(b.rc.listener.Destroy())
	r.must(req.ID.CreateQP(b.pd, b.init())) // it is not the listener's any more
	r.must(req.ID.Accept(r.config.Connect))
	a.rc.ids[1], a.rc.qps[1], b.rc.ids[0], b.rc.qps[0] = id, id.QP, req.ID, req.ID.QP
	a.heard(verbs.CMEstablished)
	b.heard(verbs.CMEstablished)
	r.exchange(a, b)
}

// receivesBeforeAccept posts receives to a queue pair that is not connected, for
// what comes with the first segment.
func receivesBeforeAccept(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	src, dst := a.region(100, 0).fill(1), b.region(100, verbs.LocalWrite)
	id := a.dial(b.addr)
	a.connect(id, r.config.Connect)
	wr := a.wr(verbs.OpSend, b, src.SGE(0, 100))
	a.rc.qps[1] = id.QP
	if err := a.try(&wr); !errors.Is(err, verbs.ErrInvalid) {
		r.t.Errorf("a Send before the connection: %v", err)
	}
	req := b.heard(verbs.CMConnectRequest)
	r.must(req.ID.CreateQP(b.pd, b.init()))
	b.rc.qps[0] = req.ID.QP
	recv := b.recv(a, dst.SGE(0, 100))
	r.must(req.ID.Accept(r.config.Connect))
	a.heard(verbs.CMEstablished)
	a.do(wr)
	b.received(recv, verbs.OpRecv, a)
	dst.equals(src.b)
	b.heard(verbs.CMEstablished)
}

// responderSpeaksFirst sends from the end that has accepted, as soon as it may.
// The other end has nothing to say.
func responderSpeaksFirst(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	id := a.dial(b.addr)
	a.connect(id, r.config.Connect)
	dst, src := a.region(100, verbs.LocalWrite), b.region(100, 0).fill(1)
	a.rc.ids[1], a.rc.qps[1] = id, id.QP
	recv := a.recv(b, dst.SGE(0, 100))
	id2 := b.accept(r.config.Connect)
	b.rc.ids[0], b.rc.qps[0] = id2, id2.QP
	b.heard(verbs.CMEstablished)
	wr := b.wr(verbs.OpSend, a, src.SGE(0, 100))
	b.post(wr)
	a.received(recv, verbs.OpRecv, b)
	dst.equals(src.b)
	b.sent(&wr, verbs.Success)
	a.heard(verbs.CMEstablished)
}

// framing connects with and without CRCs and markers, as each end wants them.
func framing(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	for i := range 16 {
		pa := r.with(func(p *verbs.ConnParam) { p.CRC, p.Markers = i&1 != 0, i&2 != 0 })
		pb := r.with(func(p *verbs.ConnParam) { p.CRC, p.Markers = i&4 != 0, i&8 != 0 })
		atA, atB := r.joinWith(a, b, pa, pb)
		if want := pa.CRC || pb.CRC; atA.Param.CRC != want || atB.Param.CRC != want {
			r.t.Errorf("CRC wanted by %v and %v: agreed %v and %v", pa.CRC, pb.CRC, atA.Param.CRC, atB.Param.CRC)
		}
		r.everything(a, b)
		r.everything(b, a)
		r.part(a, b)
	}
}

// everything does each kind of operation, with messages of no byte, of few and of
// several segments.
func (r *rig) everything(a, b *host) {
	r.t.Helper()
	const most = 10_000
	src, sink := a.region(most, 0), a.region(most, verbs.LocalWrite)
	dst := b.region(most, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic)
	for i, n := range []int{0, 1, 3, 505, 506, 507, 508, 1000, most} {
		src.fill(i)
		clear(dst.b)
		id := b.recv(a, dst.SGE(0, most))
		a.do(a.wr(verbs.OpSend, b, src.SGE(0, n)))
		b.received(id, verbs.OpRecv, a)
		dst.is(0, src.b[:n])
		src.fill(i + 1)
		a.do(at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, n)), dst, 0))
		clear(sink.b)
		a.do(at(a.wr(verbs.OpRDMARead, b, sink.SGE(0, n)), dst, 0))
		sink.is(0, src.b[:n])
		src.fill(i + 2)
		id = b.recv(a)
		imm := at(a.wr(verbs.OpRDMAWriteWithImm, b, src.SGE(0, n)), dst, 0)
		imm.ImmData = uint64(i)
		a.do(imm)
		if wc := b.received(id, verbs.OpRecvRDMAWithImm, a); wc.ImmData != uint64(i) {
			r.t.Fatalf("completion %+v", wc)
		}
		dst.is(0, src.b[:n])
		before := word(dst.b)
		add := at(a.wr(verbs.OpAtomicFetchAndAdd, b, sink.SGE(0, 8)), dst, 0)
		add.Atomic.Add = 5
		a.do(add)
		if got := word(sink.b); got != before || word(dst.b) != before+5 {
			r.t.Fatalf("5 added to %#x: found %#x, made %#x", before, got, word(dst.b))
		}
	}
	for _, g := range []*region{src, sink, dst} {
		r.must(g.Dereg())
	}
}

// peerToPeer lets the initiator speak first, in each of the ways that RFC 6581
// has; then the responder has the first word of the programs.
func peerToPeer(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	if r.config.Connect.Revision == 1 {
		r.t.Skip("revision 1 has no peer-to-peer mode")
	}
	for _, rtr := range []mpa.RTR{mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead} {
		for _, takes := range []mpa.RTR{0, rtr} {
			pa := r.with(func(p *verbs.ConnParam) { p.RTR = rtr })
			atA, atB := r.joinWith(a, b, pa, r.with(func(p *verbs.ConnParam) { p.RTR = takes }))
			if got := atA.Param.RTR; got == 0 || got&^rtr != 0 || got != atB.Param.RTR {
				r.t.Fatalf("%v asked for, %v and %v agreed on", rtr, got, atB.Param.RTR)
			}
			r.exchange(b, a)
			r.everything(a, b)
			r.part(a, b)
		}
	}
	// Reads may be none: the first message is not one of the program's.
	none := r.with(func(p *verbs.ConnParam) {
		p.RTR, p.ResponderResources, p.InitiatorDepth = mpa.RTRSend|mpa.RTRWrite, -1, -1
	})
	r.joinWith(a, b, none, none)
	r.exchange(b, a)
}

// revision1 is RFC 5044 alone: nothing is agreed on but CRCs and markers.
func revision1(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	for i := range 4 {
		p := verbs.ConnParam{Revision: 1, CRC: i&1 != 0, Markers: i&2 != 0, PrivateData: blob(256, i)}
		atA, atB := r.joinWith(a, b, p, p)
		if atA.Param.Revision != 1 || atB.Param.Revision != 1 || !bytes.Equal(atA.Param.PrivateData, p.PrivateData) {
			r.t.Errorf("agreed on %+v and %+v", atA.Param, atB.Param)
		}
		r.everything(a, b)
		r.part(a, b)
	}
}

// severalConnections has five between the same hosts: each is in order, and none
// waits for another.
func severalConnections(r *rig) {
	const count = 5
	a, b := r.hosts[0], r.hosts[1]
	type link struct{ a, b *verbs.CMID }
	var links [count]link
	use := func(i int) {
		a.rc.ids[1], a.rc.qps[1], b.rc.ids[0], b.rc.qps[0] = links[i].a, links[i].a.QP, links[i].b, links[i].b.QP
	}
	numbers := map[uint32]bool{}
	for i := range links {
		r.join(a, b)
		links[i] = link{a.rc.ids[1], b.rc.ids[0]}
		numbers[links[i].a.QP.Num()] = true
	}
	if len(numbers) != count {
		r.t.Fatalf("%d queue pairs have the numbers %v", count, numbers)
	}
	src, dst := a.region(count*40, 0).fill(1), b.region(count*40, verbs.LocalWrite)
	order := map[uint32][]uint64{} // of receives, by queue pair
	for k := range 40 {
		for i := range links {
			use(i)
			order[links[i].b.QP.Num()] = append(order[links[i].b.QP.Num()], b.recv(a, dst.SGE(i*40+k, 1)))
		}
	}
	for k := range 40 {
		for i := count - 1; i >= 0; i-- {
			use(i)
			wr := a.wr(verbs.OpSend, b, src.SGE(i*40+k, 1))
			wr.Flags = 0
			a.post(wr)
		}
	}
	for range count * 40 {
		wc := r.next(b.rcq)
		if wc.Status != verbs.Success || len(order[wc.QPNum]) == 0 || order[wc.QPNum][0] != wc.WRID {
			r.t.Fatalf("completion %+v, due on that queue pair: %v", wc, order[wc.QPNum])
		}
		order[wc.QPNum] = order[wc.QPNum][1:]
	}
	dst.equals(src.b)
	// What ends one of them leaves the others alone.
	use(2)
	bad := a.wr(verbs.OpRDMARead, b, a.region(8, verbs.LocalWrite).SGE(0, 8))
	bad.RKey, bad.RemoteAddr = src.RKey()^0x3300, 0
	a.post(bad)
	a.sent(&bad, verbs.RemAccessErr)
	r.parted(a, b)
	for _, i := range []int{0, 1, 3, 4} {
		use(i)
		r.everything(a, b)
		r.part(a, b)
	}
}

// statesRC walks a queue pair through the states that a program may set, and
// checks that only a connection makes it work.
func statesRC(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	init := a.init()
	init.Reset = true
	q, err := a.pd.CreateQP(init)
	r.must(err)
	src := a.region(8, verbs.LocalWrite)
	send := verbs.SendWR{Opcode: verbs.OpSend, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{src.SGE(0, 8)}}
	recv := verbs.RecvWR{NumSGE: 1, SGL: send.SGL}
	check := func(want verbs.QPState, receives bool) {
		r.t.Helper()
		if q.State() != want {
			r.t.Fatalf("state %v, want %v", q.State(), want)
		}
		if err := q.PostSend(&send); !errors.Is(err, verbs.ErrInvalid) {
			r.t.Errorf("a Send in state %v: %v", want, err)
		}
		if err := q.PostRecv(&recv); (err == nil) != receives {
			r.t.Errorf("a receive in state %v: %v", want, err)
		}
	}
	check(verbs.StateReset, false)
	id := a.dial(b.addr)
	p := r.with(func(p *verbs.ConnParam) { p.QP = q })
	if err := id.Connect(p); !errors.Is(err, verbs.ErrInvalid) {
		r.t.Errorf("connecting in state %v: %v", q.State(), err)
	}
	r.must(q.Modify(verbs.StateInit))
	check(verbs.StateInit, true)
	for _, to := range []verbs.QPState{verbs.StateRTR, verbs.StateRTS, verbs.StateSQD} {
		if err := q.Modify(to); !errors.Is(err, verbs.ErrInvalid) || q.State() != verbs.StateInit {
			r.t.Errorf("to %v without a connection: %v, state %v", to, err, q.State())
		}
	}
	a.connectWith(id, q, r.config.Connect)
	id2 := b.accept(r.config.Connect)
	a.rc.ids[1], a.rc.qps[1], b.rc.ids[0], b.rc.qps[0] = id, q, id2, id2.QP
	a.heard(verbs.CMEstablished)
	b.heard(verbs.CMEstablished)
	back := b.wr(verbs.OpSend, a, b.region(8, 0).SGE(0, 8))
	b.do(back)
	if wc := r.next(a.rcq); wc.Status != verbs.Success || wc.QPNum != q.Num() {
		r.t.Errorf("completion %+v", wc)
	}
	r.exchange(a, b)
	for _, to := range []verbs.QPState{verbs.StateRTS, verbs.StateSQD, verbs.StateRTS} {
		r.must(q.Modify(to))
	}
	r.exchange(a, b)
	r.must(q.Modify(verbs.StateReset)) // ends the connection
	r.parted(a, b)
}

// queuePairAgain connects a queue pair whose connection is over.
func queuePairAgain(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	r.join(a, b)
	q := a.to(b)
	for i := range 3 {
		r.exchange(a, b)
		r.must(a.rc.ids[1].Disconnect())
		for _, h := range []*host{a, b} {
			e := h.heard(verbs.CMDisconnected)
			r.must(e.ID.Destroy())
		}
		b.to(a).Destroy()
		if q.State() != verbs.StateErr {
			r.t.Fatalf("after the connection, state %v", q.State())
		}
		r.must(q.Modify(verbs.StateReset))
		r.must(q.Modify(verbs.StateInit))
		id := a.dial(b.addr)
		a.connectWith(id, q, r.config.Connect)
		id2 := b.accept(r.config.Connect)
		a.rc.ids[1], b.rc.ids[0], b.rc.qps[0] = id, id2, id2.QP
		a.heard(verbs.CMEstablished)
		b.heard(verbs.CMEstablished)
		if id.PeerAddr() != b.addr {
			r.t.Errorf("round %d: connected to %v", i, id.PeerAddr())
		}
		r.everything(a, b)
	}
}

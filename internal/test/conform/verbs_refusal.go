package conform

import (
	"errors"
	"slices"

	"github.com/xwarp/xwarp/verbs"
)

// refusalCases ask for what was not granted.
var refusalCases = []verbsCase{
	{name: "refusedWrite", on: onRel, hosts: 3, run: func(r *rig) { refused(r, verbs.OpRDMAWrite, verbs.RemoteWrite) }},
	{name: "refusedWriteWithImm", on: onRel, hosts: 3, run: func(r *rig) { refused(r, verbs.OpRDMAWriteWithImm, verbs.RemoteWrite) }},
	{name: "refusedWriteRecord", on: onRD, hosts: 3, run: func(r *rig) { refused(r, verbs.OpRDMAWriteRecord, verbs.RemoteWrite) }},
	{name: "refusedRead", on: onRel, hosts: 3, run: func(r *rig) { refused(r, verbs.OpRDMARead, verbs.RemoteRead) }},
	{name: "refusedFetchAndAdd", on: onRel, hosts: 3, run: func(r *rig) { refused(r, verbs.OpAtomicFetchAndAdd, verbs.RemoteAtomic) }},
	{name: "refusedSwap", on: onRel, hosts: 3, run: func(r *rig) { refused(r, verbs.OpAtomicSwap, verbs.RemoteAtomic) }},
	{name: "refusedCompareAndSwap", on: onRel, hosts: 3, run: func(r *rig) { refused(r, verbs.OpAtomicCmpAndSwp, verbs.RemoteAtomic) }},
	{name: "refusedLargeWrite", on: onRD, hosts: 3, run: refusedLarge},
	{name: "crookedAtomic", on: onRel, hosts: 3, run: crookedAtomic},
	{name: "longerThanReceive", on: onRD, hosts: 3, run: longerThanReceive},
	{name: "refusedLocally", on: onAll, run: refusedLocally},
	{name: "legality", on: onAll, run: legality},
}

// target is memory that somebody names without having it.
type target struct {
	name string
	key  uint32
	addr uint64
}

// ungranted returns ways to miss n bytes of a region that grants need.
func (h *host) ungranted(g *region, n int, need verbs.Access) []target {
	r := h.r
	r.t.Helper()
	alone, err := h.ctx.AllocPD()
	r.must(err)
	other := h.regionOf(alone, g.Len(), verbs.LocalWrite|need)
	const all = verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic
	without := h.region(g.Len(), verbs.LocalWrite|all&^need)
	gone := h.region(g.Len(), verbs.LocalWrite|need)
	key, addr := gone.RKey(), gone.Addr()
	r.must(gone.Dereg())
	inv := h.region(g.Len(), verbs.LocalWrite|need)
	wr := h.wr(verbs.OpLocalInv, nil)
	wr.InvKey = inv.RKey()
	invKey := inv.RKey()
	h.do(wr)
	end := g.Addr() + uint64(g.Len())
	return []target{
		{"a guessed key", g.RKey() ^ 0x5a5a5a00, g.Addr()},
		{"the key's neighbour", g.RKey() + 1, g.Addr()},
		{"one word before", g.RKey(), g.Addr() - 8},
		{"one word behind", g.RKey(), end - uint64(n) + 8},
		{"far away", g.RKey(), g.Addr() + 1<<40},
		{"an address that wraps", g.RKey(), ^uint64(0) - 7},
		{"another domain", other.RKey(), other.Addr()},
		{"without the right", without.RKey(), without.Addr()},
		{"deregistered", key, addr},
		{"invalidated", invKey, inv.Addr()},
	}
}

// refused makes an operation fail in all the ways there are. Each time the
// request ends with RemAccessErr, the target hears of it and nothing of it
// changes, others are not disturbed, and a new handle works again.
func refused(r *rig, op verbs.Opcode, need verbs.Access) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	const n = 8
	local := a.region(n, verbs.LocalWrite).fill(1)
	kept := append([]byte(nil), local.b...)
	g := b.region(64, verbs.LocalWrite|need).fill(2)
	keptB := append([]byte(nil), g.b...)
	witness := b.region(64, verbs.LocalWrite|verbs.RemoteWrite)
	for _, bad := range b.ungranted(g, n, need) {
		before := b.to(a).Stats.Refused
		wr := a.wr(op, b, local.SGE(0, n))
		wr.RKey, wr.RemoteAddr = bad.key, bad.addr
		wr.Atomic = verbs.Atomic{Add: 1, Swap: 77}
		a.post(wr)
		a.denied(&wr, b, verbs.RemAccessErr)
		b.hears(a, verbs.EventQPAccessErr)
		if b.to(a).Stats.Refused == before {
			r.t.Errorf("%v of %s: it is not counted", op, bad.name)
		}
		g.equals(keptB)
		local.equals(kept)
		c.do(at(c.wr(verbs.OpRDMAWrite, b, c.region(8, 0).fill(3).SGE(0, 8)), witness, 8)) // c is not disturbed
		r.again(a, b)
	}
	r.exchange(b, c)
	r.exchange(a, c)
	r.canaries()
}

// hears waits for an event of one of some types about a peer, or about nobody
// when peer is nil. Others that come before are errors.
func (h *host) hears(peer *host, types ...verbs.EventType) verbs.AsyncEvent {
	r := h.r
	r.t.Helper()
	var e verbs.AsyncEvent
	r.until(func() (ok bool) {
		e, ok = h.ctx.GetAsyncEvent()
		return ok
	})
	if !slices.Contains(types, e.Type) || peer != nil && !h.about(&e, peer) {
		r.t.Fatalf("host %d: event %+v, want %v", h.i, e, types)
	}
	return e
}

// about reports whether an event is about a peer.
func (h *host) about(e *verbs.AsyncEvent, peer *host) bool {
	if h.r.typ == verbs.RC {
		return e.QP == h.to(peer)
	}
	return e.AH != nil && e.AH.Remote() == peer.addr
}

// denied waits for the completion of a request to a peer that refuses it. On RC
// what moves no data to here is complete as soon as it is sent.
func (h *host) denied(wr *verbs.SendWR, peer *host, statuses ...verbs.Status) {
	r := h.r
	r.t.Helper()
	if r.typ == verbs.RC && wr.Opcode != verbs.OpRDMARead && (wr.Opcode < verbs.OpAtomicCmpAndSwp || wr.Opcode > verbs.OpAtomicSwap) {
		statuses = append(statuses, verbs.Success)
	}
	wc := r.next(h.scq)
	if wc.WRID != wr.WRID || !slices.Contains(statuses, wc.Status) || wc.Opcode != wr.Opcode || wc.QPNum != h.to(peer).Num() {
		r.t.Fatalf("host %d: completion %+v of %v, want %v", h.i, wc, wr.Opcode, statuses)
	}
}

// again makes new handles after an association has ended, and uses them.
func (r *rig) again(a, b *host) {
	r.t.Helper()
	if r.typ == verbs.RC {
		r.reconnect(a, b)
		return
	}
	if !a.ahs[b.i].Lost() {
		r.t.Fatal("the handle is said to be alive")
	}
	a.meet(b)
	if a.ahs[b.i].Lost() {
		r.t.Fatal("the new handle is dead")
	}
	src, dst := a.region(1000, 0).fill(1), b.region(1000, verbs.LocalWrite)
	id := b.recv(a, dst.SGE(0, 1000))
	a.do(a.wr(verbs.OpSend, b, src.SGE(0, 1000)))
	wc := b.received(id, verbs.OpRecv, a)
	dst.equals(src.b)
	b.ahs[a.i] = wc.Src
	for { // b may hear only now that the old association is over
		if _, ok := b.ctx.GetAsyncEvent(); !ok {
			break
		}
	}
	r.exchange(a, b)
}

// refusedLarge writes many segments of which only the last ones are not
// granted.
func refusedLarge(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	const n = 100_000
	src, dst := a.region(n, 0).fill(1), b.region(n-5, verbs.LocalWrite|verbs.RemoteWrite)
	first := at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, 10)), dst, 0)
	bad := at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, n)), dst, 0)
	after := at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, 10)), dst, 0)
	a.post(first)
	a.post(bad)
	a.post(after)
	// The first is done, unless it was lost, and overtaken by what is refused.
	if wc := r.next(a.scq); wc.WRID != first.WRID || wc.Status != verbs.Success && (r.config.Faults.Loss == 0 || wc.Status != verbs.WRFlushErr) {
		r.t.Fatalf("completion %+v", wc)
	}
	a.sent(&bad, verbs.RemAccessErr)
	a.sent(&after, verbs.WRFlushErr)
	r.exchange(b, c)
	r.canaries()
	r.again(a, b)
}

// crookedAtomic names a word that does not lie at a multiple of 8 (RFC 7306,
// section 5.3).
func crookedAtomic(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	old, dst := a.region(8, verbs.LocalWrite), b.region(64, verbs.LocalWrite|verbs.RemoteAtomic)
	for _, off := range []int{1, 4, 7} {
		wr := at(a.wr(verbs.OpAtomicFetchAndAdd, b, old.SGE(0, 8)), dst, off)
		wr.Atomic.Add = 1
		a.post(wr)
		a.denied(&wr, b, verbs.RemInvReqErr, verbs.RemOpErr)
		dst.is(0, nil)
		old.is(0, nil)
		r.exchange(b, c)
		r.again(a, b)
	}
}

// longerThanReceive sends more than there is room for: both ends hear of it.
func longerThanReceive(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	seg := a.ctx.Attr().MaxSeg
	for _, n := range []int{101, seg + 1, 3 * seg} {
		src, dst := a.region(n, 0).fill(1), b.region(n, verbs.LocalWrite)
		id := b.recv(a, dst.SGE(0, 100))
		wr := a.wr(verbs.OpSend, b, src.SGE(0, n))
		a.post(wr)
		if wc := r.next(b.rcq); wc.Status != verbs.LocLenErr || wc.WRID != id {
			r.t.Fatalf("%d bytes: completion %+v of the receive", n, wc)
		}
		a.sent(&wr, verbs.RemInvReqErr)
		for i, x := range dst.b[100:] {
			if x != 0 {
				r.t.Fatalf("%d bytes: byte %d behind the receive buffer has changed", n, i)
			}
		}
		b.hears(a, verbs.EventQPReqErr)
		r.exchange(b, c)
		r.again(a, b)
	}
}

// refusedLocally posts what cannot be: nothing is posted.
func refusedLocally(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	alone, err := a.ctx.AllocPD()
	r.must(err)
	src, other := a.region(100, 0), a.regionOf(alone, 100, verbs.LocalWrite)
	gone := a.region(100, verbs.LocalWrite)
	goneSGE := gone.SGE(0, 8)
	r.must(gone.Dereg())
	outside := src.SGE(0, 8)
	outside.Addr += 93
	bad := []struct {
		name string
		sge  verbs.SGE
	}{
		{"another domain", other.SGE(0, 8)}, {"deregistered", goneSGE}, {"outside", outside},
		{"no such key", verbs.SGE{Addr: src.Addr(), Length: 8, LKey: src.LKey() ^ 0x7700}},
	}
	for _, c := range bad {
		wr := a.wr(verbs.OpSend, b, c.sge)
		if err := a.try(&wr); !errors.Is(err, verbs.ErrInvalid) {
			r.t.Errorf("Send from %s: %v", c.name, err)
		}
		rr := verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{c.sge}}
		if err := a.to(b).PostRecv(&rr); !errors.Is(err, verbs.ErrInvalid) {
			r.t.Errorf("receive into %s: %v", c.name, err)
		}
	}
	rr := verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{src.SGE(0, 8)}}
	if err := a.to(b).PostRecv(&rr); !errors.Is(err, verbs.ErrInvalid) {
		r.t.Errorf("receive without LocalWrite: %v", err)
	}
	if r.typ != verbs.RC {
		wr := a.wr(verbs.OpSend, nil, src.SGE(0, 8))
		if err := a.try(&wr); !errors.Is(err, verbs.ErrInvalid) {
			r.t.Errorf("Send to nobody: %v", err)
		}
	}
	if r.typ != verbs.UD {
		wr := a.wr(verbs.OpRDMARead, b, src.SGE(0, 8))
		wr.RKey = 1
		if err := a.try(&wr); !errors.Is(err, verbs.ErrInvalid) {
			r.t.Errorf("Read without LocalWrite: %v", err)
		}
	}
	r.exchange(a, b)
}

// legality posts every opcode: each is refused at once, or done.
func legality(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	may := map[verbs.Opcode]transports{
		verbs.OpSend: onAll, verbs.OpSendWithInv: onRel, verbs.OpRDMAWrite: onRel, verbs.OpRDMAWriteWithImm: onRel,
		verbs.OpRDMARead: onRel, verbs.OpAtomicCmpAndSwp: onRel, verbs.OpAtomicFetchAndAdd: onRel, verbs.OpAtomicSwap: onRel,
		verbs.OpRDMAWriteRecord: onBoth, verbs.OpLocalInv: onAll, verbs.OpBindMW: onAll,
	}
	local := a.region(8, verbs.LocalWrite|verbs.MWBind)
	dst := b.region(8, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic)
	mw, err := a.pd.AllocMW()
	r.must(err)
	for op := verbs.Opcode(0); op < verbs.OpRecvRDMAWriteRecord+3; op++ {
		wr := at(a.wr(op, b, local.SGE(0, 8)), dst, 0)
		switch op {
		case verbs.OpSend, verbs.OpSendWithInv, verbs.OpRDMAWriteWithImm:
			wr.InvKey = b.region(8, verbs.LocalWrite|verbs.RemoteInvalidate).RKey()
			if may[op]>>r.typ&1 != 0 {
				b.recv(a, b.region(8, verbs.LocalWrite).SGE(0, 8))
			}
		case verbs.OpLocalInv:
			wr.NumSGE, wr.InvKey = 0, a.region(8, 0).RKey()
		case verbs.OpBindMW:
			wr.NumSGE, wr.Bind = 0, &verbs.Bind{MW: mw, MR: local.MR, Length: 8, Access: verbs.RemoteRead}
		}
		if may[op]>>r.typ&1 == 0 {
			if err := a.try(&wr); !errors.Is(err, verbs.ErrInvalid) {
				r.t.Errorf("%v: %v", op, err)
			}
			continue
		}
		a.do(wr)
		switch op {
		case verbs.OpSend, verbs.OpSendWithInv, verbs.OpRDMAWriteWithImm:
			r.next(b.rcq)
		case verbs.OpRDMAWriteRecord:
			r.next(b.rcq).Record.Release()
		}
	}
	r.exchange(a, b)
}

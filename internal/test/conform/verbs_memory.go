package conform

import (
	"github.com/xwarp/xwarp/verbs"
)

// memoryCases are about windows and about keys that end.
var memoryCases = []verbsCase{
	{name: "window", on: onRel, hosts: 3, run: window},
	{name: "windowRefused", on: onRel, hosts: 3, run: windowRefused},
	{name: "windowRecord", on: onUD, run: windowRecord},
	{name: "windowBindErrors", on: onAll, run: windowBindErrors},
	{name: "sendWithInv", on: onRel, run: sendWithInv},
	{name: "sendWithInvRefused", on: onRD, hosts: 3, run: sendWithInvRefused},
	{name: "localInv", on: onAll, run: localInv},
	{name: "deregAfterRead", on: onRel, run: deregAfterRead},
	{name: "deregWhileRead", on: onRel, hosts: 3, run: deregWhileRead},
}

// bind binds a window for a peer to n bytes at off of a region and returns it.
func (h *host) bind(peer *host, g *region, off, n int, access verbs.Access) *verbs.MW {
	r := h.r
	r.t.Helper()
	mw, err := h.pd.AllocMW()
	r.must(err)
	h.do(h.binding(peer, verbs.Bind{MW: mw, MR: g.MR, Offset: off, Length: n, Access: access}))
	if mw.RKey() == 0 || mw.RKey() == g.RKey() {
		r.t.Fatalf("the window's key is %#x, the region's %#x", mw.RKey(), g.RKey())
	}
	return mw
}

// binding returns a request that binds a window for a peer: on RC it belongs to
// the queue pair.
func (h *host) binding(peer *host, b verbs.Bind) verbs.SendWR {
	wr := h.wr(verbs.OpBindMW, nil)
	if wr.Bind = &b; h.r.typ == verbs.RC {
		h.r.dest[wr.WRID] = peer
	}
	return wr
}

// inv returns a LocalInv of a key.
func (h *host) inv(key uint32) verbs.SendWR {
	wr := h.wr(verbs.OpLocalInv, nil)
	wr.InvKey = key
	return wr
}

// through aims a request at offset off of what a window shows of a region.
func through(wr verbs.SendWR, mw *verbs.MW, g *region, off int) verbs.SendWR {
	wr.RKey, wr.RemoteAddr = mw.RKey(), g.Addr()+uint64(off)
	return wr
}

// window gives two peers windows into one region that has no remote rights of
// its own.
func window(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	g := b.region(300, verbs.LocalWrite|verbs.MWBind)
	forA := b.bind(a, g, 0, 100, verbs.RemoteWrite|verbs.RemoteRead)
	forC := b.bind(c, g, 100, 104, verbs.RemoteAtomic|verbs.RemoteRead)
	if forA.RKey() == forC.RKey() {
		r.t.Fatal("two windows have one key")
	}
	src, sink := a.region(100, 0).fill(1), a.region(100, verbs.LocalWrite)
	a.do(through(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, 100)), forA, g, 0))
	a.do(through(a.wr(verbs.OpRDMARead, b, sink.SGE(0, 100)), forA, g, 0))
	sink.equals(src.b)
	old := c.region(8, verbs.LocalWrite)
	add := through(c.wr(verbs.OpAtomicFetchAndAdd, b, old.SGE(0, 8)), forC, g, 104)
	add.Atomic.Add = 77
	c.do(add)
	want := make([]byte, 300)
	copy(want, src.b)
	putWord(want[104:], 77)
	g.equals(want)
	// A window can be bound again, elsewhere, under another key.
	key := forA.RKey()
	b.do(b.inv(key))
	b.do(b.binding(a, verbs.Bind{MW: forA, MR: g.MR, Offset: 204, Length: 96, Access: verbs.RemoteWrite}))
	if forA.RKey() == key || forA.RKey() == 0 {
		r.t.Fatalf("the key was %#x, it is %#x", key, forA.RKey())
	}
	a.do(through(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, 96)), forA, g, 204))
	copy(want[204:], src.b[:96])
	g.becomes(want)
	r.must(forA.Dealloc())
	r.must(forC.Dealloc())
	r.must(g.Dereg())
}

// windowRefused misses a window in all the ways there are.
func windowRefused(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	g := b.region(300, verbs.LocalWrite|verbs.MWBind|verbs.RemoteWrite).fill(1)
	kept := append([]byte(nil), g.b...)
	src, sink := a.region(8, 0), a.region(8, verbs.LocalWrite)
	for _, bad := range []struct {
		name string
		op   verbs.Opcode
		off  int
		end  func(*verbs.MW)
	}{
		{"before", verbs.OpRDMAWrite, 92, nil},
		{"over its end", verbs.OpRDMAWrite, 193, nil},
		{"without the right", verbs.OpRDMARead, 100, nil},
		{"without the right", verbs.OpAtomicSwap, 104, nil},
		{"invalidated", verbs.OpRDMAWrite, 100, func(mw *verbs.MW) { b.do(b.inv(mw.RKey())) }},
		{"deallocated", verbs.OpRDMAWrite, 100, func(mw *verbs.MW) { r.must(mw.Dealloc()) }},
	} {
		mw := b.bind(a, g, 100, 100, verbs.RemoteWrite)
		sge := src.SGE(0, 8)
		if bad.op != verbs.OpRDMAWrite {
			sge = sink.SGE(0, 8)
		}
		wr := through(a.wr(bad.op, b, sge), mw, g, bad.off)
		if bad.end != nil {
			bad.end(mw)
		}
		a.post(wr)
		a.denied(&wr, b, verbs.RemAccessErr)
		b.hears(a, verbs.EventQPAccessErr)
		g.equals(kept)
		r.exchange(b, c)
		r.again(a, b)
	}
}

// windowRecord writes a record through a window.
func windowRecord(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	g := b.region(300, verbs.LocalWrite|verbs.MWBind)
	mw := b.bind(a, g, 100, 100, verbs.RemoteWrite)
	src := a.region(100, 0).fill(1)
	a.do(through(a.wr(verbs.OpRDMAWriteRecord, b, src.SGE(0, 100)), mw, g, 100))
	if rec := r.next(b.rcq).Record; !rec.Whole || rec.RKey != mw.RKey() {
		r.t.Errorf("record %+v", rec)
	}
	a.do(through(a.wr(verbs.OpRDMAWriteRecord, b, src.SGE(0, 100)), mw, g, 101))
	r.until(func() bool { return b.qp.Stats.Refused == 1 })
	g.is(100, src.b)
	r.exchange(a, b)
}

// windowBindErrors binds what cannot be bound: the requests fail, nothing else
// does.
func windowBindErrors(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	alone, err := b.ctx.AllocPD()
	r.must(err)
	free, err := b.pd.AllocMW()
	r.must(err)
	foreign, err := alone.AllocMW()
	r.must(err)
	g, readOnly, fixed := b.region(100, verbs.LocalWrite|verbs.MWBind), b.region(100, verbs.MWBind), b.region(100, verbs.LocalWrite)
	other := b.regionOf(alone, 100, verbs.LocalWrite|verbs.MWBind)
	gone := b.region(100, verbs.LocalWrite|verbs.MWBind)
	r.must(gone.Dereg())
	for i, bind := range []verbs.Bind{
		{MW: free, MR: fixed.MR, Length: 8, Access: verbs.RemoteRead},
		{MW: free, MR: other.MR, Length: 8, Access: verbs.RemoteRead},
		{MW: free, MR: gone.MR, Length: 8, Access: verbs.RemoteRead},
		{MW: foreign, MR: g.MR, Length: 8, Access: verbs.RemoteRead},
		{MW: free, MR: g.MR, Offset: 93, Length: 8, Access: verbs.RemoteRead},
		{MW: free, MR: g.MR, Offset: -1, Length: 8, Access: verbs.RemoteRead},
		{MW: free, MR: readOnly.MR, Length: 8, Access: verbs.RemoteWrite},
	} {
		wr := b.binding(a, bind)
		wr.Flags = 0 // a failure makes a completion all the same
		b.post(wr)
		if wc := r.next(b.scq); wc.WRID != wr.WRID || wc.Status != verbs.MWBindErr {
			r.t.Errorf("bind %d: completion %+v", i, wc)
		}
	}
	if free.RKey() != 0 {
		r.t.Errorf("the window has key %#x", free.RKey())
	}
	b.bind(a, g, 0, 8, verbs.RemoteRead)
	r.exchange(a, b)
}

// sendWithInv ends a registration and a binding of the peer's.
func sendWithInv(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	src, dst := a.region(100, 0).fill(1), b.region(100, verbs.LocalWrite)
	g := b.region(100, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteInvalidate)
	host := b.region(100, verbs.LocalWrite|verbs.MWBind)
	var mw *verbs.MW
	for i := range 2 {
		key := g.RKey()
		if i == 1 {
			mw = b.bind(a, host, 0, 100, verbs.RemoteWrite)
			key = mw.RKey()
		}
		write := a.wr(verbs.OpRDMAWrite, b, src.SGE(0, 100))
		write.RKey, write.RemoteAddr = key, []*region{g, host}[i].Addr()
		a.do(write)
		id := b.recv(a, dst.SGE(0, 100))
		wr := a.wr(verbs.OpSendWithInv, b, src.SGE(0, 50))
		wr.InvKey = key
		want := verbs.WCWithInv
		if i == 1 {
			wr.Flags |= verbs.Solicited
			want |= verbs.WCWithSolicited
		}
		a.do(wr)
		if wc := b.received(id, verbs.OpRecv, a); wc.Flags != want || wc.InvKey != key || wc.ByteLen != 50 {
			r.t.Fatalf("completion %+v", wc)
		}
		dst.is(0, src.b[:50])
		a.post(write)
		a.denied(&write, b, verbs.RemAccessErr)
		b.hears(a, verbs.EventQPAccessErr)
		r.again(a, b)
	}
	if mw.RKey() != 0 {
		r.t.Errorf("the window still has key %#x", mw.RKey())
	}
	g.is(0, src.b)
	host.is(0, src.b)
}

// sendWithInvRefused names keys that are not the peer's to end: they stay valid.
func sendWithInvRefused(r *rig) {
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
		// It is refused when it is delivered, after the receive was filled:
		// the acknowledgement may have overtaken the refusal.
		if wc := r.next(a.scq); wc.WRID != wr.WRID || wc.Status != verbs.RemAccessErr && wc.Status != verbs.Success {
			r.t.Fatalf("completion %+v", wc)
		}
		r.until(a.ahs[b.i].Lost)
		if wc := r.next(b.rcq); wc.WRID != id || wc.Status == verbs.Success {
			r.t.Fatalf("completion %+v of the receive", wc)
		}
		b.hears(a, verbs.EventQPAccessErr)
		r.again(a, b)
	}
	c.do(at(c.wr(verbs.OpRDMAWrite, b, c.region(8, 0).fill(3).SGE(0, 8)), g, 0))
	r.exchange(b, c)
}

// localInv ends a registration of one's own.
func localInv(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	g := a.region(100, verbs.LocalWrite|verbs.RemoteWrite)
	key, sge := g.RKey(), g.SGE(0, 8)
	id := b.recv(a, b.region(8, verbs.LocalWrite).SGE(0, 8))
	a.do(a.wr(verbs.OpSend, b, sge))
	b.received(id, verbs.OpRecv, a)
	wr := a.inv(key)
	wr.Flags = 0
	a.post(wr) // no completion
	again := a.inv(key)
	again.Flags = 0
	a.post(again)
	if wc := r.next(a.scq); wc.WRID != again.WRID || wc.Status != verbs.LocProtErr || wc.Opcode != verbs.OpLocalInv {
		r.t.Errorf("invalidated twice: %+v", wc)
	}
	send := a.wr(verbs.OpSend, b, sge)
	if err := a.try(&send); err == nil {
		r.t.Error("sent from an invalidated region")
	}
	r.must(g.Dereg())
}

// deregAfterRead takes a region away as soon as the peer has read it, though
// that may not be acknowledged yet.
func deregAfterRead(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	const size = 20_000
	sink := a.region(size, verbs.LocalWrite)
	for i := range 30 {
		src := b.region(size, verbs.RemoteRead).fill(i)
		a.do(at(a.wr(verbs.OpRDMARead, b, sink.SGE(0, size)), src, 0))
		sink.equals(src.b)
		r.must(src.Dereg())
		clear(src.b)
	}
	r.exchange(a, b)
}

// deregWhileRead takes a region away from a peer that reads it. Until then
// some of it may have been read; nothing is read afterwards.
func deregWhileRead(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	const size = 1 << 20
	sink, src := a.region(size, verbs.LocalWrite), b.region(size, verbs.RemoteRead).fill(1)
	wr := at(a.wr(verbs.OpRDMARead, b, sink.SGE(0, size)), src, 0)
	a.post(wr)
	r.until(func() bool { return sink.b[0] == src.b[0] && sink.b[1] == src.b[1] })
	want := append([]byte(nil), src.b...)
	r.must(src.Dereg())
	for i := range src.b {
		src.b[i] = 0xee // must not be seen
	}
	wc := r.next(a.scq)
	if wc.WRID != wr.WRID || wc.Status != verbs.RemAccessErr && wc.Status != verbs.Success {
		r.t.Errorf("completion %+v", wc)
	}
	for i, x := range sink.b {
		if x != want[i] && (x != 0 || wc.Status == verbs.Success) {
			r.t.Fatalf("byte %d is %#x, it was %#x when the region ended", i, x, want[i])
		}
	}
	r.exchange(b, c)
}

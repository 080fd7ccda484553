package conform

import (
	"fmt"
	"math/rand/v2"

	"github.com/xwarp/xwarp/verbs"
)

// expect posts a receive.
func (l *line) expect() {
	wr := verbs.RecvWR{WRID: 1<<32 | uint64(l.posted), NumSGE: 2}
	slot := l.posted % lineRecvs * lineMsg
	cut := l.posted * 37 % lineMsg
	wr.SGL[0], wr.SGL[1] = l.recv.SGE(slot, cut), l.recv.SGE(slot+cut, lineMsg-cut)
	l.s.must(l.qp.PostRecv(&wr))
	l.posted++
}

// post posts a random request, and returns 0 when it cannot now.
func (l *line) post(r *rand.Rand) int {
	i := len(l.ops)
	last := i == l.quota-1
	if i == l.quota || i-l.done >= lineWindow || last && l.done < i {
		return 0
	}
	op := lineOp{op: []verbs.Opcode{
		verbs.OpSend, verbs.OpSend, verbs.OpRDMAWrite, verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm, verbs.OpRDMARead, verbs.OpRDMARead, verbs.OpAtomicFetchAndAdd,
	}[r.IntN(8)]}
	if last {
		op.op = verbs.OpSend
	}
	if delivers(op.op) && len(l.sends) == l.peer.posted {
		return 0
	}
	op.n = r.IntN(1 + []int{1, 64, 64, 500, lineMem}[r.IntN(5)])
	if op.op == verbs.OpSend && r.IntN(5) == 0 {
		op.n = r.IntN(lineMsg + 1)
	}
	op.signaled = i >= l.quota-2 || i%7 == 6 || r.IntN(2) == 0
	if op.op == verbs.OpRDMAWrite || op.op == verbs.OpRDMAWriteWithImm || op.op == verbs.OpRDMARead {
		op.off = r.IntN(lineMem - op.n + 1)
	}
	op.adds = l.adds
	wr := l.request(i, op, r)
	l.s.must(l.qp.PostSend(&wr))
	l.ops = append(l.ops, op)
	if delivers(op.op) {
		l.sends = append(l.sends, i)
	}
	if op.op == verbs.OpRDMAWrite || op.op == verbs.OpRDMAWriteWithImm {
		l.writes = append(l.writes, i)
	}
	return 1
}

// request makes the request that is number i.
func (l *line) request(i int, op lineOp, r *rand.Rand) verbs.SendWR {
	wr := verbs.SendWR{WRID: uint64(i), Opcode: op.op, NumSGE: 2}
	if op.signaled {
		wr.Flags |= verbs.Signaled
	}
	if r.IntN(10) == 0 {
		wr.Flags |= verbs.Fence
	}
	wr.RKey, wr.RemoteAddr = l.peer.dst.RKey(), l.peer.dst.Addr()+uint64(op.off)
	cut := r.IntN(op.n + 1)
	slot := i % lineWindow
	switch op.op {
	case verbs.OpRDMARead:
		clear(l.sink.b[slot*lineMem:][:lineMem])
		wr.SGL[0], wr.SGL[1] = l.sink.SGE(slot*lineMem, cut), l.sink.SGE(slot*lineMem+cut, op.n-cut)
		if r.IntN(2) == 0 {
			wr.NumSGE, wr.SGL[0] = 1, l.sink.SGE(slot*lineMem, op.n)
		}
		return wr
	case verbs.OpAtomicFetchAndAdd:
		wr.NumSGE, wr.SGL[0] = 1, l.sink.SGE(slot*lineMem, 8)
		wr.RKey, wr.RemoteAddr = l.peer.word.RKey(), l.peer.word.Addr()
		wr.Atomic.Add = 3
		l.adds++
		return wr
	case verbs.OpRDMAWriteWithImm:
		wr.ImmData = uint64(i) << 40
	case verbs.OpSend:
		wr.RKey, wr.RemoteAddr = 0, 0
	}
	b := l.src.b[slot*lineMsg:][:op.n]
	for k := range b {
		b[k] = value(i, op.off+k)
	}
	wr.SGL[0], wr.SGL[1] = l.src.SGE(slot*lineMsg, cut), l.src.SGE(slot*lineMsg+cut, op.n-cut)
	if op.n <= verbs.MaxInline && r.IntN(3) == 0 {
		wr.Flags |= verbs.Inline
		wr.NumSGE, wr.InlineData = 0, b
	}
	return wr
}

// value is what request i puts at an offset: never 0, which is what memory holds
// before.
func value(i, at int) byte { return byte(i*53+at*7) | 1 }

// complete handles a completion.
func (l *line) complete(wc *verbs.WC) {
	if wc.WRID>>32 != 0 {
		l.received(wc)
		return
	}
	i := int(wc.WRID)
	if i < l.done || i >= len(l.ops) || wc.Opcode != l.ops[i].op {
		l.fail("completion %+v; %d of %d requests are complete", wc, l.done, len(l.ops))
	}
	for k := l.done; k < i; k++ {
		if l.ops[k].signaled {
			l.fail("completion %+v, and request %d has none", wc, k)
		}
	}
	if wc.Status == verbs.Success {
		if !l.ops[i].signaled {
			l.fail("completion %+v that was not asked for", wc)
		}
		for k := l.done; k <= i; k++ {
			l.brought(k)
		}
	} else if !l.s.x.rough || wc.Status != verbs.WRFlushErr && wc.Status != verbs.RetryExcErr {
		l.fail("completion %+v", wc)
	}
	l.done = i + 1
}

// brought checks what a request that has succeeded has brought here.
func (l *line) brought(i int) {
	op := &l.ops[i]
	b := l.sink.b[i%lineWindow*lineMem:][:lineMem]
	switch op.op {
	case verbs.OpRDMARead:
		l.peer.plausible(b[:op.n], op.off, i, fmt.Sprintf("Read %d of the peer", i))
	case verbs.OpAtomicFetchAndAdd:
		if got := word(b); got != uint64(3*op.adds) {
			l.fail("atomic %d has found %d, want %d", i, got, 3*op.adds)
		}
	}
}

// plausible checks bytes of dst, as they were when the peer's requests up to i
// were placed, and maybe some after.
func (l *line) plausible(b []byte, off, i int, what string) {
	for k, x := range b {
		if want := l.holds(off+k, i, x); want != x {
			l.fail("%s: byte %d of dst is %#x, want %#x or newer", what, off+k, x, want)
		}
	}
}

// holds returns x if that can be at an offset when the peer's requests up to i are
// placed, or else what should.
func (l *line) holds(at, i int, x byte) byte {
	p := l.peer
	for k := len(p.writes) - 1; k >= 0; k-- {
		w := p.writes[k]
		op := &p.ops[w]
		if at < op.off || at >= op.off+op.n {
			continue
		}
		if v := value(w, at); v == x || w <= i {
			return v
		}
	}
	return 0
}

// received checks what a receive has brought, and posts another one.
func (l *line) received(wc *verbs.WC) {
	k := int(uint32(wc.WRID))
	if k != l.got || k >= l.posted {
		l.fail("completion %+v; %d of %d receives are complete", wc, l.got, l.posted)
	}
	l.got++
	if wc.Status != verbs.Success {
		if wc.Status != verbs.WRFlushErr {
			l.fail("completion %+v of a receive", wc)
		}
		return
	}
	if k >= len(l.peer.sends) {
		l.fail("completion %+v, and the peer has sent %d messages", wc, len(l.peer.sends))
	}
	i := l.peer.sends[k]
	op := &l.peer.ops[i]
	switch {
	case op.op == verbs.OpRDMAWriteWithImm:
		if wc.Opcode != verbs.OpRecvRDMAWithImm || wc.ImmData != uint64(i)<<40 {
			l.fail("completion %+v of request %d", wc, i)
		}
	case wc.Opcode != verbs.OpRecv || int(wc.ByteLen) != op.n:
		l.fail("completion %+v of request %d, which is %+v", wc, i, op)
	default:
		for at, x := range l.recv.b[k%lineRecvs*lineMsg:][:op.n] {
			if x != value(i, at) {
				l.fail("byte %d of message %d is %#x, want %#x", at, i, x, value(i, at))
			}
		}
	}
	l.plausible(l.dst.b, 0, i, fmt.Sprintf("when message %d comes", i))
	l.bye = i == l.peer.quota-1
	l.expect()
	l.s.peer.task.Wake() // who may wait for the receive
}

// check checks what is left in the end.
func (l *line) check() {
	if l.got != l.posted {
		l.fail("%d of %d receives are complete", l.got, l.posted)
	}
	for k := l.done; k < len(l.ops); k++ {
		if l.ops[k].signaled {
			l.fail("request %d has no completion", k)
		}
	}
	adds := word(l.word.b)
	if adds%3 != 0 || adds > uint64(3*l.peer.adds) {
		l.fail("the word is %d, and the peer has added 3 %d times", adds, l.peer.adds)
	}
	upTo := -1
	if !l.s.x.rough {
		upTo = len(l.peer.ops)
		if !l.through() || adds != uint64(3*l.peer.adds) {
			l.fail("%d of %d requests are complete, the peer's are here: %v; the word is %d", l.done, l.quota, l.bye, adds)
		}
	}
	l.plausible(l.dst.b, 0, upTo, "in the end")
	for _, g := range []*region2{l.src, l.recv, l.dst, l.sink, l.word} {
		for i, x := range g.all {
			if (i < 16 || i >= len(g.all)-16) && x != canary {
				l.fail("memory around a region of %d bytes has changed", len(g.b))
			}
		}
	}
}

package conform

import (
	"fmt"

	"github.com/xwarp/xwarp/verbs"
)

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
	for _, f := range []*field{l.src, l.recv, l.dst, l.sink, l.word} {
		if !f.intact() {
			l.fail("memory around a region of %d bytes has changed", len(f.b))
		}
	}
}

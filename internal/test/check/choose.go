package check

import (
	"math"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// something does one thing at random.
func (h *host) something() error {
	w := h.w
	if w.NoReceives && h.rng.IntN(20) == 0 {
		h.goal = h.rng.IntN(inboxSlots + 1)
	}
	switch h.rng.IntN(12) {
	case 0:
		h.look()
		return nil
	case 1:
		if w.Pause > 0 {
			h.task.Sleep(w.Pause / 2)
		}
		return nil
	case 2, 3, 4:
		return h.refill()
	case 5:
		if w.Window {
			h.count(h.rng.IntN(3) == 0 && h.unbind() || h.bind())
		}
		return nil
	}
	for range 1 + h.rng.IntN(4) {
		to := h.rng.IntN(w.Hosts)
		if to == h.id || h.posted >= w.Ops {
			continue
		}
		if w.UD && h.rng.IntN(3) == 0 {
			h.count(h.unreliable(to))
		} else if l := h.link(to); l != nil && !l.dead {
			h.count(h.request(l))
		}
	}
	return nil
}

func (h *host) count(posted bool) {
	if posted {
		h.posted++
	}
}

// size draws the length of a message.
func (h *host) size() int {
	seg := h.ctx.Attr().MaxSeg
	n := pick(h.rng, 0, 1, 7, 8, 9, 64, verbs.MaxInline, verbs.MaxInline+1, seg-1, seg, seg+1, 2*seg+3,
		h.rng.IntN(64), h.rng.IntN(64), h.rng.IntN(300), h.rng.IntN(h.w.MaxMsg))
	return min(n, h.w.MaxMsg)
}

// request posts one request to a peer.
func (h *host) request(l *link) bool {
	o := &Op{Len: h.size(), Signaled: h.rng.IntN(4) > 0, Fence: h.rng.IntN(10) == 0}
	o.Code = pick(h.rng, verbs.OpSend, verbs.OpSend, verbs.OpSend, verbs.OpSend, verbs.OpSendWithInv,
		verbs.OpRDMAWrite, verbs.OpRDMAWrite, verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm,
		verbs.OpRDMARead, verbs.OpRDMARead, verbs.OpRDMARead, verbs.OpRDMAWriteRecord,
		verbs.OpAtomicFetchAndAdd, verbs.OpAtomicSwap, verbs.OpAtomicCmpAndSwp)
	if o.Code == verbs.OpRDMAWriteRecord && !h.w.Record {
		o.Code = verbs.OpRDMAWrite
	}
	o.Solicit = o.consumes() && h.rng.IntN(3) == 0
	if o.consumes() && len(l.stream.msgs) == 0 {
		o.Len = max(o.Len, 8) // the first tells who it is
	}
	peer := h.w.hosts[l.stream.To]
	if !peer.up && o.Code != verbs.OpSend {
		return false // its program is not there to tell its keys
	}
	wr := verbs.SendWR{AH: l.ah}
	if h.rng.IntN(4) == 0 && h.overwrite(l, o, &wr) {
		return h.send(l, o, &wr)
	}
	if h.w.Wrong && h.rng.IntN(12) == 0 && h.astray(peer, o, &wr) {
		return h.send(l, o, &wr)
	}
	return h.aim(peer, o, &wr) && h.send(l, o, &wr)
}

// overwrite turns o into a fenced Write of what the last request reads, if it
// is a Read: without the fence, the Read could return what is written.
func (h *host) overwrite(l *link, o *Op, wr *verbs.SendWR) bool {
	ops := l.stream.ops
	if len(ops) == 0 {
		return false
	}
	last := ops[len(ops)-1]
	if last.Code != verbs.OpRDMARead || last.Wrong != "" || last.Grant.Access&verbs.RemoteWrite == 0 || last.Grant.mayEnd < mono.Never {
		return false
	}
	o.Code, o.Len, o.Fence, o.Solicit = verbs.OpRDMAWrite, last.Len, true, false
	h.point(o, wr, last.Grant, last.Off)
	return true
}

// aim chooses what a request is to reach.
func (h *host) aim(peer *host, o *Op, wr *verbs.SendWR) bool {
	switch o.Code {
	case verbs.OpSend:
		return true
	case verbs.OpSendWithInv:
		return h.aimInv(peer, o, wr)
	case verbs.OpRDMAWriteRecord:
		return h.aimRecord(peer, o, wr)
	case verbs.OpAtomicFetchAndAdd, verbs.OpAtomicSwap, verbs.OpAtomicCmpAndSwp:
		return h.aimAtomic(peer, o, wr)
	}
	e, right := peer.mapped[pick(h.rng, memWritable, memShared)], verbs.RemoteWrite
	if o.Code == verbs.OpRDMARead {
		e, right = peer.mapped[pick(h.rng, memReadable, memShared, memShared)], verbs.RemoteRead
		o.Signaled = true
	}
	g := e.grant
	if w := peer.openWindow(h.rng); w != nil && w.grant.Access&right != 0 && h.rng.IntN(2) == 0 {
		g = w.grant
	} else if right == verbs.RemoteWrite && h.rng.IntN(6) == 0 && peer.mapped[memEnding].grant.mayEnd > h.w.clock {
		g = peer.mapped[memEnding].grant
	}
	o.Len = min(o.Len, g.Len)
	h.point(o, wr, g, h.rng.IntN(g.Len-o.Len+1))
	return true
}

// point makes a request name a place. Regions count from 0 (verbs.Config.ZeroBased).
func (h *host) point(o *Op, wr *verbs.SendWR, g *Grant, off int) {
	o.Grant, o.Off = g, off
	wr.RKey, wr.RemoteAddr = g.Key, uint64(g.Off+off)
}

func (h *host) aimInv(peer *host, o *Op, wr *verbs.SendWR) bool {
	if w := peer.openWindow(h.rng); w != nil {
		w.ended = true
		o.Inv = w.grant
	} else if g := peer.mapped[memEnding].grant; h.w.Window && g.mayEnd > h.w.clock {
		o.Inv = g
	} else {
		o.Code = verbs.OpSend
		return true
	}
	wr.InvKey = o.Inv.Key
	return true
}

func (h *host) aimRecord(peer *host, o *Op, wr *verbs.SendWR) bool {
	e := peer.mapped[memRecords]
	o.Len = max(1, o.Len)
	if e.used+o.Len > len(e.bytes()) {
		return false
	}
	h.point(o, wr, e.grant, e.used)
	e.used += o.Len + h.rng.IntN(20)
	return true
}

func (h *host) aimAtomic(peer *host, o *Op, wr *verbs.SendWR) bool {
	e := peer.mapped[memWords]
	o.Len, o.Signaled = 8, true
	if o.Code == verbs.OpAtomicFetchAndAdd {
		o.Cell = h.rng.IntN(wordCount / 2)
		add, ok := h.w.model.Digit(e.region, o.Cell)
		if !ok {
			return false
		}
		wr.Atomic.Add = add
		if h.rng.IntN(4) == 0 { // digits carry nothing, so where carries stop does not matter
			wr.Atomic.Mask = h.rng.Uint64()
		}
	} else {
		o.Cell = wordCount/2 + h.rng.IntN(wordCount/2)
		o.Compare = pick(h.rng, 0, e.word(o.Cell), e.word(o.Cell))
		wr.Atomic.Compare = o.Compare
		if h.rng.IntN(4) == 0 {
			wr.Atomic.Mask, wr.Atomic.CompareMask = math.MaxUint64, math.MaxUint64
		}
	}
	h.point(o, wr, e.grant, 8*o.Cell)
	return true
}

// astray makes a request that asks for what is not granted.
func (h *host) astray(peer *host, o *Op, wr *verbs.SendWR) bool {
	if o.Code == verbs.OpSend {
		o.Code, o.Solicit = verbs.OpRDMAWrite, false
	}
	o.Len, o.Signaled = max(o.Len, 1), true
	if o.Code == verbs.OpSendWithInv {
		o.Wrong, wr.InvKey = "it may not end that registration", peer.mapped[memLocal].grant.Key
		if h.rng.IntN(2) == 0 {
			o.Wrong, wr.InvKey = "nobody has this key", h.rng.Uint32()|1<<31
		}
		return true
	}
	if o.atomic() {
		o.Len = 8
	}
	e := peer.mapped[pick(h.rng, memWritable, memReadable, memShared, memWords)]
	size := len(e.bytes())
	off := h.rng.IntN(max(1, size-o.Len))
	switch h.rng.IntN(6) {
	case 0:
		o.Wrong = "nobody has this key"
		h.point(o, wr, e.grant, off)
		wr.RKey ^= pick[uint32](h.rng, 0x5a, 0x7fff_ff00, 0x8000_0000)
	case 1:
		o.Wrong, o.Partly = "it reaches beyond the end", o.writes()
		h.point(o, wr, e.grant, size-o.Len+1+h.rng.IntN(o.Len))
	case 2:
		o.Wrong, o.Partly = "its address wraps", o.writes()
		h.point(o, wr, e.grant, -1-h.rng.IntN(o.Len))
	case 3:
		o.Wrong = "the region grants nothing to peers"
		h.point(o, wr, peer.mapped[memLocal].grant, off%(regionLen-8))
	case 4:
		o.Wrong = "the region is of another protection domain"
		h.point(o, wr, peer.mapped[memForeign].grant, 0)
	default:
		h.point(o, wr, peer.mapped[memFreed].grant, 0)
		o.Wrong = "the region was deregistered"
	}
	return h.refine(peer, o, wr)
}

// refine turns some requests astray into ones that lack just the right, or the
// alignment.
func (h *host) refine(peer *host, o *Op, wr *verbs.SendWR) bool {
	if h.rng.IntN(3) > 0 {
		return true
	}
	o.Partly = false
	switch {
	case o.atomic() && h.rng.IntN(2) == 0:
		o.Wrong = "its address is not a multiple of 8"
		h.point(o, wr, peer.mapped[memWords].grant, 8*h.rng.IntN(wordCount-1)+1+h.rng.IntN(7))
	case o.atomic():
		o.Wrong = "the region grants no atomics"
		h.point(o, wr, peer.mapped[memShared].grant, 8)
	case o.Code == verbs.OpRDMARead:
		o.Wrong = "the region grants no reading"
		h.point(o, wr, peer.mapped[memWritable].grant, 0)
	default:
		o.Wrong = "the region grants no writing"
		h.point(o, wr, peer.mapped[memReadable].grant, 0)
	}
	return true
}

// unreliable posts one request to the unreliable queue pair of a peer, or of all.
func (h *host) unreliable(to int) bool {
	peer := h.w.hosts[to]
	if !peer.up {
		return false
	}
	o := &Op{Code: verbs.OpSend, Len: max(8, min(h.size(), h.ctx.Attr().MaxSeg)), Signaled: true, ToHost: to, ToQP: peer.ud.Num()}
	addr := h.w.addr(to)
	if h.rng.IntN(5) == 0 {
		o.ToHost, o.ToQP = -1, verbs.MulticastQPN
		addr = netip.AddrPortFrom(group, port)
	}
	ah, err := h.pd.CreateAH(addr)
	if err != nil {
		h.w.model.fail("host %d: handle of %v: %v", h.id, addr, err)
		return false
	}
	wr := verbs.SendWR{AH: ah, RemoteQPN: o.ToQP}
	if o.ToHost >= 0 && h.w.Record && h.rng.IntN(2) == 0 {
		o.Code, o.Len = verbs.OpRDMAWriteRecord, max(1, h.size())
		if !h.aimRecord(peer, o, &wr) {
			return false
		}
	}
	b, ok := h.payload(o, &wr)
	return ok && h.post(h.ud, o, &wr, b)
}

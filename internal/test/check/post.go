package check

import (
	"errors"

	"github.com/xwarp/xwarp/verbs"
)

// send posts o to a peer. It returns false when there is no room now.
func (h *host) send(l *link, o *Op, wr *verbs.SendWR) bool {
	o.Stream = l.stream
	b, ok := h.payload(o, wr)
	if !ok || !h.post(h.qp, o, wr, b) {
		return false
	}
	if o.Signaled {
		l.open++
	}
	return true
}

// number gives o the number that its payload follows from.
func (h *host) number(o *Op) {
	h.w.ops++
	o.ID, o.Life = h.w.ops<<20|uint64(h.rng.IntN(1<<20)), h.life
}

// payload makes what o sends, or room for what it returns. ok is false when
// there is no buffer now.
func (h *host) payload(o *Op, wr *verbs.SendWR) (b buffer, ok bool) {
	h.number(o)
	b.len = o.Len
	switch o.Code {
	case verbs.OpRDMARead, verbs.OpAtomicCmpAndSwp, verbs.OpAtomicFetchAndAdd, verbs.OpAtomicSwap:
		if b.slot, ok = h.sinks.take(); !ok {
			return b, false
		}
		b.in = h.sinks
		wr.NumSGE, wr.SGL = 1, [verbs.MaxSGE]verbs.SGE{b.in.mr.SGE(b.slot*b.in.size, o.Len)}
		if o.Code == verbs.OpRDMARead {
			wr.NumSGE, wr.SGL = b.in.scatter(h.rng, b.slot, o.Len)
		}
		wr.Atomic.Swap = o.ID
		return b, true
	case verbs.OpRDMAWriteWithImm:
		o.Imm = o.ID
		wr.ImmData = o.Imm
	}
	if o.Len <= verbs.MaxInline && h.rng.IntN(3) == 0 {
		wr.Flags |= verbs.Inline
		wr.InlineData = make([]byte, o.Len)
		Fill(wr.InlineData, o.ID, 0)
		return b, true
	}
	if b.slot, ok = h.sends.take(); !ok {
		return b, false
	}
	b.in = h.sends
	Fill(h.sends.at(b.slot)[:o.Len], o.ID, 0)
	wr.NumSGE, wr.SGL = h.sends.scatter(h.rng, b.slot, o.Len)
	return b, true
}

// post posts o, which occupies b.
func (h *host) post(qp *verbs.QP, o *Op, wr *verbs.SendWR, b buffer) bool {
	w := h.w
	if o.ID == 0 {
		h.number(o)
	}
	wr.WRID, wr.Opcode = o.ID, o.Code
	if o.Signaled {
		wr.Flags |= verbs.Signaled
	}
	if o.Fence {
		wr.Flags |= verbs.Fence
	}
	if o.Solicit {
		wr.Flags |= verbs.Solicited
	}
	if (o.Code == verbs.OpSend || o.Code == verbs.OpRDMAWrite) && qp == h.qp && o.ID%4 == 0 { // whatever follows
		wr.Flags |= verbs.More
	}
	w.note("host %d posts %v", h.id, o)
	w.see.Posted(o) // before it is true: posting takes time, in which others go on
	err := qp.PostSend(wr)
	clear(wr.InlineData) // free as soon as PostSend has returned
	if err != nil {
		w.note("host %d: not posted: %v", h.id, err)
		w.see.Withdrawn(o)
		if b.in != nil {
			b.in.give(b.slot)
		}
		h.refused(o, wr, err)
		return false
	}
	h.used[o.ID] = b
	return true
}

// refused deals with an error of PostSend.
func (h *host) refused(o *Op, wr *verbs.SendWR, err error) {
	if errors.Is(err, verbs.ErrQueueFull) {
		return
	}
	if wr.AH == nil || !wr.AH.Lost() {
		h.w.model.fail("host %d: posting %v: %v", h.id, o, err)
		return
	}
	if o.Stream != nil {
		h.links[o.Stream.To].dead = true
	}
}

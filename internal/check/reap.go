package check

import (
	"fmt"

	"github.com/xwarp/xwarp/verbs"
)

// reap polls the completion queues and tells the model.
func (h *host) reap() error {
	h.tick()
	var wcs [16]verbs.WC
	for {
		n := h.scq.Poll(wcs[:])
		for i := range wcs[:n] {
			h.completed(&wcs[i])
		}
		if n == 0 {
			break
		}
	}
	for {
		n := h.rcq.Poll(wcs[:])
		for i := range wcs[:n] {
			h.received(&wcs[i])
		}
		if n == 0 {
			break
		}
	}
	for to, l := range h.links {
		if l != nil && !l.dead && l.ah.Lost() {
			h.w.note("host %d finds host %d lost", h.id, to)
			l.dead = true
		}
	}
	return nil
}

func (h *host) completed(wc *verbs.WC) {
	o := h.w.model.ops[wc.WRID]
	h.w.note("host %d: %v: %v", h.id, o, wc.Status)
	b := h.used[wc.WRID]
	var data []byte
	if o != nil && b.in == h.sinks && b.in != nil {
		data = b.in.at(b.slot)[:b.len]
	}
	h.w.see.Completed(h.life, wc, data)
	if o == nil || o.Stream == nil {
		h.free(wc.WRID)
		return
	}
	// What was posted before and not signalled has ended too.
	for i := o.pos; i >= 0; i-- {
		if _, ok := h.used[o.Stream.ops[i].ID]; !ok && i < o.pos {
			break
		}
		h.free(o.Stream.ops[i].ID)
	}
	l := h.links[o.Stream.To]
	if l == nil || l.stream != o.Stream {
		return
	}
	if o.Signaled {
		l.open--
	}
	if wc.Status != verbs.Success {
		l.dead = true
		l.bye = nil
	}
}

// free gives back the buffer of a request that has ended.
func (h *host) free(id uint64) {
	b, ok := h.used[id]
	if !ok {
		return
	}
	delete(h.used, id)
	if b.in != nil {
		b.in.give(b.slot)
	}
}

// received takes in what a receive completion brought.
func (h *host) received(wc *verbs.WC) {
	slot := int(wc.WRID & 0xffff)
	h.recvs--
	if slot >= inboxSlots || wc.Status == verbs.Success && int(wc.ByteLen) > h.w.MaxMsg {
		h.w.model.fail("host %d: impossible receive completion %+v", h.id, *wc)
		return
	}
	var data []byte
	buf := h.inbox.at(slot)
	if wc.Status == verbs.Success {
		if wc.Opcode == verbs.OpRecv {
			data = buf[:wc.ByteLen]
		}
		for i, b := range buf[len(data):] {
			if b != canary {
				h.w.model.fail("host %d: a message of %d bytes changed byte %d of its buffer", h.id, len(data), len(data)+i)
			}
		}
	}
	from := h.from(wc)
	h.w.note("host %d: receive %#x from host %d, %d bytes: %v", h.id, wc.WRID, from, len(data), wc.Status)
	h.w.see.Received(h.life, wc, from, data)
	h.inbox.give(slot)
}

// refill posts receives until there are as many as wanted.
func (h *host) refill() error {
	for h.recvs < h.goal {
		slot, ok := h.inbox.take()
		if !ok {
			return nil
		}
		h.w.ops++
		wr := verbs.RecvWR{WRID: h.w.ops<<16 | uint64(slot)}
		wr.NumSGE, wr.SGL = h.inbox.scatter(h.rng, slot, h.w.MaxMsg)
		if err := h.qp.PostRecv(&wr); err != nil {
			return fmt.Errorf("posting receive %d of %d: %w", h.recvs+1, inboxSlots, err)
		}
		h.recvs++
		h.w.see.Receiving(h.life, wr.WRID)
	}
	return nil
}

// look shows the model all memory that peers may change.
func (h *host) look() {
	for _, e := range h.mapped {
		h.w.see.Looked(e.region, e.bytes())
		if !e.intact() {
			h.w.model.fail("%v: canaries around it were overwritten", e.region)
		}
	}
	for _, s := range []struct {
		*slots
		name string
	}{{h.sends, "send"}, {h.sinks, "read"}, {h.inbox, "receive"}} {
		if err := s.check(s.name); err != nil {
			h.w.model.fail("host %d: %v", h.id, err)
		}
	}
}

package check

import (
	"fmt"

	"github.com/xwarp/xwarp/verbs"
)

// reap polls the completion queues and tells the model.
func (h *host) reap() {
	h.tick()
	for to, l := range h.links { // before polling: how their requests ended is in the queue by now
		if l != nil && !l.dead && l.ah.Lost() {
			h.w.note("host %d finds host %d lost", h.id, to)
			l.dead, l.bye = true, nil
		}
	}
	h.poll(h.scq, h.completed)
	h.heard = 0
	h.poll(h.rcq, h.received)
	if h.channel != nil {
		h.announced()
	}
	for e, ok := h.ctx.GetAsyncEvent(); ok; e, ok = h.ctx.GetAsyncEvent() {
		h.event(e)
	}
}

// notice says for which completions a queue is armed.
type notice uint8

const (
	notArmed       notice = 0
	armedAll       notice = 1
	armedSolicited notice = 2
)

// announced checks that completions make an event when the queue is armed, and
// none when it is not, and arms it again now and then. All have been polled.
func (h *host) announced() {
	q, got := h.channel.GetEvent() // which may step the engine
	m := h.w.model
	m.reached.when(got, "completion event")
	switch {
	case got && (q != h.rcq || h.armed == notArmed):
		m.fail("host %d: an event of a queue that is not armed", h.id)
	case got && h.heard&h.armed == 0 && h.rcq.Len() == 0:
		m.fail("host %d: an event without a completion that it was armed for", h.id)
	case !got && h.heard&h.armed != 0:
		m.fail("host %d: a completion made no event, though the queue was armed for it", h.id)
	}
	if got {
		h.armed = notArmed
	}
	if h.armed == notArmed && h.rng.IntN(3) == 0 && h.rcq.Len() == 0 {
		h.armed = pick(h.rng, armedAll, armedSolicited)
		if err := h.rcq.ReqNotify(h.armed == armedSolicited); err != nil {
			m.fail("host %d: arming a completion queue: %v", h.id, err)
		}
	}
}

func (h *host) poll(q *verbs.CQ, each func(*verbs.WC)) {
	var wcs [16]verbs.WC
	for n := q.Poll(wcs[:]); n > 0; n = q.Poll(wcs[:]) {
		for i := range wcs[:n] {
			each(&wcs[i])
		}
	}
}

func (h *host) event(e verbs.AsyncEvent) {
	to := -1
	if e.AH != nil {
		to = h.w.hostOf(e.AH.Remote())
	}
	h.w.note("host %d: event %d, host %d", h.id, e.Type, to)
	h.w.model.Happened(h.life, e.Type, to)
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
		if o != nil && o.Code == verbs.OpBindMW && wc.Status == verbs.Success {
			h.bound(o)
		}
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

// udMark is in the number of receives of the unreliable queue pair.
const udMark = 1 << 15

// received takes in what a receive completion brought.
func (h *host) received(wc *verbs.WC) {
	h.heard |= armedAll
	if wc.Flags&verbs.WCWithSolicited != 0 || wc.Status != verbs.Success {
		h.heard |= armedSolicited
	}
	if wc.Opcode == verbs.OpRecvRDMAWriteRecord {
		h.recorded(wc)
		return
	}
	slot, in, recvs := int(wc.WRID&(udMark-1)), h.inbox, &h.recvs
	if wc.WRID&udMark != 0 {
		in, recvs = h.udInbox, &h.udRecvs
	}
	*recvs--
	if slot >= inboxSlots || wc.Status == verbs.Success && int(wc.ByteLen) > h.w.MaxMsg {
		h.w.model.fail("host %d: impossible receive completion %+v", h.id, *wc)
		return
	}
	var data []byte
	if wc.Status == verbs.Success {
		buf := in.at(slot)
		if wc.Opcode == verbs.OpRecv {
			data = buf[:wc.ByteLen]
		}
		for i, b := range buf[len(data):] {
			if b != canary {
				h.w.model.fail("host %d: a message of %d bytes changed byte %d of its buffer", h.id, len(data), len(data)+i)
				break
			}
		}
	}
	from := h.from(wc)
	h.w.note("host %d: receive %#x from host %d, %d bytes: %v", h.id, wc.WRID, from, len(data), wc.Status)
	if in == h.inbox {
		h.w.see.Received(h.life, wc, from, data)
	} else {
		h.w.see.ReceivedUD(h.life, wc, from, h.ud.Num(), data)
	}
	in.give(slot)
}

// recorded takes in that a Write-Record has ended.
func (h *host) recorded(wc *verbs.WC) {
	if wc.Record == nil {
		h.w.model.fail("host %d: completion of a Write-Record without a record: %+v", h.id, *wc)
		return
	}
	for _, e := range h.mapped {
		if e.grant.Key == wc.Record.RKey {
			h.w.note("host %d: record of %d bytes at %d of %v: %v", h.id, wc.Record.Len, wc.Record.Addr, e.region, wc.Record.Valid)
			h.w.see.Recorded(h.life, wc, h.from(wc), e.region, e.bytes())
			wc.Record.Release()
			return
		}
	}
	h.w.model.fail("host %d: a Write-Record ended in memory that is not registered: key %#x", h.id, wc.Record.RKey)
}

// refill posts receives until there are as many as wanted.
func (h *host) refill() error {
	post := h.qp.PostRecv
	if h.srq != nil {
		post = h.srq.PostRecv
	}
	if err := h.fill(h.inbox, &h.recvs, 0, post); err != nil || h.ud == nil {
		return err
	}
	return h.fill(h.udInbox, &h.udRecvs, udMark, h.ud.PostRecv)
}

func (h *host) fill(in *slots, recvs *int, mark uint64, post func(*verbs.RecvWR) error) error {
	for *recvs < h.goal {
		slot, ok := in.take()
		if !ok {
			return nil
		}
		h.w.ops++
		wr := verbs.RecvWR{WRID: h.w.ops<<16 | mark | uint64(slot)}
		wr.NumSGE, wr.SGL = in.scatter(h.rng, slot, h.w.MaxMsg)
		if err := post(&wr); err != nil {
			return fmt.Errorf("posting receive %d of %d: %w", *recvs+1, inboxSlots, err)
		}
		*recvs++
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
	}{{h.sends, "send"}, {h.sinks, "read"}, {h.inbox, "receive"}, {h.udInbox, "datagram"}} {
		if err := s.check(s.name); err != nil {
			h.w.model.fail("host %d: %v", h.id, err)
		}
	}
}

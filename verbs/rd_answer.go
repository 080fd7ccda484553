package verbs

import (
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// request is a Read or an atomic that a peer asks for.
type request struct {
	op     rdmap.Opcode
	msn    uint32
	read   rdmap.ReadReq
	atomic rdmap.AtomicReq
}

// put writes the request as it came, for a Terminate.
func (r *request) put(b []byte) []byte {
	h := controlHeader(r.op, r.msn)
	n := h.Put(b)
	if r.op == rdmap.ReadRequest {
		r.read.Put(b[n:])
		return b[:n+rdmap.ReadReqLen]
	}
	r.atomic.Put(b[n:])
	return b[:n+rdmap.AtomicReqLen]
}

// answer does what a delivered request asks for. Everything that the peer sent
// before it is placed, so a Read sees its Writes (RFC 5040, section 5.5).
func (q *rdQP) answer(ah *AH, r *request) {
	cause, ok := rdmap.StreamCatastrophic, false
	if ah.conn.answered < 2*maxReads { // twice: the acknowledgement that frees one may be on its way
		cause, ok = q.queueAnswer(ah, r)
	}
	if !ok {
		var b [ddp.UntaggedLen + rdmap.AtomicReqLen]byte
		seg := r.put(b[:])
		q.in.refuse(ah, cause, seg, len(seg))
	}
}

// queueAnswer answers a request in an entry of its own.
func (q *rdQP) queueAnswer(ah *AH, r *request) (cause iwarp.Cause, ok bool) {
	i := q.sq.answer()
	w := &q.sq.wqes[i]
	if r.op == rdmap.ReadRequest {
		cause, ok = q.answerRead(w, r.msn, &r.read)
		if src := w.bufs[0]; ok && len(src) >= llp.DirectMin {
			w.addr, w.inside = q.ctx.Arena().Find(src)
		}
	} else {
		cause, ok = q.answerAtomic(w, &ah.conn.msn, &r.atomic)
	}
	if !ok {
		q.sq.give(i)
		return cause, false
	}
	ah.conn.answered++
	q.answerTo(ah, i)
	return cause, true
}

// asked returns the request that an answer of a peer names, if it may: one
// that is outstanding, to this peer.
func (q *rdQP) asked(ah *AH, name uint32) *wqe {
	i := name & (1<<20 - 1)
	if i >= uint32(q.sq.cap) {
		return nil
	}
	w := &q.sq.wqes[i]
	if w.name != name || w.ah != ah || w.sent == 0 || name == 0 {
		return nil
	}
	return w
}

// placeAnswer places a segment of a Read Response.
func (q *rdReceiver) placeAnswer(ah *AH, rd *llp.Reader, h *ddp.Header, n int) (ev event, v verdict) {
	w := q.rd.asked(ah, uint32(h.STag))
	switch {
	case w == nil || w.op != OpRDMARead:
		return ev, q.refuseSegment(ah, ddp.InvalidSTag, h, n)
	case !w.placeResponse(h, h.TO, rd, n):
		return ev, q.refuseSegment(ah, ddp.BaseBounds, h, n)
	}
	if h.Last {
		ev = event{kind: eventAnswered, name: w.name}
	}
	return ev, placed
}

// placeAtomicAnswer places the old value that an atomic has found.
func (q *rdReceiver) placeAtomicAnswer(ah *AH, h *ddp.Header, b []byte) (ev event, v verdict) {
	var r rdmap.AtomicResp
	r.Parse(b)
	w := q.rd.asked(ah, r.ID)
	if w == nil || !w.isAtomic() {
		return ev, q.refuseSegment(ah, rdmap.UnexpectedOpcode, h, len(b))
	}
	w.placeOld(r.Value)
	return event{kind: eventAnswered, name: w.name}, placed
}

// answered completes a Read or an atomic whose answer was delivered.
func (q *rdQP) answered(ah *AH, name uint32) {
	w := q.asked(ah, name)
	if w == nil {
		return
	}
	if w.got != w.size { // the peer left a hole: its answer is none
		q.Stats.Malformed++
		q.fail(ah, RemOpErr)
		return
	}
	c := &ah.conn
	w.name, w.answered = 0, true
	c.reads--
	if !w.acked {
		q.applyAck(ah) // that came with the answer
	}
	if ah.Lost() {
		return
	}
	w.done = w.acked
	q.settle(c, ah)
	q.ctx.makeReady(ah)
}

// dropAnswers frees the answers that a peer will not get any more.
func (q *rdQP) dropAnswers(ah *AH) {
	c := &ah.conn
	snd := &ah.peer.Snd
	for lsn := snd.Next().Add(-int32(snd.InFlight())); lsn != snd.Next(); lsn++ {
		if r := snd.Unit(lsn); r.Last && int(r.Token) >= q.sq.cap {
			q.sq.give(int32(r.Token))
		}
	}
	for i := c.answers.cur; i != none; {
		next := q.sq.wqes[i].next
		q.sq.give(i)
		i = next
	}
	c.answers = requestList{none, none}
}

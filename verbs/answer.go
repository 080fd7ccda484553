package verbs

import (
	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/internal/mem"
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
	h := ddp.Header{Last: true, ULP: rdmap.Control(r.op), QN: r.op.QN(), MSN: iwarp.MSN(r.msn)}
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
func (q *QP) answer(ah *AH, r *request) {
	var cause iwarp.Cause
	ok := ah.conn.answered < 2*maxReads // twice: the acknowledgement that frees one may be on its way
	switch {
	case !ok:
		cause = rdmap.StreamCatastrophic
	case r.op == rdmap.ReadRequest:
		cause, ok = q.answerRead(ah, r.msn, &r.read)
	default:
		cause, ok = q.answerAtomic(ah, &r.atomic)
	}
	if !ok {
		var b [ddp.UntaggedLen + rdmap.AtomicReqLen]byte
		seg := r.put(b[:])
		q.refuse(ah, cause, seg, len(seg))
	}
}

// answerRead queues a Read Response, which is sent from the region that it
// reads.
func (q *QP) answerRead(ah *AH, msn uint32, r *rdmap.ReadReq) (cause iwarp.Cause, ok bool) {
	src, cause := q.grant(uint32(r.SrcSTag), r.SrcTO, r.Size, RemoteRead)
	if src == nil {
		return cause, false
	}
	q.Stats.RemoteReads++
	i := q.sq.answer()
	w := &q.sq.wqes[i]
	*w = wqe{
		op: opReadResponse, msn: msn, total: r.Size, end: r.Size, key: uint32(r.SinkSTag), raddr: r.SinkTO,
		name: uint32(r.SrcSTag), imm: r.SrcTO, bufN: 1,
	}
	w.bufs[0] = src
	if len(src) >= llp.DirectMin {
		w.addr, w.inside = q.ctx.Arena().Find(src)
	}
	ah.conn.answered++
	q.answerTo(ah, i)
	return cause, true
}

// granted reports whether w may be sent: the region that a Read Response is
// sent from may have been revoked since it was asked for.
func (q *QP) granted(w *wqe) bool { return w.op != opReadResponse || q.stillGranted(w) }

func (q *QP) stillGranted(w *wqe) bool {
	b, _ := q.grant(w.name, w.imm, w.total, RemoteRead)
	return b != nil
}

// writeRevoked puts a Terminate into the open datagram in place of a segment of
// a Read Response that may not be sent any more. A peer that has the segment,
// and whose acknowledgement was lost, takes it for a duplicate and is content:
// a region may be revoked as soon as the peer says that it has read it.
func (q *QP) writeRevoked(w *wqe) {
	h := ddp.Header{Last: true, ULP: rdmap.Control(rdmap.ReadRequest), QN: iwarp.QNReadReq, MSN: iwarp.MSN(w.msn)}
	var seg [ddp.UntaggedLen]byte
	h.Put(seg[:])
	var t rdmap.Term
	t.Blame(rdmap.InvalidSTag, seg[:], len(seg)+rdmap.ReadReqLen)
	var body [rdmap.TermMaxLen]byte
	n := t.Put(body[:])
	h = ddp.Header{Last: true, ULP: rdmap.Control(rdmap.Terminate), QN: iwarp.QNTerminate, MSN: 1}
	h.Put(q.ep.ULPDU(ddp.UntaggedLen+n, ddp.UntaggedLen))
	q.ep.Payload(body[:n])
}

// answerAtomic does an atomic operation and queues its answer: once, as every
// ULPDU is delivered once.
func (q *QP) answerAtomic(ah *AH, r *rdmap.AtomicReq) (cause iwarp.Cause, ok bool) {
	if cause, ok = r.Check(); !ok {
		return cause, false
	}
	b, cause := q.grant(uint32(r.STag), r.TO, 8, RemoteAtomic)
	if b == nil {
		return cause, false
	}
	old, ok := apply(b, r)
	if !ok {
		return rdmap.StreamCatastrophic, false // the region does not lie on 8 bytes
	}
	q.Stats.RemoteAtomics++
	i := q.sq.answer()
	w := &q.sq.wqes[i]
	*w = wqe{op: opAtomicResponse, built: true, total: rdmap.AtomicRespLen, end: rdmap.AtomicRespLen, msn: ah.conn.nextMSN(3)}
	resp := rdmap.AtomicResp{ID: r.ID, Value: old}
	resp.Put(w.data[:])
	ah.conn.answered++
	q.answerTo(ah, i)
	return cause, true
}

// apply does an atomic operation on the 8 bytes at b, against everything else
// on this host that uses atomic instructions.
func apply(b []byte, r *rdmap.AtomicReq) (old uint64, ok bool) {
	for {
		old, ok = mem.Load64(b)
		if !ok {
			return 0, false
		}
		if mem.CompareAndSwap64(b, old, r.Apply(old)) {
			return old, true
		}
	}
}

// asked returns the request that an answer of a peer names, if it may: one
// that is outstanding, to this peer.
func (q *QP) asked(ah *AH, name uint32) *wqe {
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
func (q *QP) placeAnswer(ah *AH, rd *llp.Reader, h *ddp.Header, n int) (ev event, v verdict) {
	w := q.asked(ah, uint32(h.STag))
	switch {
	case w == nil || w.op != OpRDMARead:
		return ev, q.refuseSegment(ah, ddp.InvalidSTag, h, n)
	case h.TO > uint64(w.size) || uint64(n) > uint64(w.size)-h.TO || h.Last != (h.TO+uint64(n) == uint64(w.size)):
		return ev, q.refuseSegment(ah, ddp.BaseBounds, h, n)
	}
	w.scatter(int(h.TO), rd, n)
	w.got += uint32(n)
	if h.Last {
		ev = event{kind: eventAnswered, name: w.name}
	}
	return ev, placed
}

// scatter copies n bytes to offset off of the request's buffers.
func (w *wqe) scatter(off int, rd *llp.Reader, n int) {
	for i := 0; n > 0; i++ {
		b := w.bufs[i]
		if off >= len(b) {
			off -= len(b)
			continue
		}
		b = b[off:min(len(b), off+n)]
		rd.Copy(b)
		n -= len(b)
		off = 0
	}
}

// placeAtomicAnswer places the old value that an atomic has found.
func (q *QP) placeAtomicAnswer(ah *AH, h *ddp.Header, b []byte) (ev event, v verdict) {
	var r rdmap.AtomicResp
	r.Parse(b)
	w := q.asked(ah, r.ID)
	if w == nil || !w.isRead() || w.op == OpRDMARead {
		return ev, q.refuseSegment(ah, rdmap.UnexpectedOpcode, h, len(b))
	}
	order.PutUint64(w.bufs[0], r.Value)
	w.got = w.size
	return event{kind: eventAnswered, name: w.name}, placed
}

// answered completes a Read or an atomic whose answer was delivered.
func (q *QP) answered(ah *AH, name uint32) {
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
		q.ctx.applyAck(ah) // that came with the answer
	}
	if c.dead {
		return
	}
	w.done = w.acked
	q.settle(c, ah)
	q.ctx.makeReady(ah)
}

// dropAnswers frees the answers that a peer will not get any more.
func (q *QP) dropAnswers(ah *AH) {
	c := &ah.conn
	if ah.peer != nil {
		snd := &ah.peer.Snd
		for lsn := snd.Next().Add(-int32(snd.InFlight())); lsn != snd.Next(); lsn++ {
			if r := snd.Record(lsn); r.Last && int(r.Token) >= q.sq.cap {
				q.sq.give(int32(r.Token))
			}
		}
	}
	for i := c.answers.cur; i != none; {
		next := q.sq.wqes[i].next
		q.sq.give(i)
		i = next
	}
	c.answers = line{none, none}
}

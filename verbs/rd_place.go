package verbs

import (
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// verdict is what became of a ULPDU.
type verdict uint8

const (
	placed    verdict = iota
	postponed         // it found no receive, and was not consumed
	refused           // it asked for what was not granted, or makes no sense
	ended             // it was a Terminate: the association is over
)

// place puts one ULPDU of n bytes where it belongs, in whatever order ULPDUs
// arrive; what it means once all before it have arrived is in the event
// (RFC 5041, section 5.3).
func (q *rdReceiver) place(ah *AH, rd *llp.Reader, n int) (ev event, v verdict) {
	b := rd.Peek(dgram.LengthLen + min(n, ddp.UntaggedLen))[dgram.LengthLen:]
	var h ddp.Header
	op, cause, ok := parse(&h, b, n)
	if !ok {
		return ev, q.refuseHeader(ah, cause, rd, n)
	}
	skip, n := dgram.LengthLen+h.Len(), n-h.Len()
	switch op {
	case rdmap.Send, rdmap.SendSE, rdmap.SendInv, rdmap.SendSEInv:
		return q.placeSend(ah, rd, &h, op, skip, n)
	case rdmap.Write:
		rd.Skip(skip)
		if cause, ok := q.placeWrite(&h, rd, n); !ok {
			return ev, q.refuseSegment(ah, cause, &h, n)
		}
		return ev, placed
	case rdmap.ReadResponse:
		rd.Skip(skip)
		return q.placeAnswer(ah, rd, &h, n)
	case rdmap.WriteRecord:
		rd.Skip(skip)
		return q.placeChunk(ah, rd, &h, n)
	case rdmap.Immediate, rdmap.ImmediateSE:
		return q.placeImm(ah, rd, op, skip)
	}
	rd.Skip(skip)
	return q.placeControl(ah, rd, &h, op, n)
}

// placeControl reads a message that is for RDMAP itself.
func (q *rdReceiver) placeControl(ah *AH, rd *llp.Reader, h *ddp.Header, op rdmap.Opcode, n int) (ev event, v verdict) {
	b := q.ctx.in.head[:n]
	rd.Copy(b)
	switch op {
	case rdmap.Terminate:
		q.rd.terminated(ah, b)
		return ev, ended
	case rdmap.AtomicResponse:
		return q.placeAtomicAnswer(ah, h, b)
	}
	req := &q.ctx.in.req
	req.op, req.msn = op, uint32(h.MSN)
	if op == rdmap.ReadRequest {
		req.read.Parse(b)
	} else {
		req.atomic.Parse(b)
	}
	return event{kind: eventRequest}, placed
}

// refuse answers what was not granted, or makes no sense: seg is the segment
// from its DDP header on as far as it is at hand, n its length. Nothing is
// taken from the peer any more, and it is told why (RFC 5040, section 7.1).
func (q *rdReceiver) refuse(ah *AH, cause iwarp.Cause, seg []byte, n int) verdict {
	var t rdmap.Term
	q.blame(&t, cause, seg, n)
	q.rd.terminate(ah, &t)
	return refused
}

// refuseHeader refuses a ULPDU that nothing was read of yet.
func (q *rdReceiver) refuseHeader(ah *AH, cause iwarp.Cause, rd *llp.Reader, n int) verdict {
	b := rd.Peek(dgram.LengthLen + min(n, len(q.ctx.in.head)-dgram.LengthLen, peekMax))[dgram.LengthLen:]
	return q.refuse(ah, cause, b, n)
}

// peekMax is how much of a ULPDU llp.Reader shows behind its length.
const peekMax = 62

// refuseSegment refuses a segment with n bytes of payload behind its header.
func (q *rdReceiver) refuseSegment(ah *AH, cause iwarp.Cause, h *ddp.Header, n int) verdict {
	var b [ddp.UntaggedLen]byte
	return q.refuse(ah, cause, b[:h.Put(b[:])], h.Len()+n)
}

// placeSend places a segment of a Send. One that is a whole message takes a
// posted receive and is done; others find theirs by MSN.
func (q *rdReceiver) placeSend(ah *AH, rd *llp.Reader, h *ddp.Header, op rdmap.Opcode, skip, n int) (ev event, v verdict) {
	if h.Last {
		ev.flags, ev.inv = sendFlags(op), h.ULP2
	}
	if h.Last && h.MO == 0 {
		if !q.mayTake(ah) {
			return ev, postponed
		}
		e, ok := q.takeRecv()
		if !ok {
			return ev, postponed
		}
		rd.Skip(skip)
		ev.kind, ev.wrid, ev.len, ev.name = eventRecv, e.wrid, uint32(n), uint32(h.MSN)
		if n > int(e.total) {
			q.tooLong(e.wrid, uint32(n), ah)
			return ev, q.refuseSegment(ah, ddp.MessageTooLong, h, n)
		}
		e.scatter(0, rd, n)
		return ev, placed
	}
	in := q.inboxOf(&ah.conn)
	m := &in.msgs[uint32(h.MSN)&uint32(len(in.msgs)-1)]
	if !m.used {
		if !q.mayTake(ah) {
			return ev, postponed
		}
		e, ok := q.takeRecv()
		if !ok {
			return ev, postponed
		}
		m.begin(e, uint32(h.MSN))
		in.used++
	}
	rd.Skip(skip)
	if m.msn != uint32(h.MSN) || h.Last && m.last { // a message ends once: so does its receive
		return ev, q.refuseSegment(ah, ddp.MSNRange, h, n)
	}
	if uint64(h.MO)+uint64(n) > uint64(m.buf.total) {
		q.tooLong(m.buf.wrid, h.MO+uint32(n), ah)
		*m = message{}
		in.used--
		return ev, q.refuseSegment(ah, ddp.MessageTooLong, h, n)
	}
	m.buf.scatter(h.MO, rd, n)
	if h.Last {
		m.len, m.last = h.MO+uint32(n), true
		ev.kind, ev.name = eventMessage, m.msn
	}
	return ev, placed
}

// placeImm takes a receive for immediate data, which goes to its completion.
func (q *rdReceiver) placeImm(ah *AH, rd *llp.Reader, op rdmap.Opcode, skip int) (ev event, v verdict) {
	if !q.mayTake(ah) {
		return ev, postponed
	}
	e, ok := q.takeRecv()
	if !ok {
		return ev, postponed
	}
	rd.Skip(skip)
	var imm rdmap.Imm
	imm.Parse(rd.Peek(rdmap.ImmLen))
	rd.Skip(rdmap.ImmLen)
	return event{kind: eventImm, wrid: e.wrid, imm: uint64(imm), flags: WCWithImm | sendFlags(op)}, placed
}

// terminated reads why the peer refused what we asked of it, and ends the
// association. That does not wait for its turn, which may never come: what is
// before it may be a Send that finds no receive.
func (q *rdQP) terminated(ah *AH, b []byte) {
	var t rdmap.Term
	t.Parse(b)
	culprit := q.culprit(&ah.conn, &t)
	if culprit != none { // those before it are done
		from, to := q.ep.Apply(&ah.peer.Assoc)
		q.acked(ah, from, to, culprit)
	}
	q.failFrom(ah, culprit, statusOf(t.Cause))
}

// culprit finds the request that a Terminate tells of.
func (q *rdQP) culprit(c *conn, t *rdmap.Term) int32 {
	var h ddp.Header
	if !t.Header(&h) {
		return none
	}
	for i := c.head; i != none; i = q.sq.wqes[i].after {
		if w := &q.sq.wqes[i]; w.isBlamed(t, &h) {
			return i
		}
	}
	return none
}

package verbs

import (
	"github.com/xwarp/xwarp/internal/serial"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// deliver notes that the ULPDU lsn was placed, and does what its delivery and
// that of those behind it means, in order (RFC 5041, section 5.4).
func (q *QP) deliver(ah *AH, lsn serial.U32, ev *event) {
	rcv := &ah.peer.Rcv
	if lsn == rcv.Next() && rcv.InOrder() {
		rcv.Mark(lsn)
		q.finish(ah, ev, &q.ctx.in.req)
		return
	}
	in := q.inboxOf(&ah.conn)
	mask := uint32(len(in.events) - 1)
	in.events[uint32(lsn)&mask] = *ev
	if ev.kind == eventRequest {
		in.requests[uint32(lsn)&mask] = q.ctx.in.req
	}
	from := rcv.Next()
	for to := rcv.Mark(lsn); from != to; from++ {
		e := in.events[uint32(from)&mask]
		in.events[uint32(from)&mask] = event{}
		q.finish(ah, &e, &in.requests[uint32(from)&mask])
		switch {
		case ah.conn.dead:
			return
		case ah.conn.refused: // what comes behind is not delivered
			q.dropInbound(&ah.conn)
			return
		}
	}
}

// finish does what the delivery of one ULPDU means.
func (q *QP) finish(ah *AH, ev *event, req *request) {
	switch ev.kind {
	case eventNone:
	case eventRecv:
		q.received(ah, ev, ev.wrid, ev.len)
	case eventMessage:
		in := ah.conn.inbox
		m := &in.msgs[ev.name&uint32(len(in.msgs)-1)]
		wrid, n := m.buf.wrid, m.len
		*m = message{}
		in.used--
		q.received(ah, ev, wrid, n)
	case eventImm:
		q.Stats.Recvs++
		*q.recvCQ.next() = WC{
			WRID: ev.wrid, Opcode: OpRecvRDMAWithImm, Flags: ev.flags, ImmData: ev.imm, QPNum: q.num, Src: ah, SrcAddr: ah.remote,
		}
	case eventRequest:
		q.answer(ah, req)
	case eventAnswered:
		q.answered(ah, ev.name)
	case eventRecord:
		q.records.delivered(q, ah, ev)
	}
}

// received completes the receive of a Send, after it has ended the
// registration that the Send names.
func (q *QP) received(ah *AH, ev *event, wrid uint64, n uint32) {
	if ev.flags&WCWithInv != 0 {
		if cause, ok := q.invalidate(ev.inv, true); !ok {
			q.flushOne(wrid)
			q.refuseWith(ah, cause, rdmap.SendInv, ev)
			return
		}
	}
	q.Stats.Recvs++
	q.Stats.RecvBytes += uint64(n)
	*q.recvCQ.next() = WC{
		WRID: wrid, Status: ev.status, Opcode: OpRecv, Flags: ev.flags, ByteLen: n, InvKey: ev.inv,
		QPNum: q.num, Src: ah, SrcAddr: ah.remote,
	}
}

// refuseWith refuses a message after it was placed.
func (q *QP) refuseWith(ah *AH, cause iwarp.Cause, op rdmap.Opcode, ev *event) {
	h := ddp.Header{Last: true, ULP: rdmap.Control(op), ULP2: ev.inv, QN: op.QN(), MSN: iwarp.MSN(ev.name)}
	var b [ddp.UntaggedLen]byte
	h.Put(b[:])
	q.refuse(ah, cause, b[:], len(b))
}

// dropInbound flushes the receives that a lost peer had begun to fill, or whose
// turn to be delivered will not come any more.
func (q *QP) dropInbound(c *conn) {
	in := c.inbox
	if in == nil {
		return
	}
	for i := range in.events {
		switch e := &in.events[i]; e.kind {
		case eventRecv, eventImm:
			q.flushOne(e.wrid)
		}
		in.events[i] = event{}
	}
	for i := range in.msgs {
		if m := &in.msgs[i]; m.used {
			q.flushOne(m.buf.wrid)
		}
		in.msgs[i] = message{}
	}
	in.used = 0
	q.giveInbox(c)
}

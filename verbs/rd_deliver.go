package verbs

import (
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// deliver notes that the ULPDU lsn was placed, and does what its delivery and
// that of those behind it means, in order (RFC 5041, section 5.4).
func (q *rdReceiver) deliver(ah *AH, lsn serial.U32, ev *event) {
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
		case ah.Lost():
			return
		case ah.conn.refused: // what comes behind is not delivered
			q.dropInbound(&ah.conn)
			return
		}
	}
}

// finish does what the delivery of one ULPDU means.
func (q *rdReceiver) finish(ah *AH, ev *event, req *request) {
	switch ev.kind {
	case eventNone:
	case eventRecv:
		q.deliverSend(ah, ev, ev.wrid, ev.len)
	case eventMessage:
		in := ah.conn.inbox
		m := &in.msgs[ev.name&uint32(len(in.msgs)-1)]
		wrid, n := m.buf.wrid, m.len
		*m = message{}
		in.used--
		q.deliverSend(ah, ev, wrid, n)
	case eventImm:
		q.receivedImm(ev.wrid, ev.imm, ev.flags, ah)
	case eventRequest:
		q.rd.answer(ah, req)
	case eventAnswered:
		q.rd.answered(ah, ev.name)
	case eventRecord:
		q.records.delivered(q.QP, ah, ev)
	}
}

// deliverSend completes the receive of a Send, or refuses it though it was placed.
func (q *rdReceiver) deliverSend(ah *AH, ev *event, wrid uint64, n uint32) {
	cause, ok := q.received(wrid, n, ev.flags, ev.inv, ah)
	if ok {
		return
	}
	h := ddp.Header{Last: true, ULP: rdmap.Control(rdmap.SendInv), ULP2: ev.inv, QN: iwarp.QNSend, MSN: iwarp.MSN(ev.name)}
	var b [ddp.UntaggedLen]byte
	h.Put(b[:])
	q.refuse(ah, cause, b[:], len(b))
}

// dropInbound flushes the receives that a lost peer had begun to fill, or whose
// turn to be delivered will not come any more.
func (q *rdReceiver) dropInbound(c *conn) {
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

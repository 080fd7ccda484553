package verbs

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// rdReceiver is the receiving side of a queue pair of type RD.
type rdReceiver struct {
	*QP
	inboxes []*inbox    // that no peer has
	rnr     []*AH       // peers that found no receive
	handler RecvHandler // or nil
}

// fewReceives is with how many posted receives peers may wait for credit.
const fewReceives = 16

// feed tells the peers that found no receive that there are some now.
func (q *rdReceiver) feed() {
	q.ctx.in.dry = false
	for _, ah := range q.rnr {
		ah.conn.rnr = false
		q.ctx.ep.ScheduleAck(q.ctx.cfg.Engine.Now(), &ah.peer.Assoc, true, false)
	}
	q.rnr = q.rnr[:0]
}

// noReceive notes that a peer found none.
func (q *rdReceiver) noReceive(ah *AH) {
	if !ah.conn.rnr {
		ah.conn.rnr = true
		q.rnr = append(q.rnr, ah)
	}
}

// inbound is the batch that is being taken in. It survives a step when a Send
// finds no posted receive: the rest of the batch then waits in the carrier's
// queue, which holds back the peers without losing anything.
type inbound struct {
	active bool // there is a batch
	read   bool // all of it was read: the next step gives it back
	ah     *AH  // whose datagram is being read, nil between datagrams
	rd     *llp.Reader
	h      dgram.Header
	lsn    serial.U32
	left   int // ULPDUs of the datagram
	urgent bool
	since  mono.Time // when it stalled, 0 if it did not
	dry    bool      // it has stalled in vain, and no receive was posted since

	req  request // of the ULPDU that is being placed, when it is a request
	head [headMax]byte
}

// headMax is the most bytes of a ULPDU that are looked at before its payload
// (the length, and the header of an atomic request), or instead of it (a
// Terminate).
const headMax = max(dgram.LengthLen+ddp.UntaggedLen+rdmap.AtomicReqLen, rdmap.TermMaxLen)

func (in *inbound) stalled() bool { return in.since != 0 }

// drop gives the batch back unread.
func (in *inbound) drop(ep *llp.Endpoint) {
	if in.active || in.read {
		ep.Release()
	}
	*in = inbound{}
}

// rnrTimeout is how long a Send waits for a receive to be posted before it
// is dropped, to be sent again, so that a program that never posts one is still told
// acknowledgements, and other peers do not wait for long.
const rnrTimeout = 200 * mono.Microsecond

// receive takes in one batch of datagrams and returns how many.
func (c *datagrams) receive(now mono.Time) (work int) {
	in := &c.in
	if !in.active {
		if work = c.ep.Recv(now, c.ctx.cfg.Engine.Parked()); work == 0 {
			return 0
		}
		in.active = true
	}
	for {
		if in.ah == nil && !c.begin(now) {
			break
		}
		if in.ah == nil {
			continue
		}
		left := in.left
		all := c.rd.in.ulpdus(now)
		if in.left < left {
			work = max(work, 1) // what had stalled goes on
		}
		if !all {
			return work
		}
		if in.urgent { // it has come again, or will
			in.ah.peer.Uncertain()
		}
		c.ep.ScheduleAck(now, &in.ah.peer.Assoc, in.urgent, in.h.Flags&dgram.FlagAckSoon != 0)
		in.ah = nil
	}
	in.active, in.read = false, true
	return work
}

// begin starts on the next datagram: applies its acknowledgement and notes
// where its ULPDUs are. Unreliable ones are done with here. false means that
// the batch is at its end.
func (c *datagrams) begin(now mono.Time) bool {
	in := &c.in
	p, rd := c.ep.Next(&in.h)
	if len(c.ep.News) > 0 {
		c.news()
	}
	if rd == nil {
		return false
	}
	if p == nil {
		c.receiveUD(now, rd)
		return true
	}
	ah := c.handle(c.rd.pd, p)
	in.ah, in.rd, in.lsn, in.left = ah, rd, in.h.LSN, int(in.h.Count)
	in.urgent = false
	k := &ah.conn
	if !c.rd.takesInbound() {
		in.left = 0
	}
	credit := int32(min(dgram.CreditOf(in.h.Credit), 1<<30))
	if k.credit == 0 && credit > 0 {
		p.Snd.Repeat(now) // there was no receive for it, and now there is
	}
	k.credit = credit
	if in.h.Type == dgram.TypeData {
		c.ep.Note(&p.Assoc, in.h.Ack, in.h.Window, in.h.Held)
		return true
	}
	n := 8 * int(in.h.SackWords)
	from, to := c.ep.OnAck(&p.Assoc, in.h.Ack, in.h.Window, in.h.Held, rd.Peek(n))
	rd.Skip(n)
	c.rd.acked(ah, from, to, none)
	return true
}

// ulpdus takes in the rest of the datagram. false means that it stalled: the
// next step goes on with the same ULPDU.
func (q *rdReceiver) ulpdus(now mono.Time) bool {
	in := &q.ctx.in
	switch {
	case in.ah.Lost(): // its association ended while it waited for a receive
		in.left, in.since = 0, 0
		return true
	case in.ah.conn.refused:
		in.ah.peer.Uncertain() // it has not heard why
		q.lastWord(in)
		return true
	}
	rcv := &in.ah.peer.Rcv
	for ; in.left > 0; in.left-- {
		n, ok := q.ctx.nextULPDU()
		if !ok {
			break
		}
		if q.placeWhole(rcv, n) {
			in.lsn++
			continue
		}
		if !rcv.Fresh(in.lsn) {
			q.ctx.ep.Stats.RxDuplicate++
			in.urgent = true
			in.rd.Skip(dgram.LengthLen + n)
			in.lsn++
			continue
		}
		ev, verdict := q.place(in.ah, in.rd, n)
		if verdict == postponed {
			if in.lsn == rcv.Next() && !q.giveUp(now) {
				return false
			}
			q.Stats.RecvDrops++
			q.noReceive(in.ah)
			in.urgent = true // its sender is told that there is no credit, to send it again when there is
			break
		}
		in.since = 0
		if verdict != placed {
			break // not acknowledged, and nothing behind it
		}
		q.deliver(in.ah, in.lsn, &ev)
		if in.ah.Lost() || in.ah.conn.refused {
			break
		}
		in.lsn++
	}
	in.left = 0
	return true
}

// placeWhole is the short way of what most messages are: a Send of one segment
// that arrives in its turn and fits the receive that waits for it is placed,
// delivered and complete. false means that the long way has to look at it;
// then nothing was done.
func (q *rdReceiver) placeWhole(rcv *arq.Receiver, n int) bool {
	p := q.QP
	in := &p.ctx.in
	if n < ddp.UntaggedLen || in.lsn != rcv.Next() || !rcv.InOrder() {
		return false
	}
	if !rdmap.IsWholeSend(in.rd.Peek(dgram.LengthLen + ddp.UntaggedLen)[dgram.LengthLen:]) {
		return false
	}
	n -= ddp.UntaggedLen
	if q.handler != nil && q.take(in, n) {
		rcv.Mark(in.lsn)
		return true
	}
	rq := &p.rq
	if p.srq != nil {
		rq = &p.srq.rq
	}
	if rq.len() == 0 || n > int(rq.first().total) {
		return false
	}
	var e *rqe
	if p.srq == nil {
		e = rq.take()
	} else if e, _ = p.takeRecv(); e == nil {
		return false
	}
	in.since = 0
	in.rd.Skip(dgram.LengthLen + ddp.UntaggedLen)
	p.receive(e, in.rd, n, in.ah)
	rcv.Mark(in.lsn)
	return true
}

// take offers a whole Send of n bytes to the handler, unless completions wait that
// come before it.
func (q *rdReceiver) take(in *inbound, n int) bool {
	b := in.rd.Piece()
	const front = dgram.LengthLen + ddp.UntaggedLen
	if len(b) < front+n || q.recvCQ.Len() > 0 || !q.handler.HandleRecv(in.ah, b[front:front+n]) {
		return false
	}
	in.since = 0
	in.rd.Skip(front + n)
	q.Stats.Recvs++
	q.Stats.RecvBytes += uint64(n)
	return true
}

// lastWord looks for a Terminate in a datagram of a peer that was refused. Each
// side may have refused something of the other; neither takes what comes before
// the other's Terminate, so that it is never in order.
func (q *rdReceiver) lastWord(in *inbound) {
	for ; in.left > 0; in.left-- {
		n, ok := q.ctx.nextULPDU()
		if !ok {
			break
		}
		var h ddp.Header
		b := in.rd.Peek(dgram.LengthLen + min(n, ddp.UntaggedLen))[dgram.LengthLen:]
		if h.Parse(b) && !h.Tagged && h.QN == iwarp.QNTerminate {
			q.place(in.ah, in.rd, n)
			break
		}
		in.rd.Skip(dgram.LengthLen + n)
	}
	in.left = 0
}

// nextULPDU returns the length of the ULPDU that comes next in the datagram.
func (c *datagrams) nextULPDU() (n int, ok bool) {
	rd := c.in.rd
	if rd.Len() >= dgram.LengthLen {
		n = int(binary.BigEndian.Uint16(rd.Peek(dgram.LengthLen)))
		if n >= ddp.TaggedLen && n <= rd.Len()-dgram.LengthLen {
			return n, true
		}
	}
	c.ep.Stats.RxMalformed++
	return 0, false
}

// giveUp notes a stall and reports whether it has lasted too long. Once it has,
// no sender is held up again before a receive is posted.
func (q *rdReceiver) giveUp(now mono.Time) bool {
	in := &q.ctx.in
	if in.dry {
		return true
	}
	if in.since == 0 {
		in.since = now
		q.Stats.RecvStalls++
	}
	if now.Sub(in.since) < rnrTimeout {
		return false
	}
	in.since, in.dry = 0, true
	return true
}

// mayTake reports whether a Send may take a posted receive now. One that
// arrived out of order must leave the last one: what is missing before it may
// need it, and nothing would ever be delivered again.
func (q *rdReceiver) mayTake(ah *AH) bool {
	if q.ctx.in.lsn == ah.peer.Rcv.Next() {
		return q.recvsLeft() > 0
	}
	return q.recvsLeft() > 1
}

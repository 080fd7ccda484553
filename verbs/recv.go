package verbs

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// rqe is a posted receive. Most have one buffer; the others' further buffers
// lie apart, so that the ring stays small in the cache.
type rqe struct {
	wrid  uint64
	total uint32
	bufN  uint8
	buf   []byte
	more  *[MaxSGE - 1][]byte
}

// recvQueue is a ring of posted receives.
type recvQueue struct {
	ring       []rqe // power of two
	more       [][MaxSGE - 1][]byte
	head, tail uint32
	max        uint32
}

func (r *recvQueue) init(n int) {
	size := 1
	for size < n {
		size *= 2
	}
	r.ring, r.max = make([]rqe, size), uint32(n)
	r.more = make([][MaxSGE - 1][]byte, size)
}

func (r *recvQueue) empty() bool { return r.head == r.tail }

// PostRecv posts a buffer for one incoming Send of any peer
// (ibv_post_recv(3)).
func (q *QP) PostRecv(wr *RecvWR) error {
	switch {
	case q.closed:
		return ErrClosed
	case wr.NumSGE > MaxSGE:
		return fmt.Errorf("%w: %d scatter/gather elements; at most %d", ErrInvalid, wr.NumSGE, MaxSGE)
	case q.rq.tail-q.rq.head == q.rq.max || !q.recvCQ.reserve():
		return ErrQueueFull
	}
	at := q.rq.tail & uint32(len(q.rq.ring)-1)
	e := &q.rq.ring[at]
	e.wrid, e.bufN, e.total, e.buf, e.more = wr.WRID, wr.NumSGE, 0, nil, nil
	for i := range int(wr.NumSGE) {
		b, err := q.resolve(&wr.SGL[i], LocalWrite)
		if err != nil {
			q.recvCQ.release()
			return err
		}
		if e.total += uint32(len(b)); i == 0 {
			e.buf = b
			continue
		}
		e.more = &q.rq.more[at]
		e.more[i-1] = b
	}
	q.rq.tail++
	return nil
}

// take removes the oldest posted receive. The result is valid until the next
// PostRecv.
func (q *QP) take() *rqe {
	e := &q.rq.ring[q.rq.head&uint32(len(q.rq.ring)-1)]
	q.rq.head++
	return e
}

func (q *QP) flushRecv() {
	for !q.rq.empty() {
		*q.recvCQ.next() = WC{WRID: q.take().wrid, Status: WRFlushErr, Opcode: OpRecv, QPNum: q.num}
	}
}

// dropInbound flushes the receives that a lost peer had begun to fill, or whose
// turn to be delivered will not come any more.
func (q *QP) dropInbound(c *conn) {
	for i := range c.events {
		if e := &c.events[i]; e.kind == eventRecv {
			*q.recvCQ.next() = WC{WRID: e.wrid, Status: WRFlushErr, Opcode: OpRecv, QPNum: q.num}
		}
		c.events[i] = event{}
	}
	for i := range c.msgs {
		if m := &c.msgs[i]; m.used {
			*q.recvCQ.next() = WC{WRID: m.buf.wrid, Status: WRFlushErr, Opcode: OpRecv, QPNum: q.num}
		}
		c.msgs[i] = message{}
	}
}

// inbound is the batch that is being taken in. It survives a step when a Send
// finds no posted receive: the rest of the batch then waits in the carrier's
// queue, which holds back the peers without losing anything.
type inbound struct {
	active bool // there is a batch
	ah     *AH  // whose datagram is being read, nil between datagrams
	rd     *llp.Reader
	h      dgram.Header
	lsn    serial.U32
	left   int // ULPDUs of the datagram
	urgent bool
	since  mono.Time // when it stalled, 0 if it did not
}

func (in *inbound) stalled() bool { return in.since != 0 }

// recvPatience is how long a Send waits for a receive to be posted before it
// is dropped, to be sent again, so that a user who never posts one still hears
// acknowledgements.
const recvPatience = mono.Millisecond

// receive takes in one batch of datagrams and returns how many.
func (q *QP) receive(now mono.Time) (work int) {
	in := &q.in
	if !in.active {
		if work = q.rd.Recv(); work == 0 {
			return 0
		}
		in.active = true
	}
	for {
		if in.ah == nil {
			p, rd := q.rd.Next(&in.h)
			if p == nil {
				break
			}
			q.begin(now, p, rd)
		}
		if !q.ulpdus(now) {
			return work
		}
		in.ah.peer.Rcv.AckDue(now, in.urgent || !in.ah.peer.Rcv.InOrder(), in.h.Flags&dgram.FlagAckSoon != 0)
		q.wake(in.ah.peer.Rcv.Deadline())
		in.ah = nil
	}
	in.active = false
	q.rd.Release()
	return work
}

// begin starts on a datagram: applies its acknowledgement and notes where its
// ULPDUs are.
func (q *QP) begin(now mono.Time, p *llp.Peer, rd *llp.Reader) {
	in := &q.in
	ah := q.ctx.handle(q.pd, p)
	in.ah, in.rd, in.lsn, in.left = ah, rd, in.h.LSN, int(in.h.Count)
	in.urgent = false
	if ah.conn.dead {
		in.left = 0
		return
	}
	if !q.rd.Heard(&in.h) {
		return
	}
	if in.h.Type == dgram.TypeData {
		q.noteAck(now, ah)
		return
	}
	q.onAck(now, ah, in.h.Ack, in.h.Window)
	for w := range int(in.h.SackWords) {
		p.Snd.OnSack(now, in.h.Ack.Add(int32(1+64*w)), binary.BigEndian.Uint64(rd.Peek(8)))
		rd.Skip(8)
	}
	q.afterAck(now, ah)
}

// noteAck keeps an acknowledgement that rides on data for the next step: its
// data is more urgent.
func (q *QP) noteAck(now mono.Time, ah *AH) {
	c := &ah.conn
	if c.acked && q.in.h.Ack.Less(c.ack) {
		return // an older one that was overtaken
	}
	c.ack, c.window, c.ackAt = q.in.h.Ack, q.in.h.Window, now
	if !c.acked {
		c.acked = true
		q.acks = append(q.acks, ah)
	}
}

// ulpdus takes in the rest of the datagram. false means that it stalled: the
// next step goes on with the same ULPDU.
func (q *QP) ulpdus(now mono.Time) bool {
	in := &q.in
	rcv := &in.ah.peer.Rcv
	for ; in.left > 0; in.left-- {
		if in.rd.Len() < dgram.LengthLen {
			q.rd.Stats.RxMalformed++
			break
		}
		n := int(binary.BigEndian.Uint16(in.rd.Peek(dgram.LengthLen)))
		if n < ddp.TaggedLen || n > in.rd.Len()-dgram.LengthLen {
			q.rd.Stats.RxMalformed++
			break
		}
		if !rcv.Fresh(in.lsn) {
			q.rd.Stats.RxDuplicate++
			in.urgent = true
			in.rd.Skip(dgram.LengthLen + n)
			in.lsn++
			continue
		}
		ev, ok := q.place(in.ah, in.rd, n)
		if !ok {
			if in.lsn == rcv.Next() && !q.giveUp(now) {
				return false
			}
			q.Stats.RecvDrops++
			break
		}
		in.since = 0
		q.deliver(in.ah, in.lsn, ev)
		if in.ah.conn.dead {
			break
		}
		in.lsn++
	}
	in.left = 0
	return true
}

// giveUp notes a stall and reports whether it has lasted too long.
func (q *QP) giveUp(now mono.Time) bool {
	in := &q.in
	if in.since == 0 {
		in.since = now
		q.Stats.RecvStalls++
	}
	if now.Sub(in.since) < recvPatience {
		return false
	}
	in.since = 0
	return true
}

// mayTake reports whether a Send may take a posted receive now. One that
// arrived out of order must leave the last one: what is missing before it may
// need it, and nothing would ever be delivered again.
func (q *QP) mayTake(ah *AH) bool {
	if q.in.lsn == ah.peer.Rcv.Next() {
		return !q.rq.empty()
	}
	return q.rq.tail-q.rq.head > 1
}

// deliver notes that the ULPDU lsn was placed, and does what its delivery and
// that of those behind it means, in order (RFC 5041, section 5.4).
func (q *QP) deliver(ah *AH, lsn serial.U32, ev event) {
	rcv := &ah.peer.Rcv
	if lsn == rcv.Next() && rcv.InOrder() {
		rcv.Mark(lsn)
		q.finish(ah, &ev)
		return
	}
	events := ah.conn.events
	mask := uint32(len(events) - 1)
	events[uint32(lsn)&mask] = ev
	from := rcv.Next()
	for to := rcv.Mark(lsn); from != to; from++ {
		e := &events[uint32(from)&mask]
		q.finish(ah, e)
		*e = event{}
	}
}

// finish does what the delivery of one ULPDU means.
func (q *QP) finish(ah *AH, ev *event) {
	switch ev.kind {
	case eventRecv:
		q.Stats.Recvs++
		*q.recvCQ.next() = WC{WRID: ev.wrid, Status: ev.status, Opcode: OpRecv, ByteLen: ev.len, QPNum: q.num, Src: ah}
	case eventMessage:
		m := &ah.conn.msgs[ev.msn&uint32(len(ah.conn.msgs)-1)]
		q.Stats.Recvs++
		*q.recvCQ.next() = WC{WRID: m.buf.wrid, Opcode: OpRecv, ByteLen: m.len, QPNum: q.num, Src: ah}
		*m = message{}
	case eventEnd:
		q.fail(ah, Status(ev.len))
	}
}

// place puts one ULPDU of n bytes where it belongs. ok is false when it is a
// Send that finds no receive to take: then nothing was consumed.
func (q *QP) place(ah *AH, rd *llp.Reader, n int) (ev event, ok bool) {
	b := rd.Peek(dgram.LengthLen + min(n, ddp.UntaggedLen))[dgram.LengthLen:]
	var h ddp.Header
	if !h.Parse(b) {
		rd.Skip(dgram.LengthLen + n)
		return q.refuse(ah, ddp.BadHeader(b)), true
	}
	op, good := rdmap.ParseControl(h.ULP)
	n -= h.Len()
	skip := dgram.LengthLen + h.Len()
	switch {
	case !good:
		ev = q.refuse(ah, rdmap.InvalidVersion)
	case h.Tagged && op == rdmap.Write:
		rd.Skip(skip)
		return q.placeWrite(ah, rd, &h, n), true
	case !h.Tagged && h.QN == iwarp.QNSend && op == rdmap.Send:
		return q.placeSend(ah, rd, &h, skip, n)
	case !h.Tagged && h.QN == iwarp.QNTerminate && op == rdmap.Terminate:
		rd.Skip(skip)
		return q.placeTerminate(rd, n), true
	default:
		ev = q.refuse(ah, rdmap.UnexpectedOpcode)
	}
	rd.Skip(skip + n)
	return ev, true
}

// refuse answers a ULPDU that asks for what was not granted. It counts as
// arrived, so that the window moves on, and places nothing.
func (q *QP) refuse(ah *AH, cause iwarp.Cause) event {
	q.terminate(ah, cause)
	return event{}
}

// placeWrite checks a segment of an RDMA Write against the region that it
// names (RFC 5040, section 8.1; RFC 5041, section 7.1) and places it.
func (q *QP) placeWrite(ah *AH, rd *llp.Reader, h *ddp.Header, n int) event {
	mr := q.ctx.mrs.lookup(uint32(h.STag))
	var cause iwarp.Cause
	switch {
	case mr == nil || mr.pd != q.pd:
		cause = ddp.InvalidSTag
	case mr.access&RemoteWrite == 0:
		cause = rdmap.AccessRights
	default:
		if dst, ok := mr.slice(h.TO, uint32(n)); ok {
			rd.Copy(dst)
			return event{}
		}
		cause = ddp.BaseBounds
	}
	rd.Skip(n)
	return q.refuse(ah, cause)
}

// placeSend places a segment of a Send. One that is a whole message takes a
// posted receive and is done; others find theirs by MSN.
func (q *QP) placeSend(ah *AH, rd *llp.Reader, h *ddp.Header, skip, n int) (ev event, ok bool) {
	if h.Last && h.MO == 0 {
		if !q.mayTake(ah) {
			return ev, false
		}
		rd.Skip(skip)
		e := q.take()
		if n > int(e.total) {
			rd.Skip(n)
			q.terminate(ah, ddp.MessageTooLong)
			return event{kind: eventRecv, status: LocLenErr, wrid: e.wrid, len: uint32(n)}, true
		}
		e.scatter(0, rd, n)
		return event{kind: eventRecv, wrid: e.wrid, len: uint32(n)}, true
	}
	m := &ah.conn.msgs[uint32(h.MSN)&uint32(len(ah.conn.msgs)-1)]
	if !m.used {
		if !q.mayTake(ah) {
			return ev, false
		}
		m.begin(q.take(), uint32(h.MSN))
	}
	rd.Skip(skip)
	if m.msn != uint32(h.MSN) {
		rd.Skip(n)
		return q.refuse(ah, ddp.InvalidMO), true
	}
	if uint64(h.MO)+uint64(n) > uint64(m.buf.total) {
		rd.Skip(n)
		q.terminate(ah, ddp.MessageTooLong)
	} else {
		m.buf.scatter(h.MO, rd, n)
	}
	if h.Last {
		m.len = h.MO + uint32(n)
		if m.len > m.buf.total {
			ev = event{kind: eventRecv, status: LocLenErr, wrid: m.buf.wrid, len: m.len}
			*m = message{}
			return ev, true
		}
		return event{kind: eventMessage, msn: m.msn}, true
	}
	return ev, true
}

// scatter copies n bytes to offset off of the buffers.
func (e *rqe) scatter(off uint32, rd *llp.Reader, n int) {
	skip := int(off)
	b := e.buf
	for i := 0; n > 0; i++ {
		if skip < len(b) {
			part := b[skip:min(len(b), skip+n)]
			rd.Copy(part)
			n -= len(part)
			skip = 0
		} else {
			skip -= len(b)
		}
		if n > 0 {
			b = e.more[i]
		}
	}
}

// placeTerminate reads why the peer refused what we asked of it.
func (q *QP) placeTerminate(rd *llp.Reader, n int) event {
	status := RemInvReqErr
	var t rdmap.Term
	if t.Parse(rd.Peek(min(n, rdmap.TermMinLen))) && t.Cause.Protection() {
		status = RemAccessErr
	}
	rd.Skip(n)
	return event{kind: eventEnd, len: uint32(status)}
}

package verbs

import (
	"github.com/xwarp/xwarp/internal/arq"
	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
)

// kick sends to one peer without waiting for the next step. It does not read
// the clock, which would be a tenth of our own time for a small message: what
// it sends is dated by the step that follows.
func (q *QP) kick(ah *AH) {
	c := q.ctx
	c.kicked = true
	l := q.nextLine(ah)
	if l == nil && ah.conn.acked { // the acknowledgement may make room
		c.chores(c.cfg.Engine.Now())
		l = q.nextLine(ah)
	}
	if l == nil || !c.ep.TxRoom() {
		return
	}
	c.undated, c.undatedFrom = ah, ah.peer.Snd.Next()
	q.sendNew(c.cfg.Engine.Now(), ah, l)
	c.ep.Flush()
}

// nextLine returns the line whose first request may be cut into a segment now,
// or nil. Answers and requests take turns.
func (q *QP) nextLine(ah *AH) *line {
	c := &ah.conn
	if !ah.peer.Open() || !ah.peer.Snd.CanPush(1) {
		return nil
	}
	ready := c.requests.cur != none && !q.held(c)
	if c.answers.cur != none && !(ready && c.turn) {
		return &c.answers
	}
	if ready {
		return &c.requests
	}
	return nil
}

// held reports whether the first request in line must wait: for a receive at
// the peer, for earlier Reads, or because the queue pair is being drained. A
// Send goes out without credit when none is under way, to ask for some.
func (q *QP) held(c *conn) bool {
	w := &q.sq.wqes[c.requests.cur]
	switch {
	case w.begun:
		return false
	case w.op == OpSend && w.flags&Fence == 0 && q.mayBegin():
		return c.sends >= max(c.credit, 1)
	case !q.mayBegin(), w.flags&Fence != 0 && c.reads > 0:
		return true
	case w.op == OpSend || w.op == OpSendWithInv || w.op == OpRDMAWriteWithImm:
		return c.sends >= max(c.credit, 1)
	}
	return w.isRead() && c.reads >= maxReads
}

// makeReady puts a peer in the line of those that may send, if it can.
func (c *Context) makeReady(ah *AH) {
	k := &ah.conn
	if k.queued || k.dead || c.rd.nextLine(ah) == nil && !ah.peer.Snd.HasLost() {
		return
	}
	k.queued = true
	c.ready = append(c.ready, ah)
}

// pumpQuota is how many datagrams one peer may send before the next has its
// turn: what one system call takes. Fewer cost bandwidth.
const pumpQuota = 32

// pump sends for the peers in line until the carrier is full, and returns how
// many datagrams were built.
func (c *Context) pump(now mono.Time) (sent int) {
	done := 0
	for n := len(c.ready); done < n && c.ep.TxRoom(); done++ {
		ah := c.ready[done]
		ah.conn.queued = false
		if ah.conn.dead {
			continue
		}
		sent += c.rd.pumpPeer(now, ah)
		if ah.conn.dead {
			continue // what it was to be sent is not granted any more
		}
		c.wakePeer(ah.peer, ah.peer.Snd.Deadline())
		c.makeReady(ah) // behind those that have not had their turn
	}
	if done > 0 {
		c.ready = append(c.ready[:0], c.ready[done:]...)
	}
	return sent
}

func (q *QP) pumpPeer(now mono.Time, ah *AH) (sent int) {
	snd := &ah.peer.Snd
	for ; sent < pumpQuota && q.ep.TxRoom(); sent++ {
		if lsn, ok := snd.NextLost(); ok {
			if !q.resend(now, ah, lsn) {
				break
			}
			continue
		}
		if l := q.nextLine(ah); l == nil || !q.sendNew(now, ah, l) {
			break
		}
	}
	return sent
}

// sendNew builds one datagram of segments that were not sent before: the next
// one of a line, and those behind it as long as they fit whole.
func (q *QP) sendNew(now mono.Time, ah *AH, l *line) bool {
	n, _ := q.nextSegment(ah, l)
	w := &q.sq.wqes[l.cur]
	if !q.begin(ah, ah.peer.Snd.Next(), w, w.sent, n) {
		return false
	}
	if w.total >= arq.LongMin {
		q.ep.Long()
	}
	ah.conn.turn = l == &ah.conn.answers
	soon := q.cut(now, ah, l, n)
	for l = q.nextLine(ah); l != nil; l = q.nextLine(ah) {
		n, hdr := q.nextSegment(ah, l)
		if !q.ep.Fits(hdr+n) || !q.granted(&q.sq.wqes[l.cur]) {
			break
		}
		soon = q.cut(now, ah, l, n) || soon
	}
	q.ep.Commit(now, ah.peer, q.creditCode(), soon)
	return true
}

// creditCode returns how many Sends each peer may have outstanding: its share
// of the receives that are posted. 0 says that there is none.
func (q *QP) creditCode() uint8 {
	n := q.recvsLeft()
	if active := q.ep.Active(); active > 1 && n > 0 {
		n = max(n/active, 1)
	}
	return dgram.CreditCode(n)
}

// nextSegment returns the payload and header length of a line's next segment.
func (q *QP) nextSegment(ah *AH, l *line) (n, hdr int) {
	w := &q.sq.wqes[l.cur]
	hdr = w.headerLen()
	if w.inside {
		if n := q.ep.Direct(q.most(ah), w.addr+mem.Addr(w.sent), int(w.total-w.sent), hdr); n > 0 {
			return n, hdr
		}
	}
	if w.op == OpRDMAWriteWithImm && w.sent == w.total {
		return rdmap.ImmLen, w.headerAt(w.sent)
	}
	return min(int(w.total-w.sent), ah.peer.MaxULPDU()-hdr), hdr
}

// begin opens a datagram whose first segment has n bytes of w from off on.
func (q *QP) begin(ah *AH, lsn serial.U32, w *wqe, off uint32, n int) bool {
	switch {
	case !q.granted(w):
		n = rdmap.TermMaxLen // see writeRevoked
	case q.isDirect(ah, w, off, n):
		n = 0 // the payload needs no frame
	}
	return q.ep.Begin(ah.peer, lsn, w.headerAt(off)+n)
}

// cut takes the next segment, of n bytes, off a line. It reports whether
// somebody waits for its acknowledgement.
func (q *QP) cut(now mono.Time, ah *AH, l *line, n int) (soon bool) {
	c := &ah.conn
	i := l.cur
	w := &q.sq.wqes[i]
	off := w.sent
	w.sent += uint32(n)
	if !w.begun {
		w.begun = true
		if int(i) < q.sq.cap {
			q.sq.begun++
		}
	}
	last := w.sent == w.end
	ah.peer.Snd.Push(now, uint32(i), off, uint32(n), last)
	q.write(ah, w, off, n)
	if !last {
		return false
	}
	l.cur = w.next
	switch {
	case w.op <= OpSendWithInv || w.op == OpRDMAWriteWithImm:
		c.sends++
	case w.isRead():
		c.reads++
	}
	return off > 0 && w.flags&Signaled != 0
}

// resend builds a datagram that was lost in part or whole: of the segment lsn,
// and of those behind it that were lost too and fit.
func (q *QP) resend(now mono.Time, ah *AH, lsn serial.U32) bool {
	snd := &ah.peer.Snd
	r := snd.Record(lsn)
	w := &q.sq.wqes[r.Token]
	if !q.begin(ah, lsn, w, r.Off, int(r.Len)) {
		return false
	}
	for {
		q.write(ah, w, r.Off, int(r.Len))
		snd.Resent(now, lsn)
		q.ep.Stats.TxResent++
		next, ok := snd.NextLost()
		if lsn++; !ok || next != lsn {
			break
		}
		r = snd.Record(lsn)
		w = &q.sq.wqes[r.Token]
		if !q.ep.Fits(w.headerAt(r.Off)+int(r.Len)) || w.op == opReadResponse {
			break
		}
	}
	q.ep.Recommit(now, ah.peer, q.creditCode())
	return true
}

// write puts one segment of w into the open datagram.
func (q *QP) write(ah *AH, w *wqe, off uint32, n int) {
	var h ddp.Header
	h.Last = off+uint32(n) == w.total
	switch w.op {
	case OpSend, OpSendWithInv:
		h.ULP, h.QN = rdmap.Control(sendOpcode(w)), iwarp.QNSend
		h.MSN, h.MO = iwarp.MSN(w.msn), off
		if w.op == OpSendWithInv {
			h.ULP2 = w.key
		}
	case OpRDMAWrite, OpRDMAWriteWithImm:
		if w.op == OpRDMAWriteWithImm && off == w.total {
			q.writeImm(w)
			return
		}
		h.Tagged, h.ULP = true, rdmap.Control(rdmap.Write)
		h.STag, h.TO = iwarp.STag(w.key), w.raddr+uint64(off)
	case opReadResponse:
		if !q.granted(w) {
			q.writeRevoked(w)
			return
		}
		h.Tagged, h.ULP = true, rdmap.Control(rdmap.ReadResponse)
		h.STag, h.TO = iwarp.STag(w.key), w.raddr+uint64(off)
	case OpRDMAWriteRecord:
		q.writeChunk(ah, w, off, n)
		return
	default:
		h.ULP, h.QN, h.MSN = w.control()
	}
	h.Put(q.ep.ULPDU(h.Len()+n, h.Len()))
	q.payload(ah, w, off, n)
}

// sendOpcode returns what RDMAP calls a Send with these flags.
func sendOpcode(w *wqe) rdmap.Opcode {
	op := rdmap.Send
	if w.op == OpSendWithInv {
		op = rdmap.SendInv
	}
	if w.flags&Solicited != 0 {
		op += rdmap.SendSE - rdmap.Send
	}
	return op
}

// control returns the header fields of messages that RDMAP itself reads.
func (w *wqe) control() (ulp uint8, qn iwarp.QN, msn iwarp.MSN) {
	op := rdmap.AtomicRequest
	switch w.op {
	case OpRDMARead:
		op = rdmap.ReadRequest
	case opAtomicResponse:
		op = rdmap.AtomicResponse
	case opTerminate:
		op = rdmap.Terminate
	}
	return rdmap.Control(op), op.QN(), iwarp.MSN(w.msn)
}

// writeImm puts the Immediate Data behind a Write into the open datagram
// (RFC 7306, section 6).
func (q *QP) writeImm(w *wqe) {
	op := rdmap.Immediate
	if w.flags&Solicited != 0 {
		op = rdmap.ImmediateSE
	}
	h := ddp.Header{Last: true, ULP: rdmap.Control(op), QN: iwarp.QNSend, MSN: iwarp.MSN(w.msn)}
	b := q.ep.ULPDU(ddp.UntaggedLen+rdmap.ImmLen, ddp.UntaggedLen+rdmap.ImmLen)
	h.Put(b)
	rdmap.Imm(w.imm).Put(b[ddp.UntaggedLen:])
}

// writeChunk puts a chunk of a Write-Record into the open datagram.
func (q *QP) writeChunk(ah *AH, w *wqe, off uint32, n int) {
	h := ddp.Header{
		Tagged: true, Last: off+uint32(n) == w.total, ULP: rdmap.Control(rdmap.WriteRecord),
		STag: iwarp.STag(w.key), TO: w.raddr + uint64(off),
	}
	k := record.Chunk{ID: w.msn, Length: w.total, Offset: off}
	b := q.ep.ULPDU(w.headerLen()+n, w.headerLen())
	h.Put(b)
	k.Put(b[ddp.TaggedLen:])
	q.payload(ah, w, off, n)
}

// isDirect reports whether n bytes of w from off on are sent from where they
// lie.
func (q *QP) isDirect(ah *AH, w *wqe, off uint32, n int) bool {
	return w.inside && n >= llp.DirectMin && off < w.total &&
		q.ep.Direct(q.most(ah), w.addr+mem.Addr(off), n, w.headerLen()) == n
}

// most returns the largest payload of a datagram to ah in bytes.
func (q *QP) most(ah *AH) int {
	if q.typ == UD {
		return q.ep.MaxPayload()
	}
	return ah.peer.Most()
}

// payload appends n bytes of w from off on to the open ULPDU.
func (q *QP) payload(ah *AH, w *wqe, off uint32, n int) {
	if w.built {
		q.ep.Payload(w.data[off : off+uint32(n)])
		return
	}
	if q.isDirect(ah, w, off, n) {
		q.ep.Attach(w.addr+mem.Addr(off), n)
		return
	}
	skip := int(off)
	for i := 0; n > 0; i++ {
		b := w.bufs[i]
		if skip >= len(b) {
			skip -= len(b)
			continue
		}
		b = b[skip:]
		skip = 0
		b = b[:min(len(b), n)]
		n -= len(b)
		q.ep.Payload(b)
	}
}

// onAck applies an acknowledgement that arrived at now.
func (q *QP) onAck(now mono.Time, ah *AH, ack serial.U32, window uint16, held mono.Duration) {
	snd := &ah.peer.Snd
	from, ok := snd.OnAck(now, ack, window, held)
	if !ok {
		return
	}
	for lsn := from; lsn != ack; lsn++ {
		switch r := snd.Record(lsn); {
		case !r.Last:
		case !ah.conn.dead:
			q.acknowledged(ah, int32(r.Token))
		case int(r.Token) >= q.sq.cap:
			q.sq.give(int32(r.Token)) // an answer behind the Terminate that ended all
		}
	}
}

// acknowledged notes that the peer has all of entry i.
func (q *QP) acknowledged(ah *AH, i int32) {
	c := &ah.conn
	w := &q.sq.wqes[i]
	switch w.op {
	case OpSend, OpSendWithInv, OpRDMAWriteWithImm:
		c.sends--
	case OpRDMARead, OpAtomicCmpAndSwp, OpAtomicFetchAndAdd, OpAtomicSwap:
		w.acked = true
		if !w.answered {
			return // the answer completes it
		}
	case opReadResponse, opAtomicResponse:
		c.answered--
		q.sq.give(i)
		return
	case opTerminate:
		q.sq.give(i)
		q.fail(ah, WRFlushErr) // the peer knows why
		return
	}
	w.done = true
	q.settle(c, ah)
}

// settle completes the oldest requests that are done, in the order of posting.
func (q *QP) settle(c *conn, ah *AH) {
	for c.head != none && q.sq.wqes[c.head].done {
		q.complete(ah, Success)
	}
}

// afterAck looks what an acknowledgement has shown to be lost, and lets the
// peer's requests go on.
func (q *QP) afterAck(now mono.Time, ah *AH) {
	if ah.conn.dead {
		return
	}
	ah.peer.Snd.Detect(now)
	q.ctx.wakePeer(ah.peer, ah.peer.Snd.Deadline())
	q.ctx.makeReady(ah)
}

// complete ends the oldest request to a peer.
func (q *QP) complete(ah *AH, status Status) {
	c := &ah.conn
	i := c.head
	w := &q.sq.wqes[i]
	c.head = w.after
	q.count(w.op, status)
	if w.flags&Signaled != 0 || status != Success {
		*q.sendCQ.next() = WC{WRID: w.wrid, Status: status, Opcode: w.op, ByteLen: w.size, QPNum: q.num, Src: ah}
	} else {
		q.sendCQ.release()
	}
	q.sq.give(i)
	q.checkDrained()
}

func (q *QP) count(op Opcode, status Status) {
	if status != Success {
		q.Stats.Flushed++
		return
	}
	switch op {
	case OpSend, OpSendWithInv:
		q.Stats.Sends++
	case OpRDMAWrite, OpRDMAWriteWithImm:
		q.Stats.Writes++
	case OpRDMARead:
		q.Stats.Reads++
	case OpRDMAWriteRecord:
		q.Stats.Records++
	case OpLocalInv, OpBindMW:
	default:
		q.Stats.Atomics++
	}
}

// fail ends everything with a peer: the oldest request with the cause, the
// others flushed, and receives that were being filled too. Nothing goes to it
// any more; other peers do not notice.
//
// What the peer has acknowledged with data is done, though that was only noted.
func (q *QP) fail(ah *AH, cause Status) {
	if c := &ah.conn; c.acked {
		q.ctx.unnote(c.ackAt, ah)
	}
	q.failFrom(ah, none, cause)
}

// failFrom is fail with the cause for the request culprit, and those before it
// flushed; none stands for the oldest.
func (q *QP) failFrom(ah *AH, culprit int32, cause Status) {
	c := &ah.conn
	if !c.dead {
		c.dead = true
		q.dropInbound(c)
		q.dropAnswers(ah)
		q.records.lost(q, ah)
		if ah.peer != nil {
			q.ep.Disassociate(ah.peer)
			q.ctx.ahs[ah.peer.Index] = nil
		}
	}
	for c.head != none {
		status := WRFlushErr
		if c.head == culprit || culprit == none {
			status, culprit = cause, -2
		}
		q.complete(ah, status)
	}
	c.requests = line{none, none}
}

// flushPosted ends what was posted to a peer that is gone.
func (q *QP) flushPosted(ah *AH) {
	for ah.conn.head != none {
		q.complete(ah, WRFlushErr)
	}
}

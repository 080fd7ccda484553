package verbs

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// post posts a request that is legal.
func (q *rdQP) post(wr *SendWR) error {
	switch {
	case !q.mayPost():
		return ErrQueueFull
	case wr.Opcode >= OpLocalInv:
		q.local(wr)
		return nil
	case wr.AH == nil || wr.AH.pd != q.pd || wr.AH.peer == nil:
		q.sendCQ.release()
		return errNoAH()
	}
	sent := q.sendFast(wr)
	i := q.sq.first()
	if err := q.fill(&q.sq.wqes[i], wr, i); err != nil {
		q.sendCQ.release()
		return err
	}
	q.sq.take()
	q.enqueue(wr.AH, i, sent)
	return nil
}

// enqueue appends the user's request i to the peer's and sends what can be
// sent; sent means that sendFast has sent it.
func (q *rdQP) enqueue(ah *AH, i int32, sent bool) {
	c := &ah.conn
	w := &q.sq.wqes[i]
	w.after = none
	if c.head == none {
		c.head = i
	} else {
		q.sq.wqes[c.tail].after = i
	}
	c.tail = i
	if ah.Lost() || q.state == StateErr {
		q.flushPosted(ah)
		return
	}
	if w.number(&c.msn); w.op == OpRDMAWriteRecord {
		c.record++
		w.record = c.record
	}
	if sent {
		q.recordFast(ah, i)
		return
	}
	if !ah.peer.Wanted {
		q.ep.Want(ah.peer)
	}
	q.submit(ah, &c.requests, i)
}

// submit appends entry i to a submit and sends what can be sent.
func (q *rdQP) submit(ah *AH, l *requestList, i int32) {
	q.sq.append(l, i)
	if !q.ctx.transmitted && q.sq.wqes[i].flags&More == 0 {
		q.transmitNow(ah)
	}
	if l.cur != none {
		q.ctx.makeReady(ah)
	}
}

// answerTo posts an entry of ours to a peer: answers wait for nothing that the
// user has posted.
func (q *rdQP) answerTo(ah *AH, i int32) { q.submit(ah, &ah.conn.answers, i) }

// terminate tells a peer why it was refused, and with what (RFC 5040, section
// 4.8). Nothing is taken from it any more.
func (q *rdQP) terminate(ah *AH, t *rdmap.Term) {
	c := &ah.conn
	if ah.Lost() || c.refused {
		return
	}
	c.refused = true
	i := q.sq.answer()
	w := &q.sq.wqes[i]
	*w = wqe{op: opTerminate, built: true, msn: 1}
	w.total = uint32(t.Put(w.data[:]))
	q.answerTo(ah, i)
	q.ctx.raise(AsyncEvent{Type: refusalEvent(statusOf(t.Cause) == RemAccessErr), QP: q.QP, AH: ah})
}

// transmitNow sends to one peer without waiting for the next step: all that has its turn, with one
// doorbell. A doorbell behind each datagram costs as much as two more do where the driver copies
// frames. It does not read the clock, which would be a tenth of our own time for a small message:
// what it sends is dated by the step that follows.
func (q *rdQP) transmitNow(ah *AH) {
	c := q.ctx
	c.transmitted = true
	l := q.nextList(ah)
	if l == nil { // an acknowledgement may make room
		q.applyAck(ah)
		l = q.nextList(ah)
	}
	if l == nil || !c.ep.TxRoom() {
		return
	}
	c.ep.Early(&ah.peer.Assoc)
	now := c.cfg.Engine.Now()
	for n := 1; q.sendNew(now, ah, l) && n < AtOnce && c.ep.TxRoom(); n++ {
		if l = q.nextList(ah); l == nil {
			break
		}
	}
	c.ep.Flush()
}

// nextList returns the line whose first request may be cut into a segment now,
// or nil. Answers and requests take turns. Of several networks what is long takes any,
// all else the one in use.
func (q *rdQP) nextList(ah *AH) *requestList {
	c, snd := &ah.conn, &ah.peer.Snd
	room, spread := snd.CanPush(1), snd.Several() && snd.CanSpread()
	if !ah.peer.Open() || !room && !spread {
		return nil
	}
	var l *requestList
	ready := c.requests.cur != none && !q.held(c)
	switch {
	case c.answers.cur != none && !(ready && c.answerLast):
		l = &c.answers
	case ready:
		l = &c.requests
	default:
		return nil
	}
	if snd.Several() && q.sq.wqes[l.cur].isLong() {
		room = spread
	}
	if !room {
		return nil
	}
	return l
}

// isLong reports whether a request has a long message.
func (w *wqe) isLong() bool { return w.total >= arq.LongMin }

// held reports whether the first request in line must wait: for a receive at
// the peer, for earlier Reads, or because the queue pair is being drained. A
// Send goes out without credit when none is under way, to ask for some.
func (q *rdQP) held(c *conn) bool {
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
func (c *datagrams) makeReady(ah *AH) {
	if !ah.peer.InLine() && (c.rd.nextList(ah) != nil || ah.peer.Snd.HasLost()) {
		c.ep.Ready(&ah.peer.Assoc)
	}
}

// transmitPeers sends for the peers in line until the carrier is full, and acknowledges
// what found no data to ride on. It returns how many datagrams were built.
func (c *datagrams) transmitPeers(now mono.Time) (sent int) {
	for n := c.ep.Waiting(); n > 0 && c.ep.TxRoom(); n-- {
		p := c.ep.Take()
		if p.Closed() {
			continue
		}
		ah := c.ahs[p.Index]
		sent += c.rd.transmitPeer(now, ah)
		if p.Closed() {
			continue // what it was to be sent is not granted any more
		}
		if p.Rcv.Deadline() <= now {
			if c.ep.Ack(now, ah.peer, c.rd.creditCode()) {
				sent++
			} else {
				c.ep.Ready(p)
			}
		}
		c.ep.Wake(p, p.Snd.Deadline())
		c.makeReady(ah) // behind those that have not had their turn
	}
	return sent
}

func (q *rdQP) transmitPeer(now mono.Time, ah *AH) (sent int) {
	snd := &ah.peer.Snd
	for ; sent < llp.Quota && q.ep.TxRoom(); sent++ {
		if lsn, ok := snd.NextLost(); ok {
			if !q.resend(now, ah, lsn) {
				break
			}
			continue
		}
		if l := q.nextList(ah); l == nil || !q.sendNew(now, ah, l) {
			break
		}
	}
	return sent
}

// sendNew builds one datagram of segments that were not sent before: the next
// one of a line, and those behind it as long as they fit whole.
func (q *rdQP) sendNew(now mono.Time, ah *AH, l *requestList) bool {
	n, _ := q.nextSegment(ah, l)
	w := &q.sq.wqes[l.cur]
	if !q.begin(ah, ah.peer.Snd.Next(), w, w.sent, n) {
		return false
	}
	long := q.sq.wqes[l.cur].isLong()
	if long {
		q.ep.Long(ah.peer)
	}
	ah.conn.answerLast = l == &ah.conn.answers
	soon := q.cut(now, ah, l, n)
	for l = q.nextList(ah); l != nil; l = q.nextList(ah) {
		n, hdr := q.nextSegment(ah, l)
		if !q.ep.Fits(hdr+n) || !q.granted(&q.sq.wqes[l.cur]) {
			break
		}
		if long && !q.sq.wqes[l.cur].isLong() && ah.peer.Snd.Spreads() {
			break // it is to take the network in use
		}
		soon = q.cut(now, ah, l, n) || soon
	}
	q.ep.Commit(now, ah.peer, q.creditCode(), soon)
	return true
}

// creditCode returns how many Sends each peer may have outstanding: its share
// of the receives that are posted. 0 says that there is none.
func (q *rdQP) creditCode() uint8 {
	n := q.recvsLeft()
	if active := q.ep.Active(); active > 1 && n > 0 {
		n = max(n/active, 1)
	}
	return dgram.CreditCode(n)
}

// nextSegment returns the payload and header length of a line's next segment.
func (q *rdQP) nextSegment(ah *AH, l *requestList) (n, hdr int) {
	w := &q.sq.wqes[l.cur]
	if w.inside {
		hdr = w.headerLen()
		if n := q.ep.Direct(q.most(ah), w.addr+mem.Addr(w.sent), int(w.total-w.sent), hdr); n > 0 {
			return n, hdr
		}
	}
	return w.segment(w.sent, ah.peer.MaxULPDU())
}

// begin opens a datagram whose first segment has n bytes of w from off on.
func (q *rdQP) begin(ah *AH, lsn serial.U32, w *wqe, off uint32, n int) bool {
	switch {
	case !q.granted(w):
		n = rdmap.TermMaxLen // see writeRevoked
	case q.isDirect(ah, w, off, n):
		n = 0 // the payload needs no frame
	}
	return q.ep.Begin(ah.peer, lsn, w.headerAt(off)+n)
}

// cut takes the next segment, of n bytes, off a line. It reports whether
// a completion waits for its acknowledgement.
func (q *rdQP) cut(now mono.Time, ah *AH, l *requestList, n int) (soon bool) {
	c := &ah.conn
	i := l.cur
	w := &q.sq.wqes[i]
	off := q.sq.cut(i, n)
	last := w.sent == w.end()
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
func (q *rdQP) resend(now mono.Time, ah *AH, lsn serial.U32) bool {
	snd := &ah.peer.Snd
	r, via := snd.Unit(lsn), snd.Via(lsn)
	w := &q.sq.wqes[r.Token]
	if !q.begin(ah, lsn, w, r.Off, int(r.Len)) {
		return false
	}
	for {
		q.write(ah, w, r.Off, int(r.Len))
		snd.Resent(now, lsn)
		q.ep.Stats.TxResent++
		next, ok := snd.NextLost()
		if lsn++; !ok || next != lsn || snd.Via(lsn) != via {
			break
		}
		r = snd.Unit(lsn)
		w = &q.sq.wqes[r.Token]
		if !q.ep.Fits(w.headerAt(r.Off)+int(r.Len)) || w.op == opReadResponse {
			break
		}
	}
	q.ep.Recommit(now, ah.peer, q.creditCode())
	return true
}

// applyAck applies the acknowledgement of a peer that was noted, if one was.
func (q *rdQP) applyAck(ah *AH) {
	from, to := q.ep.Apply(&ah.peer.Assoc)
	q.acked(ah, from, to, none)
}

// acked notes that the peer has the units from one up to another, and lets its requests
// go on. Of those from the culprit on, or behind a Terminate, only answers are given back.
func (q *rdQP) acked(ah *AH, from, to serial.U32, culprit int32) {
	over, told := false, false
	for ; from != to; from++ {
		r := ah.peer.Snd.Unit(from)
		over = over || int32(r.Token) == culprit
		switch {
		case !r.Last:
		case !over:
			told = q.acknowledged(ah, int32(r.Token))
			over = told
		case int(r.Token) >= q.sq.cap:
			q.sq.give(int32(r.Token))
		}
	}
	if told {
		q.fail(ah, WRFlushErr) // the peer knows why
	}
	q.ctx.makeReady(ah)
}

// acknowledged notes that the peer has all of entry i, and reports whether that is a
// Terminate.
func (q *rdQP) acknowledged(ah *AH, i int32) bool {
	c := &ah.conn
	w := &q.sq.wqes[i]
	switch w.op {
	case OpSend, OpSendWithInv, OpRDMAWriteWithImm:
		c.sends--
	case OpRDMARead, OpAtomicCmpAndSwp, OpAtomicFetchAndAdd, OpAtomicSwap:
		w.acked = true
		if !w.answered {
			return false // the answer completes it
		}
	case opReadResponse, opAtomicResponse:
		c.answered--
		q.sq.give(i)
		return false
	case opTerminate:
		q.sq.give(i)
		return true
	}
	w.done = true
	q.settle(c, ah)
	return false
}

// settle completes the oldest requests that are done, in the order of posting.
func (q *rdQP) settle(c *conn, ah *AH) {
	for c.head != none && q.sq.wqes[c.head].done {
		q.complete(ah, Success)
	}
}

// complete ends the oldest request to a peer.
func (q *rdQP) complete(ah *AH, status Status) {
	c := &ah.conn
	i := c.head
	w := &q.sq.wqes[i]
	c.head = w.after
	q.completeSend(w, status, ah)
	q.sq.give(i)
	q.checkDrained()
}

// fail ends everything with a peer: the oldest request with the cause, the
// others flushed, and receives that were being filled too. Nothing goes to it
// any more; other peers do not notice.
//
// What the peer has acknowledged with data is done, though that was only noted.
func (q *rdQP) fail(ah *AH, cause Status) {
	q.applyAck(ah)
	q.failFrom(ah, none, cause)
}

// failFrom is fail with the cause for the request culprit, and those before it
// flushed; none stands for the oldest.
func (q *rdQP) failFrom(ah *AH, culprit int32, cause Status) {
	c := &ah.conn
	if q.ctx.handleOf(ah.peer) != nil {
		q.in.dropInbound(c)
		q.dropAnswers(ah)
		q.records.lost(q.QP, ah)
		q.ep.Disassociate(ah.peer)
		q.ctx.ahs[ah.peer.Index] = nil
	}
	for c.head != none {
		status := WRFlushErr
		if c.head == culprit || culprit == none {
			status, culprit = cause, -2
		}
		q.complete(ah, status)
	}
	c.requests = requestList{none, none}
}

// flushPosted ends what was posted to a peer that is gone.
func (q *rdQP) flushPosted(ah *AH) {
	for ah.conn.head != none {
		q.complete(ah, WRFlushErr)
	}
}

package verbs

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
)

// Requests of our own, which no user posts.
const (
	opTerminate      Opcode = 0xff - iota // tells a peer why it was refused
	opReadResponse                        // answers a Read of the peer
	opAtomicResponse                      // answers an atomic of the peer
)

// wqe is a posted send request. It owns the payload until it is acknowledged:
// lost segments are built again from it.
type wqe struct {
	wrid   uint64
	op     Opcode
	flags  SendFlags
	bufN   uint8
	inside bool   // bufs[0] is all, and lies in the arena at addr
	built  bool   // what is sent lies in data
	status Status // RC: what a request of our own has come to
	begun  bool   // its first segment was cut
	done   bool   // complete, once those before it are
	next   int32  // the following one in its line
	after  int32  // the user's request that was posted to the same peer after it
	total  uint32
	end    uint32 // total and what is sent behind it: bytes to cut into segments
	sent   uint32 // of them, cut
	msn    uint32
	key    uint32 // STag of tagged segments; the key to invalidate; the record's number
	raddr  uint64
	addr   mem.Addr
	imm    uint64

	// A Read or an atomic: what its answer is for.
	name uint32 // that the answer comes under; 0 when there is none
	size uint32 // bytes that were asked for
	got  uint32 // bytes that have arrived
	ah   *AH    // whose answer it is
	// The answer may come before the acknowledgement of the request. It ends
	// with both: until then its segment may have to be sent again.
	answered, acked bool

	bufs [MaxSGE][]byte
	data [MaxInline]byte
}

// tagged reports whether w goes out in tagged segments.
func (w *wqe) tagged() bool { return w.headerLen() != ddp.UntaggedLen }

// headerAt returns the length of the headers of the segment that begins at off:
// Immediate Data goes behind its Write in a segment of another kind.
func (w *wqe) headerAt(off uint32) int {
	if w.op == OpRDMAWriteWithImm && off == w.total {
		return ddp.UntaggedLen
	}
	return w.headerLen()
}

// headerLen returns the length of the headers of each of w's segments but for
// Immediate Data.
func (w *wqe) headerLen() int {
	switch w.op {
	case OpRDMAWrite, OpRDMAWriteWithImm, opReadResponse:
		return ddp.TaggedLen
	case OpRDMAWriteRecord:
		return ddp.TaggedLen + record.ChunkLen
	}
	return ddp.UntaggedLen
}

// isRead reports whether w is done only when its answer has come.
func (w *wqe) isRead() bool { return w.op >= OpRDMARead && w.op <= OpAtomicSwap }

// sendQueue is a table of requests with a stack of free entries. Answers to
// peers have entries of their own behind the user's, which are made when they
// are needed: at most twice maxReads for each peer.
type sendQueue struct {
	wqes        []wqe
	free        []int32
	freeAnswers []int32
	cap         int // entries of the user's
	names       uint32
	begun       int // requests of the user that have begun and are not complete
}

func (s *sendQueue) init(n int) {
	s.wqes, s.cap = make([]wqe, n), n
	s.free = make([]int32, n)
	for i := range s.free {
		s.free[i] = int32(n - 1 - i)
	}
}

// take removes an entry from the stack of free ones; there is one.
func (s *sendQueue) take() int32 {
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return i
}

// answer returns an entry for an answer to a peer.
func (s *sendQueue) answer() int32 {
	if n := len(s.freeAnswers); n > 0 {
		i := s.freeAnswers[n-1]
		s.freeAnswers = s.freeAnswers[:n-1]
		return i
	}
	s.wqes = append(s.wqes, wqe{})
	return int32(len(s.wqes) - 1)
}

// answersKept is how many entries for answers stay when none is in use.
const answersKept = 1024

// trim gives the memory of answers back after very many were under way at a
// time. Nobody may hold a pointer to an entry.
func (s *sendQueue) trim() {
	if n := len(s.wqes) - s.cap; n > answersKept && len(s.freeAnswers) == n {
		s.wqes = append(make([]wqe, 0, s.cap), s.wqes[:s.cap]...)
		s.freeAnswers = nil
	}
}

// give puts an entry back, whosever it was.
func (s *sendQueue) give(i int32) {
	w := &s.wqes[i]
	clear(w.bufs[:w.bufN])
	w.name = 0
	if int(i) < s.cap {
		if w.begun {
			s.begun--
		}
		s.free = append(s.free, i)
	} else {
		s.freeAnswers = append(s.freeAnswers, i)
	}
}

// PostSend posts a send request (ibv_post_send(3)). It returns ErrQueueFull
// when the send or completion queue has no room, and another error when the
// request itself is wrong; then nothing was posted.
//
// The first request after a step of the engine goes out at once; those that
// follow share frames and go out with the next step.
func (q *QP) PostSend(wr *SendWR) error {
	if q.closed {
		return ErrClosed
	}
	if err := q.typ.checkLegal(wr); err != nil {
		return err
	}
	if q.state != StateRTS {
		if err := q.mayPostSend(); err != nil {
			return err
		}
	}
	if q.typ == RC {
		return q.rc.post(wr)
	}
	if !q.mayPost() {
		return ErrQueueFull
	}
	if wr.Opcode >= OpLocalInv {
		return q.local(wr)
	}
	if wr.AH == nil || wr.AH.pd != q.pd || q.typ == RD && wr.AH.peer == nil {
		q.sendCQ.release()
		return fmt.Errorf("%w: the request needs an address handle of the queue pair's protection domain, and RD one of a host", ErrInvalid)
	}
	sent := q.typ == RD && q.express(wr)
	i := q.sq.free[len(q.sq.free)-1]
	w := &q.sq.wqes[i]
	if err := q.fill(w, wr, i); err != nil {
		q.sendCQ.release()
		return err
	}
	q.sq.take()
	if q.typ == UD {
		q.enqueueUD(wr, i)
		return nil
	}
	q.enqueue(wr.AH, i, sent)
	return nil
}

// PostSendList posts requests in the order of the list, as PostSend does each (the
// linked list of ibv_post_send(3)), and returns how many it has posted. With an
// error that is the index of the one that was not; those behind it were not looked
// at.
func (q *QP) PostSendList(wrs []SendWR) (posted int, err error) {
	for i := range wrs {
		if err := q.PostSend(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// mayPost takes a place for one more request, if there is one once the noted
// acknowledgements are applied.
func (q *QP) mayPost() bool {
	if len(q.sq.free) == 0 && len(q.ctx.acks) > 0 {
		q.ctx.chores(q.ctx.cfg.Engine.Now())
	}
	return len(q.sq.free) > 0 && q.sendCQ.reserve()
}

// fill copies a request into its entry and resolves its memory.
func (q *QP) fill(w *wqe, wr *SendWR, i int32) error {
	w.wrid, w.op, w.flags = wr.WRID, wr.Opcode, wr.Flags
	w.sent, w.key, w.raddr = 0, wr.RKey, wr.RemoteAddr
	w.done, w.begun, w.inside, w.built, w.bufN = false, false, false, false, 0
	if wr.Flags&Inline != 0 {
		if len(wr.InlineData) > MaxInline {
			return fmt.Errorf("%w: %d bytes inline; at most %d", ErrInvalid, len(wr.InlineData), MaxInline)
		}
		w.built = true
		w.total = uint32(copy(w.data[:], wr.InlineData))
	} else if err := q.gather(w, wr); err != nil {
		return err
	}
	w.end, w.size = w.total, w.total
	switch {
	case wr.Opcode <= OpRDMAWrite:
		if wr.Opcode == OpSendWithInv {
			w.key = wr.InvKey
		}
	case wr.Opcode == OpRDMAWriteWithImm:
		w.imm, w.end = wr.ImmData, w.total+rdmap.ImmLen
	case w.isRead():
		q.ask(w, wr, i)
	}
	if q.typ == UD && wr.Opcode == OpSend && int(w.total) > q.ctx.maxSeg() {
		return fmt.Errorf("%w: message of %d bytes; a UD Send is one datagram of at most %d (use RDMA_WRITE_RECORD, or RD)", ErrInvalid, w.total, q.ctx.maxSeg())
	}
	return nil
}

// gather resolves the memory of a request.
func (q *QP) gather(w *wqe, wr *SendWR) error {
	if wr.NumSGE > MaxSGE {
		return fmt.Errorf("%w: %d scatter/gather elements; at most %d", ErrInvalid, wr.NumSGE, MaxSGE)
	}
	need := Access(0)
	if w.isRead() {
		need = LocalWrite
	}
	total := uint64(0)
	for i := range int(wr.NumSGE) {
		b, err := q.ctx.resolve(q.pd, &wr.SGL[i], need)
		if err != nil {
			clear(w.bufs[:i])
			return err
		}
		w.bufs[i] = b
		total += uint64(len(b))
	}
	w.bufN = wr.NumSGE
	if total > maxMsg {
		return fmt.Errorf("%w: message of %d bytes; at most %d", ErrInvalid, total, maxMsg)
	}
	w.total = uint32(total)
	if total >= llp.DirectMin && w.bufN == 1 && (q.typ == RD || q.lasting) {
		r := q.ctx.keys.lookup(wr.SGL[0].LKey)
		w.inside, w.addr = r.inside, r.arena+mem.Addr(wr.SGL[0].Addr-r.addr)
	}
	return nil
}

// ask builds what a Read or an atomic sends. Its answer comes under a name
// that says nothing about memory here, and that only this peer may use.
func (q *QP) ask(w *wqe, wr *SendWR, i int32) {
	q.sq.names++
	w.name = q.sq.names<<20 | uint32(i) // maxQueue entries
	if w.name>>20 == 0 {
		q.sq.names++
		w.name |= 1 << 20
	}
	w.ah, w.got, w.built, w.inside = wr.AH, 0, true, false
	w.answered, w.acked = false, false
	if wr.Opcode == OpRDMARead {
		r := rdmap.ReadReq{SinkSTag: iwarp.STag(w.name), Size: w.size, SrcSTag: iwarp.STag(wr.RKey), SrcTO: wr.RemoteAddr}
		r.Put(w.data[:])
		w.total = rdmap.ReadReqLen
	} else {
		r := rdmap.AtomicReq{ID: w.name, STag: iwarp.STag(wr.RKey), TO: wr.RemoteAddr}
		operands(&r, wr)
		r.Put(w.data[:])
		w.total = rdmap.AtomicReqLen
	}
	w.end = w.total
}

// operands translates an atomic operation to RFC 7306, section 5.2.
func operands(r *rdmap.AtomicReq, wr *SendWR) {
	a := &wr.Atomic
	mask := allIfZero(a.Mask)
	switch wr.Opcode {
	case OpAtomicFetchAndAdd:
		// The mask of RFC 7306 marks the most significant bits of the fields
		// that are added apart; that is what Atomic.Mask says too, 0 being one
		// field of 64 bits.
		r.Op, r.Data, r.Mask = rdmap.FetchAdd, a.Add, a.Mask
	case OpAtomicSwap:
		r.Op, r.Data, r.Mask = rdmap.Swap, a.Swap, mask
	case OpAtomicCmpAndSwp:
		r.Op, r.Data, r.Mask = rdmap.CmpSwap, a.Swap, mask
		r.Compare, r.CompareMask = a.Compare, allIfZero(a.CompareMask)
	}
}

func allIfZero(mask uint64) uint64 {
	if mask == 0 {
		return ^uint64(0)
	}
	return mask
}

// local does a request that concerns nobody else, at once.
func (q *QP) local(wr *SendWR) error {
	status := q.do(wr)
	if wr.Flags&Signaled == 0 && status == Success {
		q.sendCQ.release()
		return nil
	}
	*q.sendCQ.next() = WC{WRID: wr.WRID, Status: status, Opcode: wr.Opcode, QPNum: q.num}
	return nil
}

// do does what a local request says.
func (q *QP) do(wr *SendWR) Status {
	switch {
	case q.state == StateErr:
		return WRFlushErr
	case wr.Opcode == OpLocalInv:
		if _, ok := q.invalidate(wr.InvKey, false); !ok {
			return LocProtErr
		}
	case q.bind(wr.Bind) != nil:
		return MWBindErr
	}
	return Success
}

// enqueue appends the user's request i to the peer's and sends what can be
// sent; sent means that express has sent it.
func (q *QP) enqueue(ah *AH, i int32, sent bool) {
	c := &ah.conn
	w := &q.sq.wqes[i]
	w.after = none
	if c.head == none {
		c.head = i
	} else {
		q.sq.wqes[c.tail].after = i
	}
	c.tail = i
	if c.dead || q.state == StateErr {
		q.flushPosted(ah)
		return
	}
	switch {
	case w.op <= OpSendWithInv || w.op == OpRDMAWriteWithImm:
		w.msn = c.nextMSN(0)
	case w.isRead():
		w.msn = c.nextMSN(1)
	case w.op == OpRDMAWriteRecord:
		c.record++
		w.msn = c.record
	}
	if sent {
		q.expressed(ah, i)
		return
	}
	if !ah.peer.Wanted {
		q.ep.Want(ah.peer)
		q.ctx.wake(q.ep.Deadline())
	}
	q.line(ah, &c.requests, i)
}

func (c *conn) nextMSN(queue int) uint32 {
	c.msn[queue]++
	return c.msn[queue]
}

// line appends entry i to a line and sends what can be sent.
func (q *QP) line(ah *AH, l *line, i int32) {
	q.sq.wqes[i].next = none
	if l.cur == none {
		l.cur = i
	} else {
		q.sq.wqes[l.tail].next = i
	}
	l.tail = i
	if !q.ctx.kicked {
		q.kick(ah)
	}
	if l.cur != none {
		q.ctx.makeReady(ah)
	}
}

// answerTo posts an entry of ours to a peer: answers wait for nothing that the
// user has posted.
func (q *QP) answerTo(ah *AH, i int32) { q.line(ah, &ah.conn.answers, i) }

// terminate tells a peer why it was refused, and with what (RFC 5040, section
// 4.8). Nothing is taken from it any more.
func (q *QP) terminate(ah *AH, t *rdmap.Term) {
	c := &ah.conn
	if c.dead || c.refused {
		return
	}
	c.refused = true
	i := q.sq.answer()
	w := &q.sq.wqes[i]
	*w = wqe{op: opTerminate, built: true, msn: 1}
	w.total = uint32(t.Put(w.data[:]))
	w.end = w.total
	q.answerTo(ah, i)
	kind := EventQPReqErr
	if statusOf(t.Cause) == RemAccessErr {
		kind = EventQPAccessErr
	}
	q.ctx.raise(AsyncEvent{Type: kind, QP: q, AH: ah})
}

// order is how memory holds the operands of atomics: as this host does.
var order = binary.NativeEndian

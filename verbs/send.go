package verbs

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// opTerminate is a request of our own: it tells a peer why it was refused.
const opTerminate Opcode = 0xff

// wqe is a posted send request. It owns the payload until it is acknowledged:
// lost segments are built again from it.
type wqe struct {
	wrid   uint64
	op     Opcode
	flags  SendFlags
	bufN   uint8
	inside bool // bufs[0] is all, and lies in the arena at addr
	addr   mem.Addr
	next   int32  // the following request to the same peer
	total  uint32 // bytes
	sent   uint32 // bytes that were cut into segments
	msn    uint32
	rkey   uint32
	raddr  uint64
	bufs   [MaxSGE][]byte
	data   [MaxInline]byte
}

// headerLen returns the length of the DDP header of each of w's segments.
func (w *wqe) headerLen() int {
	if w.op == OpRDMAWrite {
		return ddp.TaggedLen
	}
	return ddp.UntaggedLen
}

// sendQueue is a table of requests with a stack of free entries.
type sendQueue struct {
	wqes []wqe
	free []int32
}

func (s *sendQueue) init(n int) {
	s.wqes = make([]wqe, n)
	s.free = make([]int32, n)
	for i := range s.free {
		s.free[i] = int32(n - 1 - i)
	}
}

// PostSend posts a send request (ibv_post_send(3)). It returns ErrQueueFull
// when the send or completion queue has no room, and another error when the
// request itself is wrong; then nothing was posted.
//
// The first request after a step of the engine goes out at once; those that
// follow share frames and go out with the next step.
func (q *QP) PostSend(wr *SendWR) error {
	if err := q.checkSend(wr); err != nil {
		return err
	}
	i := q.sq.free[len(q.sq.free)-1]
	w := &q.sq.wqes[i]
	if err := q.fill(w, wr); err != nil {
		q.sendCQ.release()
		return err
	}
	q.sq.free = q.sq.free[:len(q.sq.free)-1]
	q.enqueue(wr.AH, i)
	return nil
}

func (q *QP) checkSend(wr *SendWR) error {
	switch {
	case q.closed:
		return ErrClosed
	case wr.AH == nil || wr.AH.pd != q.pd:
		return fmt.Errorf("%w: the request needs an address handle of the queue pair's protection domain", ErrInvalid)
	case wr.Opcode != OpSend && wr.Opcode != OpRDMAWrite:
		return fmt.Errorf("%w: opcode %v cannot be posted to an RD queue pair", ErrInvalid, wr.Opcode)
	case !q.mayPost():
		return ErrQueueFull
	}
	return nil
}

// mayPost takes a place for one more request, if there is one once the noted
// acknowledgements are applied.
func (q *QP) mayPost() bool {
	if len(q.sq.free) == 0 && len(q.acks) > 0 {
		q.chores(q.ctx.cfg.Engine.Now())
	}
	return len(q.sq.free) > 0 && q.sendCQ.reserve()
}

// fill copies a request into its entry and resolves its memory.
func (q *QP) fill(w *wqe, wr *SendWR) error {
	w.wrid, w.op, w.flags = wr.WRID, wr.Opcode, wr.Flags
	w.sent, w.rkey, w.raddr = 0, wr.RKey, wr.RemoteAddr
	if wr.Flags&Inline != 0 {
		if len(wr.InlineData) > MaxInline {
			return fmt.Errorf("%w: %d bytes inline; at most %d", ErrInvalid, len(wr.InlineData), MaxInline)
		}
		w.total = uint32(copy(w.data[:], wr.InlineData))
		w.bufN, w.inside = 0, false
		return nil
	}
	total := uint64(0)
	w.bufN = wr.NumSGE
	if wr.NumSGE > MaxSGE {
		return fmt.Errorf("%w: %d scatter/gather elements; at most %d", ErrInvalid, wr.NumSGE, MaxSGE)
	}
	for i := range int(wr.NumSGE) {
		b, err := q.resolve(&wr.SGL[i], 0)
		if err != nil {
			return err
		}
		w.bufs[i] = b
		total += uint64(len(b))
	}
	if total > maxMsg {
		return fmt.Errorf("%w: message of %d bytes; at most %d", ErrInvalid, total, maxMsg)
	}
	w.total = uint32(total)
	w.inside = false
	if total >= llp.DirectMin && w.bufN == 1 {
		mr := q.ctx.mrs.lookup(wr.SGL[0].LKey)
		w.inside, w.addr = mr.inside, mr.arena+mem.Addr(wr.SGL[0].Addr-mr.addr)
	}
	return nil
}

// resolve returns the memory that an element names.
func (q *QP) resolve(s *SGE, need Access) ([]byte, error) {
	mr := q.ctx.mrs.lookup(s.LKey)
	if mr == nil || mr.pd != q.pd {
		return nil, fmt.Errorf("%w: local key %#x names no region of this protection domain", ErrInvalid, s.LKey)
	}
	if mr.access&need != need {
		return nil, fmt.Errorf("%w: the region with local key %#x was registered without LocalWrite", ErrInvalid, s.LKey)
	}
	b, ok := mr.slice(s.Addr, s.Length)
	if !ok {
		return nil, fmt.Errorf("%w: %d bytes at %#x are not inside of the region [%#x, %#x)", ErrInvalid, s.Length, s.Addr, mr.addr, mr.addr+uint64(len(mr.buf)))
	}
	return b, nil
}

// enqueue appends entry i to the peer's requests and sends what can be sent.
func (q *QP) enqueue(ah *AH, i int32) {
	c := &ah.conn
	w := &q.sq.wqes[i]
	w.next = -1
	if w.op == OpSend {
		c.msnOut++
		w.msn = c.msnOut
	}
	if c.head < 0 {
		c.head = i
	} else {
		q.sq.wqes[c.tail].next = i
	}
	c.tail = i
	if c.cur < 0 {
		c.cur = i
	}
	if c.dead {
		q.fail(ah, WRFlushErr)
		return
	}
	q.makeReady(ah)
	if !q.kicked {
		q.kick(ah)
	}
}

// kick sends to one peer without waiting for the next step. It does not read
// the clock, which would be a tenth of our own time for a small message: what
// it sends is dated by the step that follows.
func (q *QP) kick(ah *AH) {
	q.kicked = true
	snd := &ah.peer.Snd
	if ah.conn.acked && !snd.CanPush(0) {
		q.chores(q.ctx.cfg.Engine.Now())
	}
	if ah.conn.cur < 0 || !snd.CanPush(0) || !q.rd.TxRoom() {
		return
	}
	q.undated, q.undatedFrom = ah, snd.Next()
	q.sendNew(q.ctx.cfg.Engine.Now(), ah)
	q.rd.Flush()
}

// date gives what kick sent its sending time.
func (q *QP) date(now mono.Time) {
	if q.undated != nil {
		q.undated.peer.Snd.Date(now, q.undatedFrom)
		q.wake(q.undated.peer.Snd.Deadline())
		q.undated = nil
	}
}

// makeReady puts a peer in the line of those that may send, if it can.
func (q *QP) makeReady(ah *AH) {
	c := &ah.conn
	if c.queued || c.dead || !(c.cur >= 0 && ah.peer.Snd.CanPush(0) || ah.peer.Snd.HasLost()) {
		return
	}
	c.queued = true
	q.ready = append(q.ready, ah)
}

// pumpQuota is how many datagrams one peer may send before the next has its
// turn: what one system call takes. Fewer cost bandwidth.
const pumpQuota = 32

// pump sends for the peers in line until the carrier is full, and returns how
// many datagrams were built.
func (q *QP) pump(now mono.Time) (sent int) {
	for n := len(q.ready); n > 0 && q.rd.TxRoom(); n-- {
		ah := q.ready[0]
		copy(q.ready, q.ready[1:])
		q.ready = q.ready[:len(q.ready)-1]
		ah.conn.queued = false
		if ah.conn.dead {
			continue
		}
		sent += q.pumpPeer(now, ah)
		q.wake(ah.peer.Snd.Deadline())
		q.makeReady(ah)
	}
	return sent
}

func (q *QP) pumpPeer(now mono.Time, ah *AH) (sent int) {
	snd := &ah.peer.Snd
	for ; sent < pumpQuota && q.rd.TxRoom(); sent++ {
		if lsn, ok := snd.NextLost(); ok {
			if !q.resend(now, ah, lsn) {
				break
			}
			continue
		}
		if ah.conn.cur < 0 || !snd.CanPush(0) || !q.sendNew(now, ah) {
			break
		}
	}
	return sent
}

// sendNew builds one datagram of segments that were not sent before: the next
// one, and those behind it as long as they fit whole.
func (q *QP) sendNew(now mono.Time, ah *AH) bool {
	n, _ := q.nextSegment(ah)
	w := &q.sq.wqes[ah.conn.cur]
	if !q.open(ah, ah.peer.Snd.Next(), w, w.sent, n) {
		return false
	}
	soon := q.cut(now, ah, n)
	for ah.conn.cur >= 0 && ah.peer.Snd.CanPush(0) {
		n, hdr := q.nextSegment(ah)
		if !q.rd.Fits(hdr + n) {
			break
		}
		soon = q.cut(now, ah, n) || soon
	}
	q.rd.Commit(soon)
	return true
}

// nextSegment returns the payload and header length of the peer's next segment.
func (q *QP) nextSegment(ah *AH) (n, hdr int) {
	w := &q.sq.wqes[ah.conn.cur]
	hdr = w.headerLen()
	if w.inside {
		if n := q.rd.Direct(w.addr+mem.Addr(w.sent), int(w.total-w.sent), hdr); n > 0 {
			return n, hdr
		}
	}
	return min(int(w.total-w.sent), q.rd.MaxULPDU()-hdr), hdr
}

// open begins a datagram whose first segment has n bytes of w from off on.
func (q *QP) open(ah *AH, lsn serial.U32, w *wqe, off uint32, n int) bool {
	if q.isDirect(w, off, n) {
		n = 0 // the payload takes no frame
	}
	return q.rd.Begin(ah.peer, lsn, w.headerLen()+n)
}

// isDirect reports whether n bytes of w from off on are sent from where they
// lie. It must be the same each time they are sent, for it decides how many
// there are.
func (q *QP) isDirect(w *wqe, off uint32, n int) bool {
	return w.inside && n >= llp.DirectMin && q.rd.Direct(w.addr+mem.Addr(off), n, w.headerLen()) == n
}

// cut appends the next n bytes of the peer's current request to the open
// datagram. It reports whether the sender waits for the acknowledgement: a
// long message ends here, and nothing else may follow that it could ride on.
func (q *QP) cut(now mono.Time, ah *AH, n int) (soon bool) {
	c := &ah.conn
	i := c.cur
	w := &q.sq.wqes[i]
	off := w.sent
	w.sent += uint32(n)
	last := w.sent == w.total
	ah.peer.Snd.Push(now, uint32(i), off, uint32(n), last)
	q.write(w, off, n, last)
	if last {
		c.cur = w.next
	}
	return last && off > 0 && w.flags&Signaled != 0
}

// resend builds a datagram of one segment that was lost.
func (q *QP) resend(now mono.Time, ah *AH, lsn serial.U32) bool {
	snd := &ah.peer.Snd
	r := snd.Record(lsn)
	w := &q.sq.wqes[r.Token]
	if !q.open(ah, lsn, w, r.Off, int(r.Len)) {
		return false
	}
	q.write(w, r.Off, int(r.Len), r.Last)
	q.rd.Commit(true)
	snd.Resent(now, lsn)
	q.rd.Stats.TxResent++
	return true
}

// write puts one segment of w into the open datagram.
func (q *QP) write(w *wqe, off uint32, n int, last bool) {
	var h ddp.Header
	h.Last = last
	switch w.op {
	case OpRDMAWrite:
		h.Tagged, h.ULP = true, rdmap.Control(rdmap.Write)
		h.STag, h.TO = iwarp.STag(w.rkey), w.raddr+uint64(off)
	case opTerminate:
		h.ULP, h.QN, h.MSN = rdmap.Control(rdmap.Terminate), iwarp.QNTerminate, 1
	default:
		h.ULP, h.QN = rdmap.Control(rdmap.Send), iwarp.QNSend
		h.MSN, h.MO = iwarp.MSN(w.msn), off
	}
	h.Put(q.rd.ULPDU(h.Len()+n, h.Len()))
	if w.flags&Inline != 0 {
		q.rd.Payload(w.data[off : off+uint32(n)])
		return
	}
	if q.isDirect(w, off, n) {
		q.rd.Attach(w.addr+mem.Addr(off), n)
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
		q.rd.Payload(b)
	}
}

// onAck applies an acknowledgement that arrived at now.
func (q *QP) onAck(now mono.Time, ah *AH, ack serial.U32, window uint16) {
	snd := &ah.peer.Snd
	from, ok := snd.OnAck(now, ack, window, 0)
	if !ok {
		return
	}
	for lsn := from; lsn != ack; lsn++ {
		if r := snd.Record(lsn); r.Last {
			q.complete(ah, Success)
		}
	}
}

// afterAck looks what an acknowledgement has shown to be lost, and lets the
// peer's requests go on.
func (q *QP) afterAck(now mono.Time, ah *AH) {
	ah.peer.Snd.Detect(now)
	q.wake(ah.peer.Snd.Deadline())
	q.makeReady(ah)
}

// complete ends the oldest request to a peer.
func (q *QP) complete(ah *AH, status Status) {
	c := &ah.conn
	i := c.head
	w := &q.sq.wqes[i]
	c.head = w.next
	switch w.op {
	case OpSend:
		q.Stats.Sends++
	case OpRDMAWrite:
		q.Stats.Writes++
	}
	if (w.flags&Signaled != 0 || status != Success) && w.op != opTerminate {
		*q.sendCQ.next() = WC{WRID: w.wrid, Status: status, Opcode: w.op, ByteLen: w.total, QPNum: q.num, Src: ah}
	} else {
		q.sendCQ.release()
	}
	clear(w.bufs[:w.bufN])
	q.sq.free = append(q.sq.free, i)
}

// fail ends everything with a peer: the oldest request with the cause, the
// others flushed, and receives that were being filled too. Nothing goes to it
// any more; other peers do not notice.
func (q *QP) fail(ah *AH, cause Status) {
	c := &ah.conn
	if !c.dead {
		c.dead = true
		ah.peer.Lost = true
		q.dropInbound(c)
	}
	for c.head >= 0 {
		q.complete(ah, cause)
		cause = WRFlushErr
	}
	c.cur, c.tail = -1, -1
}

// terminate tells a peer why it was refused (RFC 5040, section 4.8).
func (q *QP) terminate(ah *AH, cause iwarp.Cause) {
	q.Stats.Refused++
	if ah.conn.dead || len(q.sq.free) == 0 || !q.sendCQ.reserve() {
		return // counted; the peer will not hear of it
	}
	i := q.sq.free[len(q.sq.free)-1]
	q.sq.free = q.sq.free[:len(q.sq.free)-1]
	w := &q.sq.wqes[i]
	w.wrid, w.op, w.flags, w.bufN, w.sent = 0, opTerminate, Inline, 0, 0
	t := rdmap.Term{Cause: cause}
	w.total = uint32(t.Put(w.data[:]))
	q.enqueue(ah, i)
}

package verbs

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// firstWQEs is how many entries a send queue of RC begins with: thousands of
// connections are mostly idle ones.
const firstWQEs = 2

// at returns the request with a sequence number.
func (r *rc) at(seq uint32) *wqe { return &r.wqes[seq&uint32(len(r.wqes)-1)] }

// grow doubles the ring of requests.
func (r *rc) grow() {
	wqes := make([]wqe, max(2*len(r.wqes), firstWQEs))
	for seq := r.head; seq != r.tail; seq++ {
		wqes[seq&uint32(len(wqes)-1)] = *r.at(seq)
	}
	r.wqes = wqes
}

// post posts a request that is legal.
func (r *rc) post(wr *SendWR) error {
	q := r.q
	if r.tail-r.head == r.limit || !q.sendCQ.reserve() {
		return ErrQueueFull
	}
	if int(r.tail-r.head) == len(r.wqes) {
		r.grow()
	}
	w := r.at(r.tail)
	if wr.Opcode >= OpLocalInv {
		r.postLocal(w, wr)
		return nil
	}
	if err := r.fill(w, wr); err != nil {
		q.sendCQ.release()
		return err
	}
	r.tail++
	if q.state == StateErr {
		r.flush()
		return nil
	}
	if s := &q.ctx.streams; !s.kicked && !r.full {
		s.kicked = true
		r.pump(q.ctx.cfg.Engine.Now())
		q.ctx.cfg.Streams.Flush()
		return nil
	}
	r.enqueue()
	return nil
}

// fill copies a request into its entry.
func (r *rc) fill(w *wqe, wr *SendWR) error {
	if err := r.q.fill(w, wr, int32(r.tail&(1<<20-1))); err != nil {
		return err
	}
	w.status = Success
	switch {
	case w.isRead():
		if r.ord == 0 {
			return fmt.Errorf("%w: this connection was made without Reads and atomics of this end: see ConnParam.InitiatorDepth", ErrInvalid)
		}
		r.sent[iwarp.QNReadReq]++
		w.msn = r.sent[iwarp.QNReadReq]
		if w.op == OpRDMARead && w.bufN == 1 { // as other RNICs do: the sink is named by what it is
			w.name, w.raddr = wr.SGL[0].LKey, wr.SGL[0].Addr
			req := rdmap.ReadReq{SinkSTag: iwarp.STag(w.name), SinkTO: w.raddr, Size: w.size, SrcSTag: iwarp.STag(wr.RKey), SrcTO: wr.RemoteAddr}
			req.Put(w.data[:])
		} else {
			w.raddr = 0
		}
	case w.op != OpRDMAWrite:
		r.sent[iwarp.QNSend]++
		w.msn = r.sent[iwarp.QNSend]
	}
	return nil
}

// enqueue puts the connection in the line of those that send in this step.
func (r *rc) enqueue() {
	if !r.queued && !r.full && r.stream != nil {
		r.queued = true
		r.q.ctx.streams.sending = append(r.q.ctx.streams.sending, r)
	}
}

// choose decides what is cut next at c: the message under way, an answer or a
// request; the two take turns. Messages are not mixed: two tagged ones may not
// be, as far as siw is concerned. false: there is nothing.
func (r *rc) choose(c *cursor) bool {
	if c.mid {
		return true
	}
	if r.waits {
		return false
	}
	ready := c.req != r.tail && !r.held(c) && !r.at(c.req).isLocal()
	c.answering = c.ans != r.ansTail && !(ready && c.turn)
	return ready || c.answering
}

// held reports whether the next request must wait: for earlier Reads, or
// because the queue pair is being drained.
func (r *rc) held(c *cursor) bool {
	w := r.at(c.req)
	return !r.q.mayBegin() || w.flags&Fence != 0 && c.reads > 0 || w.isRead() && c.reads >= r.ord
}

// pumpRounds is how many batches a connection may send before the next one has
// its turn.
const pumpRounds = 4

// pump sends what can be sent, and returns how many FPDUs that were.
func (r *rc) pump(now mono.Time) (sent int) {
	if r.full || r.stream == nil || r.phase == rcClosing && len(r.rest) == 0 {
		return 0
	}
	b := &r.q.ctx.streams.out
	r.mulpdu = mpa.MULPDU(r.stream.MSS(), r.tx.Markers)
	for range pumpRounds {
		sent += r.pass()
		b.reset()
		cur, tx := r.cur, r.tx
		b.refer(r.rest)
		owed := len(r.rest)
		if owed > 0 {
			b.mark(&cur, &tx)
		}
		revoked := false
		for r.phase == rcOpen && !revoked && !(r.probe && b.total > 0) && b.room(r.mulpdu, tx.Markers) && r.choose(&cur) {
			if revoked = !r.cut(b, &cur, &tx); !revoked {
				b.mark(&cur, &tx)
			}
		}
		sent += len(b.marks)
		n := r.stream.Send(b.bufs)
		r.full = !r.taken(b, n, owed)
		r.probe = r.full // what makes it look again may be something to receive
		if r.settle(); r.full {
			return sent
		}
		switch {
		case revoked:
			r.refuseRevoked()
			return sent + 1
		case b.total == 0:
			return sent
		}
		if r.spoke(now); r.stream == nil {
			return sent
		}
	}
	r.enqueue()
	return sent
}

// spoke is called when everything that was at hand is out.
func (r *rc) spoke(now mono.Time) {
	switch {
	case r.phase == rcClosing:
		r.closeWrite()
	case r.nudge && !r.heard && r.timer == mono.Never:
		r.arm(now.Add(nudgeAfter))
	}
}

// taken notes that the stream has taken n bytes of the batch, owed of which are
// the rest of an earlier one. An FPDU that it has taken in part is kept, for
// its memory may change. It reports whether that was all.
func (r *rc) taken(b *batch, n, owed int) bool {
	s := &r.q.ctx.streams
	start := 0
	for i := range b.marks {
		m := &b.marks[i]
		switch {
		case m.end <= n:
			r.cur, r.tx = m.cur, m.tx
			if m.end == owed && owed > 0 {
				s.keep(r.rest)
				r.rest = nil
			}
			start = m.end
			continue
		case start >= n: // nothing of it
		case i == 0 && owed > 0:
			r.rest = r.rest[:copy(r.rest, r.rest[n:])]
		default:
			r.rest = b.appendFrom(s.buffer(), n, m.end)
			r.cur, r.tx = m.cur, m.tx
		}
		return false
	}
	return true
}

// cut appends the next FPDU of what choose chose. false: it must not be sent any
// more.
func (r *rc) cut(b *batch, c *cursor, tx *mpa.Tx) bool {
	var h ddp.Header
	var pieces [MaxSGE][]byte
	var k, n int
	var end uint32
	if c.answering {
		a := &r.answers[c.ans&uint32(len(r.answers)-1)]
		if !r.stillGranted(a) {
			return false
		}
		n, end = a.segment(&h, c.off, r.mulpdu), a.size
		pieces[0], k = a.src[c.off:c.off+uint32(n)], 1
	} else {
		w := r.at(c.req)
		n, end = w.segment(&h, c.off, r.mulpdu), w.end
		if c.off == w.total && n > 0 {
			rdmap.Imm(w.imm).Put(r.imm[:])
			pieces[0], k = r.imm[:], 1
		} else {
			k = w.pieces(&pieces, c.off, n)
		}
	}
	b.fpdu(tx, &h, pieces[:k], n)
	c.off += uint32(n)
	if c.mid = c.off < end; c.mid {
		return true
	}
	c.off = 0
	if c.turn = c.answering; c.answering {
		c.ans++
		return true
	}
	if r.at(c.req).isRead() {
		c.reads++
	}
	c.req++
	return true
}

// segment fills in the header of w's segment that begins at off, and returns
// the length of its payload.
func (w *wqe) segment(h *ddp.Header, off uint32, mulpdu int) (n int) {
	n = min(int(w.total-off), mulpdu-w.headerLen())
	h.Last = off+uint32(n) == w.total
	switch w.op {
	case OpSend, OpSendWithInv:
		h.ULP, h.QN, h.MSN, h.MO = rdmap.Control(sendOpcode(w)), iwarp.QNSend, iwarp.MSN(w.msn), off
		if w.op == OpSendWithInv {
			h.ULP2 = w.key
		}
	case OpRDMAWriteWithImm:
		if off == w.total {
			h.ULP, h.QN, h.MSN, h.Last = rdmap.Control(w.immOpcode()), iwarp.QNSend, iwarp.MSN(w.msn), true
			return rdmap.ImmLen
		}
		fallthrough
	case OpRDMAWrite:
		h.Tagged, h.ULP, h.STag, h.TO = true, rdmap.Control(rdmap.Write), iwarp.STag(w.key), w.raddr+uint64(off)
	default:
		h.ULP, h.QN, h.MSN = w.control()
	}
	return n
}

// immOpcode returns what RDMAP calls the Immediate Data behind w.
func (w *wqe) immOpcode() rdmap.Opcode {
	if w.flags&Solicited != 0 {
		return rdmap.ImmediateSE
	}
	return rdmap.Immediate
}

// pieces lists where n bytes of w from off on lie, and returns in how many
// pieces.
func (w *wqe) pieces(to *[MaxSGE][]byte, off uint32, n int) (k int) {
	if w.built {
		to[0] = w.data[off : off+uint32(n)]
		return 1
	}
	skip := int(off)
	for i := 0; n > 0; i++ {
		p := w.bufs[i]
		if skip >= len(p) {
			skip -= len(p)
			continue
		}
		p = p[skip:min(len(p), skip+n)]
		skip = 0
		n -= len(p)
		to[k] = p
		k++
	}
	return k
}

// settle completes the oldest requests that are done: those that the stream
// has taken, and Reads and atomics that were answered.
func (r *rc) settle() {
	for r.head != r.cur.req {
		w := r.at(r.head)
		if w.isRead() && !w.answered {
			break
		}
		r.complete(w.status)
	}
}

// complete ends the oldest request.
func (r *rc) complete(status Status) {
	q := r.q
	w := r.at(r.head)
	q.count(w.op, status)
	if w.flags&Signaled != 0 || status != Success {
		*q.sendCQ.next() = WC{WRID: w.wrid, Status: status, Opcode: w.op, ByteLen: w.size, QPNum: q.num}
	} else {
		q.sendCQ.release()
	}
	clear(w.bufs[:w.bufN])
	if r.asked == r.head { // else it would name a request that has taken the place of this one
		r.asked++
	}
	r.head++
	q.checkDrained()
}

// failRequests ends all requests: culprit with the cause, the others flushed.
func (r *rc) failRequests(culprit uint32, cause Status) {
	for r.head != r.tail {
		status := WRFlushErr
		if culprit == r.head {
			status = cause
		}
		r.complete(status)
	}
	r.cur.req, r.asked = r.tail, r.tail
}

// drained reports whether no request is unfinished that has begun.
func (r *rc) drained() bool {
	return r.head == r.cur.req && !(r.cur.mid && !r.cur.answering)
}

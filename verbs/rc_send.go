package verbs

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// post posts a request that is legal.
func (r *rc) post(wr *SendWR) error {
	q := r.q
	if r.requests.full() || !q.sendCQ.reserve() {
		return ErrQueueFull
	}
	w := r.requests.room()
	if wr.Opcode >= OpLocalInv {
		r.postLocal(w, wr)
		return nil
	}
	if err := r.fill(w, wr); err != nil {
		q.sendCQ.release()
		return err
	}
	r.requests.tail++
	if q.state == StateErr {
		r.flush()
		return nil
	}
	if s := &q.ctx.streams; !s.transmitted && !r.full && wr.Flags&More == 0 {
		s.transmitted = true
		r.transmit(q.ctx.cfg.Engine.Now())
		q.ctx.cfg.Streams.Flush()
		return nil
	}
	r.enqueue()
	return nil
}

// fill copies a request into its entry.
func (r *rc) fill(w *wqe, wr *SendWR) error {
	if err := r.q.fill(w, wr, int32(r.requests.tail&(1<<20-1))); err != nil {
		return err
	}
	w.status = Success
	if w.isRead() && r.ord == 0 {
		return fmt.Errorf("%w: this connection was made without Reads and atomics of this end: see ConnParam.InitiatorDepth", ErrInvalid)
	}
	w.number(&r.sent)
	if w.op == OpRDMARead && w.bufN == 1 { // as other RNICs do: the sink is named by what it is
		sink := &wr.SGL[0]
		req := rdmap.ReadReq{SinkSTag: iwarp.STag(sink.LKey), SinkTO: sink.Addr, Size: w.size, SrcSTag: iwarp.STag(wr.RKey), SrcTO: wr.RemoteAddr}
		req.Put(w.data[:])
	}
	return nil
}

// enqueue puts the connection in the line of those that send in this step.
func (r *rc) enqueue() {
	if !r.queued && !r.full && r.stream != nil {
		r.queued = true
		r.q.ctx.streams.hurry()
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
	ready := c.req != r.requests.tail && !r.held(c) && !r.requests.at(c.req).isLocal()
	c.answering = c.ans != r.answers.tail && !(ready && c.answerLast)
	return ready || c.answering
}

// held reports whether the next request must wait: for earlier Reads, or
// because the queue pair is being drained.
func (r *rc) held(c *cursor) bool {
	w := r.requests.at(c.req)
	return !r.q.mayBegin() || w.flags&Fence != 0 && c.reads > 0 || w.isRead() && c.reads >= r.ord
}

// transmitRounds is how many batches a connection may send before the next one has
// its turn.
const transmitRounds = 4

// transmit sends what can be sent, and returns how many FPDUs that were.
func (r *rc) transmit(now mono.Time) (sent int) {
	if r.full || r.stream == nil || r.phase == rcClosing && len(r.rest) == 0 {
		return 0
	}
	b := &r.q.ctx.streams.out
	r.mulpdu = mpa.MULPDU(max(r.stream.MSS(), r.segmentMin), r.tx.Markers)
	for range transmitRounds {
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
	var w *wqe
	if !c.answering {
		w = r.requests.at(c.req)
	} else if w = r.answers.at(c.ans); !r.q.granted(w) {
		return false
	}
	var h ddp.Header
	var payload [MaxSGE][]byte
	n, _ := w.segment(c.off, r.mulpdu)
	w.header(&h, c.off, n)
	b.fpdu(tx, &h, payload[:w.payload(&payload, c.off, n)], n)
	c.off += uint32(n)
	if c.mid = c.off < w.end(); c.mid {
		return true
	}
	c.off = 0
	if c.answerLast = c.answering; c.answering {
		c.ans++
		return true
	}
	if w.isRead() {
		c.reads++
	}
	c.req++
	return true
}

// settle completes the oldest requests that are done: those that the stream
// has taken, and Reads and atomics that were answered.
func (r *rc) settle() {
	for r.requests.head != r.cur.req {
		w := r.requests.at(r.requests.head)
		if w.isRead() && !w.answered {
			break
		}
		r.complete(w.status)
	}
	for r.answers.head != r.cur.ans {
		r.answers.drop()
	}
}

// complete ends the oldest request.
func (r *rc) complete(status Status) {
	r.q.completeSend(r.requests.at(r.requests.head), status, nil)
	if r.asked == r.requests.head { // else it would name a request that has taken the place of this one
		r.asked++
	}
	r.requests.drop()
	r.q.checkDrained()
}

// failRequests ends all requests: culprit with the cause, the others flushed.
func (r *rc) failRequests(culprit uint32, cause Status) {
	for r.requests.len() > 0 {
		status := WRFlushErr
		if culprit == r.requests.head {
			status = cause
		}
		r.complete(status)
	}
	r.cur.req, r.asked = r.requests.tail, r.requests.tail
}

// drained reports whether no request is unfinished that has begun.
func (r *rc) drained() bool {
	return r.requests.head == r.cur.req && !(r.cur.mid && !r.cur.answering)
}

package verbs

import (
	"slices"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/ddp"
)

// How a queue pair waits that was made with QPInit.RecvWait: the ULPDU that
// finds no receive is put aside, what was read behind it stays in rc.part, and
// nothing more is read. A receive posted to the queue pair makes the next
// step go on; at a shared queue the waiting connections form a line.

// recvTurn is how many receives of a shared queue a connection may take in its
// turn while others wait.
const recvTurn = 16

// waitingRead is how many bytes are read at a time when no receive is posted:
// what is read behind a message that has to wait takes memory until it goes on.
const waitingRead = inLen / 4

// recvLine are the connections that wait for receives of a shared queue.
type recvLine struct {
	waiting []*rc // FIFO
	serving *rc   // whose turn it is
	left    int   // receives that it may take
}

// takeRecv is QP.takeRecv for a connection that may have to wait: at a shared
// queue those come first that have waited.
func (r *rcReceiver) takeRecv() (*rqe, bool) {
	q := r.q
	if q.srq != nil && q.recvWait {
		if l := &q.srq.line; len(l.waiting) > 0 {
			if l.serving != r.rc || l.left == 0 {
				return nil, false
			}
			l.left--
		}
	}
	return q.takeRecv()
}

// noRecv deals with a message for which there is no receive, u being its first
// ULPDU: it waits, or the connection ends (RFC 5041, section 7.2). false: that.
func (r *rcReceiver) noRecv(u []byte) bool {
	q := r.q
	if !q.recvWait {
		return r.refuse(ddp.NoBuffer, u, len(u))
	}
	q.Stats.RecvStalls++
	s := &q.ctx.streams
	r.aside = append(s.buffer(), u...)
	if q.srq != nil {
		if !slices.Contains(s.lines, q.srq) {
			s.lines = append(s.lines, q.srq)
		}
		q.srq.line.waiting = append(q.srq.line.waiting, r.rc)
	}
	return true
}

// appetite returns how many bytes of FPDUs may be held at once.
func (r *rcReceiver) appetite() int {
	if r.q.recvWait && r.q.recvsLeft() == 0 {
		return min(max(waitingRead, len(r.part)+waitingRead/2), inLen)
	}
	if r.predicted.usual {
		return predictFirst
	}
	return inLen
}

// watch looks, without reading, whether the stream still works while a message
// waits, and goes on when the queue pair's own queue has a receive for it. It
// returns how much work that was.
func (r *rcReceiver) watch() int {
	if r.q.srq == nil && r.q.rq.len() > 0 {
		return r.goOn()
	}
	if r.stream.State() == fabric.StreamFailed {
		r.ended(false, 0)
		return 1
	}
	return 0
}

// fed is called when a receive was posted to a queue that had few.
func (r *rcReceiver) fed() {
	if r.aside != nil {
		r.lookAgain()
	}
}

// goOn places what was put aside, and what has come behind it.
func (r *rcReceiver) goOn() int {
	u := r.aside
	r.aside = nil
	r.place(u)
	r.q.ctx.streams.keep(u)
	if r.aside != nil || r.stream == nil {
		return 1
	}
	r.lookAgain()
	return 1 + r.receive()
}

// giveUpWaiting forgets the message that waits: nothing is taken in any more.
func (r *rcReceiver) giveUpWaiting() {
	if r.aside == nil {
		return
	}
	s := &r.q.ctx.streams
	s.keep(r.aside)
	r.aside = nil
	if q := r.q; q.srq != nil {
		l := &q.srq.line
		l.waiting = slices.DeleteFunc(l.waiting, func(x *rc) bool { return x == r.rc })
		if len(l.waiting) == 0 {
			s.leaveLine(q.srq)
		}
	}
	r.lookAgain() // what comes is read and dropped, up to the end
}

// leaveLine takes a shared queue off the list of those where connections wait.
func (s *streams) leaveLine(srq *SRQ) {
	s.lines = slices.DeleteFunc(s.lines, func(x *SRQ) bool { return x == srq })
}

// serveLines lets connections go on that wait at shared queues with receives, and
// returns how much work that was.
func (s *streams) serveLines() (work int) {
	for i := len(s.lines) - 1; i >= 0; i-- { // the one that takes the place of a removed one comes from behind
		if i < len(s.lines) {
			work += s.serve(s.lines[i])
		}
	}
	return work
}

// serve gives each connection that waits at a shared queue one turn, as far as
// the receives suffice.
func (s *streams) serve(srq *SRQ) (work int) {
	l := &srq.line
	for n := len(l.waiting); n > 0 && len(l.waiting) > 0 && srq.rq.len() > 0; n-- {
		r := l.waiting[0]
		l.waiting = append(l.waiting[:0], l.waiting[1:]...)
		if r.q.recvCQ.room() == 0 {
			l.waiting = append(l.waiting, r)
			continue
		}
		l.serving, l.left = r, recvTurn
		work += r.in.goOn()
		l.serving = nil
	}
	if len(l.waiting) == 0 {
		s.leaveLine(srq)
	}
	return work
}

// canServe reports whether a connection waits for what is there.
func (s *streams) canServe() bool {
	for _, srq := range s.lines {
		if srq.rq.len() == 0 {
			continue
		}
		for _, r := range srq.line.waiting {
			if r.q.recvCQ.room() > 0 {
				return true
			}
		}
	}
	return false
}

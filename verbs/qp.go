package verbs

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
)

const maxMsg = 1 << 31

// QP is a queue pair. On reliable datagrams one of them talks to all peers: a
// work request names its peer by an address handle, requests to one peer are
// done in order, and requests to different peers do not wait for one another.
//
// A QP is a progress.Source: it moves when the engine steps.
type QP struct {
	Stats QPStats

	ctx    *Context
	pd     *PD
	rd     *llp.RD
	num    uint32
	sendCQ *CQ
	recvCQ *CQ
	sq     sendQueue
	rq     recvQueue
	srq    *SRQ // instead of rq

	acks     []*AH // peers whose acknowledgement is noted, not applied
	ready    []*AH // peers with something to send; FIFO
	in       inbound
	deadline mono.Time // never later than the earliest deadline of any peer
	kicked   bool      // a datagram went out since the last step: the rest waits for the next
	moved    bool      // frames came in since the carrier was flushed
	idle     int       // steps since then

	undated     *AH // peer that kick sent to since the last step
	undatedFrom serial.U32
	closed      bool

	lifecycle
}

// QPStats counts what a queue pair did and refused.
type QPStats struct {
	Sends, Writes, Recvs uint64 // messages completed
	RecvStalls           uint64 // times a message waited because no receive was posted
	RecvDrops            uint64 // ULPDUs dropped because none was posted for too long
	Refused              uint64 // ULPDUs that named memory or operations that were not granted
}

// CreateQP makes a queue pair. A context has one, of type RD.
func (p *PD) CreateQP(init QPInit) (*QP, error) {
	c := p.ctx
	switch {
	case c.closed:
		return nil, ErrClosed
	case init.Type != RD:
		return nil, fmt.Errorf("%w: queue pairs of type %v are not offered by %s; use RD", ErrInvalid, init.Type, c.Attr().Carrier)
	case init.SendCQ == nil || init.RecvCQ == nil:
		return nil, fmt.Errorf("%w: a queue pair needs a send and a receive completion queue", ErrInvalid)
	case init.SendCQ.ctx != c || init.RecvCQ.ctx != c:
		return nil, fmt.Errorf("%w: a completion queue is of another context, or destroyed", ErrInvalid)
	case init.SRQ != nil && init.SRQ.pd != p:
		return nil, fmt.Errorf("%w: the shared receive queue is of another protection domain, or destroyed", ErrInvalid)
	case c.qp != nil:
		return nil, fmt.Errorf("%w: this context has its reliable datagram queue pair already: one talks to all peers", ErrInvalid)
	case init.Cap.MaxSendWR < 0 || init.Cap.MaxSendWR > maxQueue || init.Cap.MaxRecvWR < 0 || init.Cap.MaxRecvWR > maxQueue:
		return nil, fmt.Errorf("%w: queue sizes %+v", ErrInvalid, init.Cap)
	}
	q := &QP{
		ctx: c, pd: p, rd: c.rd, num: 1, sendCQ: init.SendCQ, recvCQ: init.RecvCQ,
		deadline: mono.Never,
	}
	q.sq.init(orDefault(init.Cap.MaxSendWR, 512))
	if q.srq = init.SRQ; q.srq != nil {
		q.srq.users++
	} else {
		q.rq.init(orDefault(init.Cap.MaxRecvWR, 512))
	}
	if !init.Reset {
		q.state = StateRTS
	}
	q.sendCQ.users++
	q.recvCQ.users++
	c.qp = q
	c.cfg.Engine.Add(q)
	return q, nil
}

func orDefault(n, d int) int {
	if n == 0 {
		return d
	}
	return n
}

// Num returns the number of the queue pair.
func (q *QP) Num() uint32 { return q.num }

// Destroy flushes every outstanding request with WRFlushErr and takes the
// queue pair out of the engine.
func (q *QP) Destroy() {
	if q.closed {
		return
	}
	q.flushAll()
	q.closed = true
	q.sendCQ.users--
	q.recvCQ.users--
	if q.srq != nil {
		q.srq.users--
	}
	q.ctx.cfg.Engine.Remove(q)
	q.ctx.qp = nil
}

// Poll is the engine's call: it takes in what has arrived, fires timers, and
// sends what may be sent. The way of a message that arrives comes first; what
// it leaves to do is done while waiting for the next. One batch of datagrams,
// as many as progress.Budget, is taken in at a time.
func (q *QP) Poll(now mono.Time, _ int) int {
	if q.undated != nil || len(q.acks) > 0 {
		q.chores(now)
	}
	work := q.receive(now)
	sent := 0
	if len(q.ready) > 0 || now >= q.deadline {
		sent = q.transmit(now)
	}
	q.flush(work, sent)
	q.kicked = false
	return work + sent
}

// chores does what the last step left: it dates what was sent since, and
// applies the acknowledgements that rode on data.
func (q *QP) chores(now mono.Time) {
	q.date(now)
	for _, ah := range q.acks {
		c := &ah.conn
		c.acked = false
		if !c.dead {
			q.onAck(c.ackAt, ah, c.ack, c.window)
			q.afterAck(now, ah)
		}
	}
	q.acks = q.acks[:0]
}

// transmit fires timers, sends what waits, and acknowledges what found no data
// to ride on. It returns how many datagrams that took.
func (q *QP) transmit(now mono.Time) (sent int) {
	if now >= q.deadline {
		q.timers(now)
	}
	sent = q.pump(now)
	if now >= q.deadline {
		sent += q.sendAcks(now)
	}
	return sent
}

// flushEvery is after how many idle steps the carrier is flushed though there
// is no reason: something may be stuck in it.
const flushEvery = 16

// flush flushes the carrier at once when something was sent. Taking sent
// frames back and making room for more is not urgent: it waits for an idle
// step, or the second busy one in a row.
func (q *QP) flush(work, sent int) {
	q.idle++
	if sent > 0 || q.moved || q.idle >= flushEvery {
		q.rd.Flush()
		q.idle, q.moved = 0, false
		return
	}
	q.moved = work > 0
}

// Deadline is when Poll must be called though nothing has arrived.
func (q *QP) Deadline() mono.Time {
	if len(q.ready) > 0 {
		return 0 // waits for the carrier to take more
	}
	if q.in.stalled() {
		return min(q.deadline, q.in.since.Add(recvPatience))
	}
	return q.deadline
}

// wake makes sure that Poll looks at a peer again no later than at.
func (q *QP) wake(at mono.Time) { q.deadline = min(q.deadline, at) }

// timers fires what is due at now, of all peers.
func (q *QP) timers(now mono.Time) {
	for _, ah := range q.ctx.ahs {
		if ah == nil || ah.conn.dead {
			continue
		}
		if ah.peer.Lost || ah.peer.Snd.OnTimer(now) {
			q.fail(ah, RetryExcErr)
			continue
		}
		q.makeReady(ah)
	}
	q.rearm()
}

// rearm computes the earliest deadline anew. Acknowledgements that are due now
// stay due: sendAcks comes after them.
func (q *QP) rearm() {
	q.deadline = mono.Never
	for _, ah := range q.ctx.ahs {
		if ah != nil && !ah.conn.dead {
			q.wake(min(ah.peer.Snd.Deadline(), ah.peer.Rcv.Deadline()))
		}
	}
}

// sendAcks sends the acknowledgements that are due and found no data to ride
// on, and returns how many.
func (q *QP) sendAcks(now mono.Time) (sent int) {
	for _, ah := range q.ctx.ahs {
		if ah == nil || ah.conn.dead || ah.peer.Rcv.Deadline() > now {
			continue
		}
		if !q.rd.Ack(ah.peer) {
			break // no room: the next step tries again
		}
		sent++
	}
	q.rearm()
	return sent
}

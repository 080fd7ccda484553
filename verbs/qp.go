package verbs

import (
	"cmp"
	"fmt"
	"slices"
)

// Numbers of queue pairs. Two ends need not tell each other theirs when they
// have one of a kind.
const (
	rdNum  = 1
	udBase = 2
	rcBase = udBase + maxUD
	// MulticastQPN is the destination of a UD Send to a group: all queue pairs
	// that are attached to it.
	MulticastQPN = 0xffffff
)

// QP is a queue pair. On reliable datagrams one of them talks to all peers: a
// work request names its peer by an address handle, requests to one peer are
// done in order, and requests to different peers do not wait for one another.
//
// A QP moves when the engine steps.
type QP struct {
	Stats QPStats

	lifecycle

	ctx    *Context
	pd     *PD
	typ    QPType
	num    uint32
	sendCQ *CQ
	recvCQ *CQ
	rq     recvQueue // unused with srq
	srq    *SRQ

	rd       *rdQP // of these three
	ud       *udQP // there is the one
	rc       *rc   // of its type
	records  recordTable
	names    uint32 // of answers that were asked for
	closed   bool
	recvWait bool // QPInit.RecvWait
	lasting  bool // QPInit.Lasting
}

// QPStats counts what a queue pair did and refused.
type QPStats struct {
	Sends, Writes, Reads, Atomics, Records uint64 // requests completed with success
	Recvs                                  uint64 // messages received
	RecvBytes                              uint64
	RemoteReads, RemoteAtomics             uint64 // of peers, answered here
	RemoteRecords                          uint64 // Write-Records of peers that ended, whole or not
	RecvStalls                             uint64 // times a message waited because no receive was posted
	RecvDrops                              uint64 // messages dropped because none was posted
	RecordDrops                            uint64 // chunks of Write-Records that were late, or had no room
	Refused                                uint64 // ULPDUs that named memory or operations that were not granted
	Malformed                              uint64 // ULPDUs that make no sense
	Flushed                                uint64 // work requests that ended unfinished
}

// CreateQP makes a queue pair (ibv_create_qp(3)). A context has one of type
// RD, which talks to all peers, and any number of types UD and RC. One of type
// RC begins in state Init, and gets to RTS when a CMID connects it. Its errors wrap
// ErrClosed or ErrInvalid.
func (p *PD) CreateQP(init QPInit) (*QP, error) {
	c := p.ctx
	switch {
	case c.closed:
		return nil, ErrClosed
	case init.Type < RD || init.Type > RC || init.Type == RC && c.cfg.Streams == nil || init.Type != RC && c.ep == nil:
		return nil, fmt.Errorf("%w: queue pairs of type %v are not offered by %s; RD and UD need a carrier of datagrams, RC one of streams", ErrInvalid, init.Type, c.Attr().Carrier)
	case init.SendCQ == nil || init.RecvCQ == nil:
		return nil, fmt.Errorf("%w: a queue pair needs a send and a receive completion queue", ErrInvalid)
	case init.SendCQ.ctx != c || init.RecvCQ.ctx != c:
		return nil, fmt.Errorf("%w: a completion queue is of another context, or destroyed", ErrInvalid)
	case init.Type == RD && c.rd != nil:
		return nil, fmt.Errorf("%w: this context has its reliable datagram queue pair already: one talks to all peers", ErrInvalid)
	case init.Cap.MaxSendWR < 0 || init.Cap.MaxSendWR > maxQueue || init.Cap.MaxRecvWR < 0 || init.Cap.MaxRecvWR > maxQueue:
		return nil, fmt.Errorf("%w: queue sizes %+v; at most %d", ErrInvalid, init.Cap, maxQueue)
	case init.RecvWait && init.Type != RC:
		return nil, fmt.Errorf("%w: RecvWait is for type RC: on %v a message without a receive waits, or is lost, anyway", ErrInvalid, init.Type)
	case init.RecvHandler != nil && init.Type != RD:
		return nil, fmt.Errorf("%w: RecvHandler is for type RD", ErrInvalid)
	case init.SRQ != nil && (init.SRQ.pd == nil || init.SRQ.pd.ctx != c):
		return nil, fmt.Errorf("%w: the shared receive queue is of another context, or destroyed", ErrInvalid)
	}
	q := &QP{
		ctx: c, pd: p, typ: init.Type, num: rdNum, sendCQ: init.SendCQ, recvCQ: init.RecvCQ,
		recvWait: init.RecvWait, lasting: init.Lasting && init.Type == UD,
	}
	if err := q.records.init(init.Record); err != nil {
		return nil, err
	}
	sends := cmp.Or(init.Cap.MaxSendWR, 512)
	switch init.Type {
	case RC:
		q.rc = &rc{}
		q.rc.init(q, sends)
		q.rc.segmentMin = init.SegmentMin
	case UD:
		q.ud = &udQP{datagramQP: datagramQP{QP: q, ep: c.ep}, line: requestList{none, none}}
		q.ud.sq.init(sends)
	case RD:
		q.rd = &rdQP{datagramQP: datagramQP{QP: q, ep: c.ep}, in: rdReceiver{QP: q, handler: init.RecvHandler}}
		q.rd.sq.init(sends)
	}
	if init.SRQ != nil {
		q.srq = init.SRQ
	} else {
		q.rq.init(cmp.Or(init.Cap.MaxRecvWR, 512))
	}
	if !init.Reset {
		q.state = StateRTS
	}
	if err := c.add(q); err != nil {
		return nil, err
	}
	holdQueues(q, 1)
	return q, nil
}

// add makes a queue pair known, and gives it its number.
func (c *Context) add(q *QP) error {
	switch q.typ {
	case UD:
		i, err := enter(&c.uds, q.ud, maxUD, UD)
		q.num = uint32(udBase + i)
		return err
	case RC:
		if q.state == StateRTS { // which it gets to by being connected
			q.state = StateInit
		}
		i, err := enter(&c.streams.rcs, q, maxRC, RC)
		q.num = uint32(rcBase + i)
		return err
	}
	c.rd = q.rd
	c.ep.SetReliable(true)
	c.associate()
	return nil
}

// enter puts q at the first free place of list, which holds most, and returns the place.
func enter[T comparable](list *[]T, q T, most int, typ QPType) (int, error) {
	var free T
	i := slices.Index(*list, free)
	switch {
	case i >= 0:
		(*list)[i] = q
		return i, nil
	case len(*list) == most:
		return 0, fmt.Errorf("%w: this context has %d %v queue pairs already", ErrInvalid, most, typ)
	}
	*list = append(*list, q)
	return len(*list) - 1, nil
}

// Num returns the number of the queue pair, which UD peers send to.
func (q *QP) Num() uint32 { return q.num }

// Destroy flushes every outstanding request with WRFlushErr and ends the queue
// pair (ibv_destroy_qp(3)).
func (q *QP) Destroy() {
	if q.closed {
		return
	}
	if q.typ == RC {
		unread := q.rc.in.aside != nil // which an orderly end would leave the peer to find out
		q.rc.disconnect(nil)
		q.rc.over(unread || len(q.rc.rest) > 0)
	}
	q.flushAll()
	holdQueues(q, -1)
	q.closed = true
	switch q.typ {
	case UD:
		_ = q.ud.leaveAll() // the carrier closes with the context anyway
		q.ctx.uds[q.num-udBase] = nil
		return
	case RC:
		q.ctx.streams.rcs[q.num-rcBase] = nil
		return
	}
	q.ctx.ep.SetReliable(false)
	q.ctx.in.drop(q.ctx.ep)
	q.ctx.rd = nil
}

// flushAll ends everything outstanding with WRFlushErr: that is what state Err
// means. All associations are over.
func (q *QP) flushAll() {
	switch q.typ {
	case UD:
		q.ud.flush()
	case RC:
		q.rc.flush()
	default:
		for _, ah := range q.ctx.ahs {
			if ah != nil {
				q.rd.fail(ah, WRFlushErr)
			}
		}
	}
	q.records.flush(q)
	q.flushRecv()
}

// reset forgets everything outstanding without a completion.
func (q *QP) reset() {
	sends, recvs := q.sendCQ.mark(), q.recvCQ.mark()
	q.flushAll()
	q.sendCQ.unwind(sends)
	if q.recvCQ != q.sendCQ {
		q.recvCQ.unwind(recvs)
	}
}

// resume lets what was held back in state SQD go on.
func (q *QP) resume() {
	switch q.typ {
	case UD:
		return // the next step looks
	case RC:
		q.rc.enqueue()
		return
	}
	for _, ah := range q.ctx.ahs {
		if ah != nil {
			q.ctx.makeReady(ah)
		}
	}
}

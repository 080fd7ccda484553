package verbs

import (
	"cmp"
	"fmt"
)

// SRQInit describes a shared receive queue. Zero values mean the defaults.
type SRQInit struct {
	MaxWR int // receives; default 512
	// Limit arms EventSRQLimitReached; see SRQ.Modify. Default 0: no event.
	Limit int
	// Latest has the receive that was posted last taken first: its memory is in the cache most likely. Default: the
	// one that was posted first.
	Latest bool
	// Spoils lets bytes of a receive's memory behind the message that it gets be written. Then a long Send over RC that is as long as the
	// one before is received there, without a copy. Default: they stay as they are.
	Spoils bool
}

// SRQ is a shared receive queue (ibv_create_srq(3)): the queue pairs that were
// made with it take their receives from here, whichever needs one. Their
// completions go to the RecvCQ of the queue pair that took them.
type SRQ struct {
	pd    *PD // nil after Destroy
	rq    recvQueue
	limit int // 0: the event is not armed
	users int // queue pairs
	line  recvLine
}

// CreateSRQ makes a shared receive queue. Its errors wrap ErrClosed or ErrInvalid.
func (p *PD) CreateSRQ(init SRQInit) (*SRQ, error) {
	if p.ctx.closed {
		return nil, ErrClosed
	}
	if init.MaxWR < 0 || init.MaxWR > maxQueue {
		return nil, fmt.Errorf("%w: shared receive queue of %d; 1 to %d are possible", ErrInvalid, init.MaxWR, maxQueue)
	}
	s := &SRQ{pd: p}
	s.rq.init(cmp.Or(init.MaxWR, 512))
	s.rq.latest, s.rq.spoils = init.Latest, init.Spoils
	if err := s.checkLimit(init.Limit); err != nil {
		return nil, err
	}
	s.limit = init.Limit
	return s, nil
}

func (s *SRQ) checkLimit(limit int) error {
	if limit < 0 || limit > int(s.rq.max) {
		return fmt.Errorf("%w: limit %d of a shared receive queue of %d", ErrInvalid, limit, s.rq.max)
	}
	return nil
}

// PostRecv posts a buffer for one Send to any of the queue pairs
// (ibv_post_srq_recv(3)). The buffer is the queue's until its completion. It
// returns ErrQueueFull when there is no room.
func (s *SRQ) PostRecv(wr *RecvWR) error {
	if s.pd == nil || s.pd.ctx.closed {
		return ErrClosed
	}
	low := s.rq.len() < fewReceives
	if err := s.rq.post(s.pd.ctx, s.pd, wr); err != nil {
		return err
	}
	if q := s.pd.ctx.rd; low && q != nil && q.srq == s && len(q.in.rnr) > 0 {
		q.in.feed()
	}
	return nil
}

// PostRecvList is PostRecv for a list, as QP.PostSendList is. Its errors are those of
// PostRecv.
func (s *SRQ) PostRecvList(wrs []RecvWR) (posted int, err error) {
	for i := range wrs {
		if err := s.PostRecv(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// Len returns how many receives are posted and were not taken yet.
func (s *SRQ) Len() int { return s.rq.len() }

// Modify arms EventSRQLimitReached (ibv_modify_srq(3)): it comes once, when
// fewer than limit receives are posted, which may be at once. 0 disarms it. A limit that
// the queue cannot reach is ErrInvalid.
func (s *SRQ) Modify(limit int) error {
	if s.pd == nil {
		return ErrClosed
	}
	if err := s.checkLimit(limit); err != nil {
		return err
	}
	s.limit = limit
	s.watchLimit()
	return nil
}

// watchLimit raises the event that is armed if it is due.
func (s *SRQ) watchLimit() {
	if s.rq.len() < s.limit {
		s.limit = 0
		s.pd.ctx.raise(AsyncEvent{Type: EventSRQLimitReached, SRQ: s})
	}
}

// Destroy ends the queue and forgets what is posted to it; there are no
// completions for that. It fails with ErrBusy while queue pairs use it
// (ibv_destroy_srq(3)).
func (s *SRQ) Destroy() error {
	switch {
	case s.pd == nil:
		return fmt.Errorf("%w: shared receive queue was destroyed before", ErrInvalid)
	case s.users > 0:
		return fmt.Errorf("%w: %d queue pairs receive from it: destroy them first", ErrBusy, s.users)
	}
	s.rq.clear()
	s.pd = nil
	return nil
}

// takeRecv takes the oldest receive that is posted for q, in its own queue or
// in the shared one. The result is valid until the next is posted. false: there
// is none, or its completion would find no place.
//
// A queue pair's own receives have their places in the completion queue since
// they were posted. Of a shared one the queue is not known before.
func (q *QP) takeRecv() (*rqe, bool) {
	s := q.srq
	if s == nil {
		if q.rq.len() == 0 {
			return nil, false
		}
		return q.rq.take(), true
	}
	if s.rq.len() == 0 || !q.recvCQ.reserve() {
		return nil, false
	}
	e := s.rq.take()
	if s.limit > 0 {
		s.watchLimit()
	}
	return e, true
}

// recvsLeft returns how many receives takeRecv can take.
func (q *QP) recvsLeft() int {
	if q.srq == nil {
		return q.rq.len()
	}
	return min(q.srq.rq.len(), q.recvCQ.room())
}

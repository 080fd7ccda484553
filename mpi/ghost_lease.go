package mpi

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// lease is how long a ghost may go without a step.
//
// A ghost that is stopped, and not dead, is found lost by others when it was silent for
// PeerLost. It does not know of that when it goes on, and has old operations in its queues. So
// each step renews its lease: if it was in no step for half of that time, it takes in nothing
// more. Others begin to count when they ask and get no answer, which may be before it was
// stopped, if answers were lost; the other half is for that.
type lease struct {
	clock mono.Clock
	last  mono.Time // when it was renewed
	most  mono.Duration
	over  bool
}

// lease returns that of a ghost; nil: it has none, for the ranks do not go on without it.
func (p *Proc) lease() *lease {
	if !p.fallsBack() {
		return nil
	}
	clock := p.ep.Engine().Clock()
	return &lease{clock: clock, last: clock.Now(), most: p.ctx.Dgram().WithDefaults(0).PeerLost / 2}
}

// renew renews it, unless it is over.
func (l *lease) renew() (stood mono.Duration, over bool) {
	now := l.clock.Now()
	stood = now.Sub(l.last)
	l.over = l.over || stood > l.most
	l.last = now
	return stood, l.over
}

// holds reports whether it is not over.
func (l *lease) holds() bool {
	return !l.over && l.clock.Now().Sub(l.last) <= l.most
}

// Poll implements progress.Source: there is nothing to do but to wake up.
func (l *lease) Poll(mono.Time, int) int { return 0 }

// Deadline implements progress.Source: a ghost that waits for messages is to make a step
// before the lease is over.
func (l *lease) Deadline() mono.Time { return l.last.Add(l.most / 2) }

// leased is a server that takes nothing when its lease is over: it may have been stopped in
// the middle of a step.
type leased struct {
	p2p.Server
	*lease
}

// Serve implements p2p.Server.
func (s leased) Serve(context uint32, source, what int32, id uint32, body []byte) bool {
	if !s.holds() {
		s.over = true
		return true
	}
	return s.Server.Serve(context, source, what, id, body)
}

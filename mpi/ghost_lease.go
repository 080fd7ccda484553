package mpi

import (
	"cmp"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// A ghost that is stopped, and not dead, is found lost by others when it was silent for PeerLost. It does not
// know of that when it goes on, and has old operations in its queues. So it has a lease, which each step renews:
// if it was in no step for half of that time, it takes in nothing more. Others begin to count when they ask and
// get no answer, which may be before it was stopped, if answers were lost; the other half is for that.

// lease is how long a ghost may go without a step.
type lease struct {
	clock mono.Clock
	last  mono.Time     // when it was renewed
	most  mono.Duration // 0: for ever, for the ranks do not go on without it
	over  bool
}

// peerLost is the silence after which a peer is lost, where nothing is configured: that of the protocol.
const peerLost = 30 * mono.Second

// lease returns that of a ghost.
func (p *Proc) lease() *lease {
	l := &lease{clock: p.ep.Engine().Clock()}
	if l.last = l.clock.Now(); p.fallsBack() {
		l.most = cmp.Or(p.ctx.Dgram().PeerLost, peerLost) / 2
	}
	return l
}

// renew renews it, unless it is over.
func (l *lease) renew() (stood mono.Duration, over bool) {
	if l.most == 0 {
		return 0, false
	}
	now := l.clock.Now()
	stood = now.Sub(l.last)
	l.over = l.over || stood > l.most
	l.last = now
	return stood, l.over
}

// holds reports whether it is not over.
func (l *lease) holds() bool {
	return l.most == 0 || !l.over && l.clock.Now().Sub(l.last) <= l.most
}

// Poll implements progress.Source: there is nothing to do but to wake up.
func (l *lease) Poll(mono.Time, int) int { return 0 }

// Deadline implements progress.Source: who waits for messages is to make a step before the lease is over.
func (l *lease) Deadline() mono.Time {
	if l.most == 0 {
		return mono.Never
	}
	return l.last.Add(l.most / 2)
}

// leased is a server that takes nothing when its lease is over: it may have been stopped in the middle of a
// step.
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

package p2p

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// Shared is memory that ranks of this host have in common, and that one of them waits for
// to change.
type Shared interface {
	// Ready reports whether it has changed.
	Ready() bool
	// Apart reports whether the rank that is to change it runs on another processor than this one: then others
	// gain nothing for it by this one's.
	Apart() bool
	// Sleep asks the others for a Rouse when it does, and reports whether it has not.
	Sleep() bool
}

// sharedSleep is how long a rank sleeps at most that waits for memory: a Rouse is sent, but
// its sender does not see to it that it goes out where there is no room.
const sharedSleep = 5 * mono.Millisecond

// How often a rank gives its core away, where cores are scarce, before it sleeps, and how
// many of these times are without a step. It does not go by the time, as Park does: each of
// the others has to run for what it waits for, and be it for long.
const (
	yieldsBeside = 200
	stepsBeside  = 4
)

// spinsApart is how often a rank looks where it waits for another processor, which is for 3 us: to give its
// own away for a turn of each of the others takes 5 us and more.
const spinsApart = 150

// Progress is Inside.Progress for a caller that waits for m, on an endpoint for one goroutine
// at a time. tries counts its calls.
func (s Segments) Progress(m Shared, tries int) {
	d := &s.ep.driver
	if d.spinBeside(m) {
		return
	}
	ep := s.ep
	yields := d.maxSpins == spinsLeast && tries < yieldsBeside
	switch {
	case yields && tries%stepsBeside != stepsBeside-1 && ep.net.posts == 0:
		ep.eng.Yield()
	case d.step() > 0:
	case yields:
		ep.eng.Yield()
	default:
		d.waits.target, d.waits.shared = nil, m
		ep.poller.wakeAt = ep.eng.Now().Add(sharedSleep)
		ep.eng.Park()
		ep.poller.wakeAt = mono.Never
		d.waits.shared = nil
	}
}

// spinBeside is spin that looks at m, too.
func (d *driver) spinBeside(m Shared) bool {
	if d.ep.net.posts > 0 || d.hits >= d.maxHits {
		d.hits = 0
		return false
	}
	spins := d.spins
	if d.maxSpins == spinsLeast && m.Apart() {
		spins = max(spins, spinsApart)
	}
	for i := range spins {
		if m.Ready() {
			d.spins = d.maxSpins
			d.hits++
			return true
		}
		if i%4 == 3 && d.look() {
			d.spins = d.maxSpins
			d.hits++
			return true
		}
		mem.Relax()
	}
	d.spins = max(d.spins/2, d.minSpins)
	return m.Ready()
}

// Awaitable reports whether a rank may wait for memory of this host to change: not in a
// simulation, where time goes on between messages.
func (s Segments) Awaitable() bool { return s.ep.near.channels != nil }

// Hopeless returns why a collective with an envelope cannot come to its end any more, or nil.
func (s Segments) Hopeless(env match.Envelope) error { return s.ep.failures.hopeless(env) }

// Rouse tells a rank of this host that memory has changed which it sleeps on.
func (s Segments) Rouse(rank int32) {
	if p := &s.ep.peers[rank]; p.err == nil {
		s.ep.out.brief(p, header{kind: kindRouse})
	}
}

// Package adapt decides whether ghosts are to do the operations on the memory of a rank, or
// the rank itself (Si, Peña, Hammond, Balaji, Takagi, Ishikawa: Dynamic Adaptable Asynchronous
// Progress Model for MPI RMA Multiphase Applications, TPDS 2018). It is fed with times and
// does nothing by itself.
package adapt

import (
	"cmp"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// State is what a rank wants.
type State uint8

// The states.
const (
	On    State = iota // the ghost does them
	Off                // the rank does: it is in MPI nearly all the time, and they keep the ghost busy
	Probe              // all ghosts do for an interval, to see whether the time in MPI was time spent waiting for ranks that compute
)

// Interval is that between decisions if nothing else is said.
const Interval = mono.Second

// Config is how a Predictor decides. Its zero value is ready to use.
type Config struct {
	Interval   mono.Duration // time between decisions; default 1 s
	High, Low  float64       // parts of the time in MPI: above the one Off, below the other On; default 0.90 and 0.85
	Busy       float64       // part of its time that a ghost needs for operations: above Off, below half of that On; default 0.005
	Sharers    int           // ranks that have one ghost; default 1
	ProbeAfter int           // intervals in Off before a probe; default 8. Each probe in vain doubles it, up to eight times as many
}

// Predictor watches how much of its time one rank spends in MPI, and how many operations it starts,
// and takes the next interval for one like the last. Few operations are no burden to a ghost: a rank that
// is in MPI all the time and starts few of them waits for others, and may need their ghosts. It
// takes those that this rank starts for as many as others start on its memory, and all ranks of
// a ghost for like it.
//
// A rank that is Off makes those wait that want something from it while it computes, and time that
// they wait is time in MPI: so ranks may keep each other Off that would not be so with ghosts.
// Therefore a rank that is Off for long asks for a probe.
type Predictor struct {
	c       Config
	state   State
	since   mono.Time     // when the present interval began
	spent   mono.Duration // in MPI since
	work    mono.Duration // of the ghost for the operations since
	offs    int           // intervals in Off
	after   int           // so many are enough
	probing bool          // the probe has begun
}

// New returns a predictor that begins with On.
func New(c Config, now mono.Time) *Predictor {
	c.Interval = cmp.Or(c.Interval, Interval)
	c.High = cmp.Or(c.High, 0.90)
	c.Low = cmp.Or(c.Low, 0.85)
	c.Busy = cmp.Or(c.Busy, 0.005)
	c.Sharers = cmp.Or(c.Sharers, 1)
	c.ProbeAfter = cmp.Or(c.ProbeAfter, 8)
	return &Predictor{c: c, state: On, since: now, after: c.ProbeAfter}
}

// State returns what the rank wants.
func (p *Predictor) State() State { return p.state }

// Says returns what others are to be told of it: a rank in the middle of a probe asks for none. If it did,
// ranks that meet different others in turn would hand one probe on to one another without end.
func (p *Predictor) Says() State {
	if p.probing && p.state == Probe {
		return On
	}
	return p.state
}

// Work is about what a ghost takes for an operation on so many bytes.
func Work(bytes int) mono.Duration {
	return mono.Microsecond + mono.Duration(bytes)*mono.Nanosecond
}

// Spent notes that a call of MPI has ended that took so long, and has given a ghost so much work.
func (p *Predictor) Spent(now mono.Time, took, work mono.Duration) {
	p.spent += took
	p.work += work
	span := now.Sub(p.since)
	if span < p.c.Interval {
		return
	}
	part := float64(min(p.spent, span)) / float64(span) // a call may have begun before
	load := float64(p.work) * float64(p.c.Sharers) / float64(span)
	p.since, p.spent, p.work = now, 0, 0
	p.judge(part > p.c.High && load > p.c.Busy, part < p.c.Low || load < p.c.Busy/2)
}

// judge decides after an interval that was clearly one for the rank itself, or for a ghost, or
// neither.
func (p *Predictor) judge(off, on bool) {
	switch {
	case p.state == On && off:
		p.state, p.offs = Off, 0
	case p.state == Probe && !p.probing && !on: // no other rank was told yet
	case p.state == Probe && p.probing && off:
		p.state, p.offs, p.after = Off, 0, min(2*p.after, 8*p.c.ProbeAfter)
	case p.state == Probe, p.state == Off && on:
		p.state, p.after = On, p.c.ProbeAfter
	case p.state == Off:
		if p.offs++; p.offs >= p.after {
			p.state, p.probing = Probe, false
		}
	}
}

// Probed tells that a probe begins, which some rank has asked for: what was before counts for
// nothing, and a rank that is Off decides after the next interval.
func (p *Predictor) Probed(now mono.Time) {
	if p.state == On || p.state == Probe && p.probing {
		return
	}
	p.state, p.probing, p.since, p.spent, p.work = Probe, true, now, 0, 0
}

// Decide says of which ranks ghosts do the operations, as all of them want it: all see the
// same. probe: some rank wants one, so all do.
func Decide(wants []State, on []bool) (probe bool) {
	for _, s := range wants {
		probe = probe || s == Probe
	}
	for i, s := range wants {
		on[i] = probe || s == On
	}
	return probe
}

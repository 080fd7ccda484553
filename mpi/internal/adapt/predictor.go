// Package adapt decides whether ghosts are to do the operations on the memory of a rank, or
// the rank itself (Si, Peña, Hammond, Balaji, Takagi, Ishikawa: Dynamic Adaptable Asynchronous
// Progress Model for MPI RMA Multiphase Applications, TPDS 2018). It is fed with times and
// does nothing by itself.
package adapt

import "github.com/xwarp/xwarp/internal/base/mono"

// State is what a rank wants.
type State uint8

// The states.
const (
	Off   State = iota // the rank does them: it is in MPI nearly all the time, and several share a ghost
	On                 // the ghost does
	Probe              // all ghosts do for an interval, to see whether the time in MPI was time spent waiting for ranks that compute
)

// Config is how a Predictor decides. Its zero value is ready to use.
type Config struct {
	Interval   mono.Duration // time between decisions; default 1 s
	High, Low  float64       // parts of the time in MPI: above the one Off, below the other On; default 0.90 and 0.85
	ProbeAfter int           // intervals in Off before a probe; default 8. Each probe in vain doubles it, up to eight times as many
}

// Predictor watches how much of its time one rank spends in MPI, and takes the next interval
// for one like the last.
//
// Who is Off makes those wait who want something from it while it computes, and time that
// they wait is time in MPI: so ranks may keep each other Off that would not be so with ghosts.
// Therefore a rank that is Off for long asks for a probe.
type Predictor struct {
	c       Config
	state   State
	since   mono.Time     // when the present interval began
	spent   mono.Duration // in MPI since
	offs    int           // intervals in Off
	after   int           // so many are enough
	probing bool          // the probe has begun
}

// New returns a predictor that begins with On.
func New(c Config, now mono.Time) *Predictor {
	if c.Interval == 0 {
		c.Interval = mono.Second
	}
	if c.High == 0 {
		c.High = 0.90
	}
	if c.Low == 0 {
		c.Low = 0.85
	}
	if c.ProbeAfter == 0 {
		c.ProbeAfter = 8
	}
	return &Predictor{c: c, state: On, since: now, after: c.ProbeAfter}
}

// State returns what the rank wants.
func (p *Predictor) State() State { return p.state }

// Spent notes that a call of MPI has ended that took so long.
func (p *Predictor) Spent(now mono.Time, took mono.Duration) {
	p.spent += took
	span := now.Sub(p.since)
	if span < p.c.Interval {
		return
	}
	part := float64(min(p.spent, span)) / float64(span) // a call may have begun before
	p.since, p.spent = now, 0
	p.judge(part)
}

// judge decides after an interval.
func (p *Predictor) judge(part float64) {
	switch {
	case p.state == On && part > p.c.High:
		p.state, p.offs = Off, 0
	case p.state == Probe && !p.probing && part >= p.c.Low: // nobody was told yet
	case p.state == Probe && p.probing && part > p.c.High:
		p.state, p.offs, p.after = Off, 0, min(2*p.after, 8*p.c.ProbeAfter)
	case p.state == Probe, p.state == Off && part < p.c.Low:
		p.state, p.after = On, p.c.ProbeAfter
	case p.state == Off:
		if p.offs++; p.offs >= p.after {
			p.state, p.probing = Probe, false
		}
	}
}

// Probed tells that a probe begins, which some rank has asked for: what was before counts for
// nothing, and who is Off decides after the next interval.
func (p *Predictor) Probed(now mono.Time) {
	if p.state == On || p.state == Probe && p.probing {
		return
	}
	p.state, p.probing, p.since, p.spent = Probe, true, now, 0
}

// Decide says of which ranks ghosts do the operations, as all of them want it: all see the
// same. probe: somebody wants one, so it is all.
func Decide(wants []State, on []bool) (probe bool) {
	for _, s := range wants {
		probe = probe || s == Probe
	}
	for i, s := range wants {
		on[i] = probe || s == On
	}
	return probe
}

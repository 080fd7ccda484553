package p2p

import (
	"github.com/xwarp/xwarp/internal/base/mono"
)

// How long a rank waits for its last acknowledgement from a peer that has said
// that it needs nothing more: the peer may be gone already. And how long a rank
// stays to acknowledge what its peers send again.
const (
	byeGrace = 100 * mono.Millisecond
	linger   = 2 * mono.Millisecond
)

// Drain waits until everything that was sent has arrived. All ranks call it
// after a barrier, or after the failure of one: a lost peer does not hold it
// up. Afterwards only Close may be called.
//
// Each rank sends a bye to every peer that it has talked to, behind all else,
// and has drained when the byes are acknowledged. The acknowledgement may be
// lost for good when the peer has drained and left. It has sent a bye of its
// own before that, so a rank that has one waits a moment only.
func (ep *Endpoint) Drain() {
	ep.Enter()
	defer ep.Leave()
	ep.failures.closing = true
	if c := ep.net.conn; c != nil && c.beside {
		c.severAll()
	}
	for ep.net.conn != nil && ep.net.conn.unsettled() {
		ep.stepUntil(mono.Never)
	}
	for i := range ep.peers {
		p := &ep.peers[i]
		if p.self || p.err != nil || !p.used {
			continue
		}
		ep.out.notify(i, kindBye, 0, 0)
	}
	for {
		waiting, until := ep.undrained()
		if ep.net.conn != nil && !waiting {
			ep.net.conn.disconnect()
			waiting = ep.net.conn.links > 0
		}
		if !waiting {
			break
		}
		ep.stepUntil(until)
	}
	for end := ep.eng.Clock().Now().Add(linger); ep.eng.Clock().Now() < end; {
		ep.stepUntil(end)
	}
}

// undrained reports whether an acknowledgement is still to be waited for, and
// when the first wait for one that may never come ends.
func (ep *Endpoint) undrained() (waiting bool, until mono.Time) {
	now := ep.eng.Clock().Now()
	until = mono.Never
	for _, r := range ep.requests.all {
		if !r.detached || r.state == free || r.state == posted || ep.peers[r.peer].self {
			continue // posted, and those to the own rank: the user has freed it, and it has met nothing
		}
		p := &ep.peers[r.peer]
		switch end := p.saidBye.Add(byeGrace); {
		case p.err != nil && (p.link == nil || ep.net.conn.beside): // it is lost, and acknowledges nothing
		case p.link != nil && p.link.state != over: // it waits for our bye
			waiting = true
		case now < end:
			waiting = true
			until = min(until, end)
		}
	}
	for i := range ep.peers {
		p := &ep.peers[i]
		if end := p.saidBye.Add(byeGrace); p.err == nil && p.lane != nil && p.lane.had != p.lane.sent && now < end {
			waiting = true
			until = min(until, end)
		}
	}
	return waiting, until
}

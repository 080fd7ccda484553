package llp

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// Expire returns a peer with something that may be due at now, or nil. The
// caller looks at Peer.Snd and Peer.Rcv, and then calls Rearm.
func (e *Endpoint) Expire(now mono.Time) *Peer {
	e.now = now
	for i, ok := e.Assocs.Expire(now); ok; i, ok = e.Assocs.Expire(now) {
		if p := e.shake.peers[i]; e.shake.sendHello(p) && !e.shake.swallowed(p) {
			return p
		}
	}
	return nil
}

// Rearm sets the timer of a peer anew, and frees what an idle one does not
// need. idle tells that the caller has nothing to send to it either. An
// acknowledgement that is due now is the caller's to send.
func (e *Endpoint) Rearm(p *Peer, idle bool) {
	if p.closed {
		return
	}
	if n := uint8(p.Snd.TimeOuts()); n != p.timeOuts {
		if n > p.timeOuts && n >= doubtTries {
			e.shake.doubt(p)
		}
		p.timeOuts = n
	}
	e.Assocs.Rearm(e.now, &p.Assoc, idle)
	if len(e.shake.searches) > 0 { // while associations begin
		if s := e.shake.searches[p]; s != nil {
			e.Wake(&p.Assoc, max(s.due, e.now+1))
		}
	}
	if e.multi.dg != nil {
		e.Wake(&p.Assoc, max(e.multi.tend(p), e.now+1))
	}
}

// How many time-outs in a row, and short Hellos that were answered meanwhile,
// are needed before the path may be suspected. Of datagrams that two thirds of
// the time get lost, one way or the other, hardly as many do in a row.
const (
	swallowTries  = 8
	swallowHellos = 4
)

// mutes notes that p has answered a short Hello. Answers that come together count as
// one: a peer that stood still answers all Hellos at once that have waited for it, and
// what was sent meanwhile, and found no room there, has yet to be sent again.
func (hs *handshake) mutes(p *Peer) {
	now := uint32(hs.ep.now / mono.Time(mono.Millisecond))
	if p.mute == 0 || mono.Duration(now-p.muteAt)*mono.Millisecond >= 2*hs.ep.Config().RTOMax {
		p.mute, p.muteAt = min(p.mute+1, swallowHellos), now
	}
}

// swallowed ends an association whose peer answers short Hellos and nothing
// else: the path does not carry any more what it did when it was measured. What
// was cut cannot be cut again, for each segment has its number; a new
// association measures the path anew.
func (hs *handshake) swallowed(p *Peer) bool {
	if p.Snd.TimeOuts() < swallowTries || p.mute < swallowHellos || p.most <= basePayload {
		return false
	}
	hs.end(p, PeerLost)
	return true
}

// sendHello sends the Hello that is due to p, if one is: to set the association up,
// to measure the path, or because nothing was heard for long. It reports
// whether the association goes on.
func (hs *handshake) sendHello(p *Peer) bool {
	if hs.ep.bulk.dg != nil {
		hs.ep.bulk.ask(p)
	}
	hs.sourceDue(p)
	if hs.ep.now < p.askAt {
		return true
	}
	c := hs.ep.Config()
	life := p.heardAt.Add(min(strangerLife, c.PeerLost))
	if p.stranger && hs.ep.now >= life {
		hs.forget(p)
		return false
	}
	if (p.Open() || p.Wanted) && hs.ep.lost(hs.ep.now, &p.Assoc) {
		hs.end(p, PeerLost)
		return false
	}
	if p.measured && p.most >= p.goal && !hs.ep.KeepAlive(hs.ep.now, &p.Assoc) {
		return true // nor need the path be tried again
	}
	size := hs.helloSize(p)
	if p.stranger {
		size = min(size, int(p.credit))
	}
	if size < hs.ep.multi.helloLeast() {
		p.askAt = life // more must have come from it, or it is forgotten then
		return true
	}
	h := dgram.Header{Type: dgram.TypeHello, SrcEpoch: p.local, DstEpoch: p.remote}
	if putSource(&h, p.source); !hs.beginHello(h, size, size) {
		p.askAt = hs.ep.now.Add(100 * mono.Microsecond) // no room
		return true
	}
	hs.ep.out.finish(p.path, p.source)
	p.spend(size)
	if p.unanswered >= doubtTries {
		hs.doubt(p)
	}
	p.askAt = hs.ep.now.Add(min(helloFirst<<min(p.unanswered, 10), helloMost, c.PeerLost/(2*lostTries)))
	p.asked(hs.ep.now)
	p.tries = min(p.tries+1, 250)
	return true
}

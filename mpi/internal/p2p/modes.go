package p2p

import (
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// cancel is Cancel for those inside.
func (ep *Endpoint) cancel(r *Request) bool {
	if r.state != posted {
		return false
	}
	ep.posted.Remove(&r.entry)
	r.st = Status{Source: match.Any, Tag: match.Any, Mark: Cancelled}
	r.complete()
	return true
}

// Matched is a message that was taken out of the queue of those that wait, and
// that only Accept receives.
type Matched struct{ m *message }

func (ep *Endpoint) seize(env match.Envelope) (Matched, Status, bool, error) {
	e := ep.unexpected.Match(env)
	if e == nil {
		return Matched{}, Status{}, false, ep.unprobed(env)
	}
	ep.seizes(e.Owner)
	return Matched{e.Owner}, Status{Source: e.Source, Tag: e.Tag, Bytes: int(e.Owner.size)}, true, nil
}

func (ep *Endpoint) acceptMatched(m Matched, r *Request) *Request {
	r.entry.Envelope = m.m.entry.Envelope
	ep.unseizes(m.m)
	ep.accept(r, m.m)
	return r
}

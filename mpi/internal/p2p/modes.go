package p2p

import (
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// cancel is Cancel for those inside.
func (mt *matching) cancel(r *Request) bool {
	if r.state != posted {
		return false
	}
	mt.posted.Remove(&r.entry)
	r.st = Status{Source: match.Any, Tag: match.Any, Mark: Cancelled}
	r.complete()
	return true
}

// Matched is a message that was taken out of the queue of those that wait, and
// that only Accept receives.
type Matched struct{ m *message }

func (mt *matching) seize(env match.Envelope) (Matched, Status, bool, error) {
	e := mt.unexpected.Match(env)
	if e == nil {
		return Matched{}, Status{}, false, mt.ep.failures.unprobed(env)
	}
	mt.seizes(e.Owner)
	return Matched{e.Owner}, Status{Source: e.Source, Tag: e.Tag, Bytes: int(e.Owner.size)}, true, nil
}

func (mt *matching) acceptMatched(m Matched, r *Request) *Request {
	r.entry.Envelope = m.m.entry.Envelope
	mt.unseizes(m.m)
	mt.accept(r, m.m)
	return r
}

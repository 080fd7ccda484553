package p2p

import (
	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// Issend starts a send that completes when its receive has been found (MPI 4.1,
// section 3.4): whatever its length, the receiver is asked first.
func (ep *Endpoint) Issend(env match.Envelope, dest int, buf []byte) *Request {
	return ep.isend(env, dest, data{buf: buf}, true)
}

// IssendTyped is Issend of the bytes before a cursor.
func (ep *Endpoint) IssendTyped(env match.Envelope, dest int, cur dtype.Cursor) *Request {
	return ep.isend(env, dest, dataOf(cur), true)
}

// Cancel takes back a receive that no message has met yet. The request is done
// then, and its status says so. Sends are never cancelled (MPI 4.1, section
// 3.8.4, has come to that too).
func (ep *Endpoint) Cancel(r *Request) bool {
	if r.state != posted {
		return false
	}
	ep.posted.Remove(&r.entry)
	r.st = Status{Source: match.Any, Tag: match.Any, Cancelled: true}
	r.complete()
	return true
}

// Matched is a message that was taken out of the queue of those that wait, and
// that only Accept receives.
type Matched struct{ m *message }

// Improbe makes progress once and takes the oldest message that fits env.
func (ep *Endpoint) Improbe(env match.Envelope) (m Matched, st Status, found bool, err error) {
	ep.step()
	return ep.seize(env)
}

// Mprobe waits for a message that fits env and takes it.
func (ep *Endpoint) Mprobe(env match.Envelope) (Matched, Status, error) {
	for {
		if m, st, found, err := ep.seize(env); found || err != nil {
			return m, st, err
		}
		ep.progress()
	}
}

func (ep *Endpoint) seize(env match.Envelope) (Matched, Status, bool, error) {
	e := ep.unexpected.Match(env)
	if e == nil {
		return Matched{}, Status{}, false, ep.unprobed(env)
	}
	return Matched{e.Owner}, Status{Source: e.Source, Tag: e.Tag, Bytes: int(e.Owner.size)}, true, nil
}

// Accept receives a message that was taken, once.
func (ep *Endpoint) Accept(m Matched, buf []byte) *Request {
	return ep.acceptMatched(m, ep.request(m.m.entry.Source, buf))
}

// AcceptTyped is Accept into the bytes before a cursor.
func (ep *Endpoint) AcceptTyped(m Matched, cur dtype.Cursor) *Request {
	r := ep.request(m.m.entry.Source, nil)
	r.data = dataOf(cur)
	return ep.acceptMatched(m, r)
}

func (ep *Endpoint) acceptMatched(m Matched, r *Request) *Request {
	r.entry.Envelope = m.m.entry.Envelope
	ep.accept(r, m.m)
	return r
}

package p2p

import (
	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// collective reports whether a context is the hidden half of a communicator,
// which collectives use.
func collective(context uint32) bool { return context&1 != 0 }

func (ep *Endpoint) irecv(env match.Envelope, r *Request) *Request {
	r.entry.Envelope = env
	// What has come already is received in spite of a loss. Where nothing may
	// be received any more there is nothing: see unwanted.
	if ep.unexpected.Len() > 0 {
		if e := ep.unexpected.Match(env); e != nil {
			ep.accept(r, e.Owner)
			return r
		}
	}
	if ep.impaired {
		if err := ep.hopeless(env); err != nil {
			r.st = Status{Source: env.Source, Tag: env.Tag}
			r.fail(err)
			return r
		}
	}
	r.state = posted
	ep.posted.Post(&r.entry)
	return r
}

func (ep *Endpoint) irecvTyped(env match.Envelope, cur dtype.Cursor) *Request {
	r := ep.request(env.Source, nil)
	r.data = dataOf(cur)
	return ep.irecv(env, r)
}

// accept gives a message that was waiting to the receive r.
func (ep *Endpoint) accept(r *Request, m *message) {
	env := m.entry.Envelope
	switch {
	case m.self != nil && (m.self.state != matchSelf || m.self.gen != m.id):
		r.abandon(env) // the send has failed since the message was taken out of the queue
	case m.self != nil:
		r.deliverSelf(env, m.self)
	case m.kind == kindRTS:
		ep.clear(r, env, m.id, m.size, m.offer)
	case m.kind == kindHead:
		ep.acceptSplit(r, env, m)
	default:
		r.deliver(env, m.data)
	}
	ep.forget(m)
}

// abandon ends a receive whose sender has given up.
func (r *Request) abandon(env match.Envelope) {
	err := r.ep.broken(env)
	if err == nil {
		err = gaveUp(env.Source)
	}
	r.fail(err)
}

// deliver copies the data of a message to the user and ends the receive. A
// message that is too long fills the buffer and is an error.
func (r *Request) deliver(env match.Envelope, data []byte) {
	n := r.data.fill(data)
	r.st = Status{Source: env.Source, Tag: env.Tag, Bytes: n, Mark: got | r.ep.number(env)}
	if n < len(data) {
		r.err = truncated(env.Source, uint64(len(data)), n)
	}
	r.complete()
}

// deliverSelf is deliver for a send to the own rank, which is complete then too.
func (r *Request) deliverSelf(env match.Envelope, from *Request) {
	n := r.data.copyFrom(&from.data)
	r.st = Status{Source: env.Source, Tag: env.Tag, Bytes: n, Mark: got | r.ep.number(env)}
	if uint64(n) < from.total {
		r.err = truncated(env.Source, from.total, n)
	}
	r.complete()
	from.complete()
}

func (ep *Endpoint) find(env match.Envelope) (Status, bool, error) {
	if e := ep.unexpected.Find(env); e != nil {
		return Status{Source: e.Source, Tag: e.Tag, Bytes: int(e.Owner.size)}, true, nil
	}
	return Status{}, false, ep.unprobed(env)
}

// HandleRecv implements verbs.RecvHandler: what most short messages are, a message that a
// receive waits for, goes from the frame to the user. Everything else is received.
func (ep *Endpoint) HandleRecv(_ *verbs.AH, b []byte) bool {
	var h header
	if len(b) == 0 || kind(b[0]) != kindEager || ep.impaired || !h.parse(b, len(ep.peers)) || h.source == ep.rank {
		return false
	}
	env := h.envelope()
	e := ep.posted.Match(env)
	if e == nil {
		return false
	}
	p := &ep.peers[h.source]
	p.used, p.answered = true, true
	e.Owner.deliver(env, b[headerLen:])
	return true
}

// arrivedEager takes in a message whose data came with it.
func (ep *Endpoint) arrivedEager(env match.Envelope, data []byte) {
	if e := ep.posted.Match(env); e != nil {
		e.Owner.deliver(env, data)
		return
	}
	m := ep.messages.get(len(data))
	copy(m.data, data)
	m.entry.Envelope = env
	m.kind, m.size = kindEager, uint64(len(data))
	ep.keep(m, env.Source)
}

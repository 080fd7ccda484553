package p2p

import (
	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// matching brings messages and receives together.
type matching struct {
	ep         *Endpoint
	posted     match.Posted[Request]
	unexpected match.Unexpected[message]
	messages   messagePool
	seized     []*message                // of those whose memory is lent, what the user has taken and not received
	kept       int                       // bytes of eager messages among unexpected
	holding    int                       // peers that were told to hold back
	numbers    map[match.Envelope]uint64 // of messages received; or nil
}

// collective reports whether a context is the hidden half of a communicator,
// which collectives use.
func collective(context uint32) bool { return context&1 != 0 }

func (mt *matching) irecv(env match.Envelope, r *Request) *Request {
	r.entry.Envelope = env
	// What has come already is received in spite of a loss. Where nothing may
	// be received any more there is nothing: see unwanted.
	if mt.unexpected.Len() > 0 {
		if e := mt.unexpected.Match(env); e != nil {
			mt.accept(r, e.Owner)
			return r
		}
	}
	if mt.ep.failures.impaired {
		if err := mt.ep.failures.hopeless(env); err != nil {
			r.st = Status{Source: env.Source, Tag: env.Tag}
			r.fail(err)
			return r
		}
	}
	if mt.ep.lanes.looking > 0 {
		mt.ep.lanes.look(r)
	}
	r.state, r.offer.ghost = posted, 0
	mt.posted.Post(&r.entry)
	return r
}

func (mt *matching) irecvTyped(env match.Envelope, cur dtype.Cursor) *Request {
	r := mt.ep.requests.request(env.Source, nil)
	r.data = dataOf(cur)
	return mt.irecv(env, r)
}

// accept gives a message that was waiting to the receive r.
func (mt *matching) accept(r *Request, m *message) {
	env := m.entry.Envelope
	switch {
	case m.self != nil && (m.self.state != waitCTS || m.self.gen != m.id):
		r.abandon(env) // the send has failed since the message was taken out of the queue
	case m.self != nil:
		r.deliverSelf(env, m.self)
	case m.kind == kindRTS:
		mt.ep.rendezvous.clear(r, env, m.id, m.size, m.offer)
	case m.kind == kindHead:
		mt.ep.pieces.accept(r, env, m)
	case m.kind == kindLinked:
		mt.ep.lanes.accept(r, env, m)
	default:
		if r.deliver(env, m.data); m.kind == kindSync {
			mt.ep.out.notify(int(env.Source), kindFIN, 0, m.id)
		}
	}
	mt.forget(m)
}

// abandon ends a receive whose sender has given up.
func (r *Request) abandon(env match.Envelope) {
	err := r.ep.failures.broken(env)
	if err == nil {
		err = gaveUp(env.Source)
	}
	r.fail(err)
}

// deliver copies the data of a message to the user and ends the receive. A
// message that is too long fills the buffer and is an error.
func (r *Request) deliver(env match.Envelope, data []byte) {
	n := r.data.fill(data)
	r.st = Status{Source: env.Source, Tag: env.Tag, Bytes: n, Mark: got | r.ep.match.number(env)}
	if n < len(data) {
		r.err = truncated(env.Source, uint64(len(data)), n)
	}
	r.complete()
}

// deliverSelf is deliver for a send to the own rank, which is complete then too.
func (r *Request) deliverSelf(env match.Envelope, from *Request) {
	n := r.data.copyFrom(&from.data)
	r.st = Status{Source: env.Source, Tag: env.Tag, Bytes: n, Mark: got | r.ep.match.number(env)}
	if uint64(n) < from.total {
		r.err = truncated(env.Source, from.total, n)
	}
	r.complete()
	from.complete()
}

func (mt *matching) find(env match.Envelope) (Status, bool, error) {
	if e := mt.unexpected.Find(env); e != nil {
		return Status{Source: e.Source, Tag: e.Tag, Bytes: int(e.Owner.size)}, true, nil
	}
	return Status{}, false, mt.ep.failures.unprobed(env)
}

// HandleRecv implements verbs.RecvHandler: what most short messages are, a message that a
// receive waits for, or a batch, goes from the frame to the user. Everything else is received.
func (mt *matching) HandleRecv(_ *verbs.AH, b []byte) bool {
	ep := mt.ep
	var h header
	if len(b) == 0 || kind(b[0]) != kindEager && kind(b[0]) != kindBatch || ep.failures.impaired || !h.parse(b, len(ep.peers)) || h.source == ep.rank {
		return false
	}
	p := &ep.peers[h.source]
	if h.kind == kindBatch {
		if !mt.roomFor(len(b)) {
			return false
		}
		p.used, p.answered = true, true
		ep.poller.arrivedBatch(&h, b[headerLen:])
		return true
	}
	env := h.envelope()
	e := mt.posted.Match(env)
	if e == nil {
		return false
	}
	p.used, p.answered = true, true
	p.got[env.Context&1].plain++
	e.Owner.deliver(env, b[headerLen:])
	return true
}

// arrivedEager takes in a message whose data came with it. It returns the message if no
// receive has met it.
func (mt *matching) arrivedEager(env match.Envelope, data []byte) *message {
	if e := mt.posted.Match(env); e != nil {
		if r := e.Owner; len(data) >= tuneTimed && !r.data.typed {
			mt.ep.near.deliver(&mt.ep.peers[env.Source], r, env, data)
		} else {
			r.deliver(env, data)
		}
		return nil
	}
	m := mt.messages.get(len(data))
	copy(m.data, data)
	m.entry.Envelope = env
	m.kind, m.size = kindEager, uint64(len(data))
	mt.keep(m, env.Source)
	return m
}

// arrivedSync is arrivedEager for a sender that waits until a receive meets the message.
func (mt *matching) arrivedSync(h *header, data []byte) {
	if m := mt.arrivedEager(h.envelope(), data); m != nil {
		m.kind, m.id = kindSync, h.id
		return
	}
	mt.ep.out.notify(int(h.source), kindFIN, 0, h.id)
}

// cancel is Cancel for those inside.
func (mt *matching) cancel(r *Request) bool {
	if r.state != posted {
		return false
	}
	if !mt.ep.inviter.retract(r, nil) {
		mt.ep.inviter.retracted(r)
	}
	return true
}

// withdraw takes out the first message that is meant, if it still waits.
func (mt *matching) withdraw(meant func(*message) bool) bool {
	for _, e := range mt.unexpected.All() {
		if m := e.Owner; meant(m) {
			mt.unexpected.Remove(e)
			mt.forget(m)
			return true
		}
	}
	return false
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

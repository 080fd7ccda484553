package p2p

import (
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// A message that is not much longer than the eager limit goes to a peer that little is
// under way to without asking, too, in pieces that fit the eager buffers: up to
// Config.EagerIdle, or as idle_tune.go finds out. Alone it
// so saves the turn of RTS and CTS, which takes as long as copying it twice does;
// in a stream the turns of many messages overlap, and the copies are what counts.
// What is under way to a peer tells the two apart, and whether it has said anything
// since.
//
//	head ->  envelope, length in all, the first bytes
//	rest ->  the next bytes, until all are there
//
// Once its head is posted a message goes to its end, whatever becomes of its
// communicator, and nothing else to that peer comes between: a rest needs no name.

// idleBuffers is how many send buffers may be under way to a peer that counts as
// idle, those of the message included. An answer may come before the
// acknowledgement of what it answers, so there is room for two messages of 64 KiB.
const idleBuffers = 10

// pieces sends messages in pieces.
type pieces struct {
	ep   *Endpoint
	most int // bytes of the longest message that may go so
}

// split is a message of a peer of which only the beginning has come.
type split struct {
	left int      // bytes that are still to come
	r    *Request // its receive, or nil
	m    *message // where it waits for one, or nil; neither: no receive takes it
}

// fits reports whether the send r of n bytes, too long to be eager, goes in pieces.
func (pc *pieces) fits(p *peer, r *Request, n int) bool {
	if n > pc.most || p.eagerMax <= 0 || p.asked > 0 || p.channel != nil || !p.ready() {
		return false
	}
	if p.buffered > 0 && !p.answered {
		return false // one after the other: a stream
	}
	need := (n + int(p.eagerMax) - 1) / int(p.eagerMax)
	return int(p.buffered)+need <= idleBuffers && need <= len(pc.ep.net.txFree) && pc.prefers(p, r, n)
}

// post posts the pieces of r that are left, as far as there is room.
func (pc *pieces) post(r *Request, p *peer) bool {
	ep := pc.ep
	for r.written < r.total {
		h := header{kind: kindRest, source: ep.rank}
		if r.written == 0 {
			env := r.entry.Envelope
			h = header{kind: kindHead, context: env.Context, source: ep.rank, tag: env.Tag, id: uint32(r.total)}
		}
		n, more := int(r.total-r.written), verbs.SendFlags(0)
		if n > int(p.eagerTop) {
			n, more = int(p.eagerTop), verbs.More
		}
		if !ep.out.piece(p, h.pack(), r.data.view(), n, more) {
			return false
		}
		if p.answered = false; r.written == 0 {
			ep.inviter.plain(p, r.entry.Context, r.entry.Tag)
		}
		r.written += uint64(n)
		r.data.skip(n)
	}
	ep.groups.counted(r.entry.Context, false)
	r.complete()
	return true
}

// arrivedHead takes in the beginning of a message.
func (pc *pieces) arrivedHead(h *header, p *peer, data []byte) {
	ep := pc.ep
	env, total := h.envelope(), int(h.id)
	if total <= len(data) || total > eagerMost || p.split.left > 0 {
		ep.Stats.Malformed++
		return
	}
	p.split = split{left: total - len(data)}
	if ep.failures.impaired && ep.failures.unwanted(env) {
		ep.Stats.Stale++
		return
	}
	if e := ep.match.posted.Match(env); e != nil {
		p.split.r = e.Owner
		e.Owner.begin(env, total, data)
		return
	}
	m := ep.match.messages.get(total)
	m.filled = copy(m.data, data)
	m.entry.Envelope = env
	m.kind, m.size = kindHead, uint64(total)
	p.split.m = m
	ep.match.keep(m, h.source)
}

// begin takes the first bytes of a message that has not come as a whole.
func (r *Request) begin(env match.Envelope, total int, data []byte) {
	room := min(r.data.len(), total)
	r.peer = env.Source
	r.st = Status{Source: env.Source, Tag: env.Tag, Bytes: room, Mark: got | r.ep.match.number(env)}
	if room < total {
		r.err = truncated(env.Source, uint64(total), room)
	}
	r.data.fill(data)
	r.state = waitRest
}

// accept gives a message that was waiting, of which m.filled bytes have come,
// to the receive r.
func (pc *pieces) accept(r *Request, env match.Envelope, m *message) {
	r.begin(env, len(m.data), m.data[:m.filled])
	p := &pc.ep.peers[env.Source]
	switch {
	case m.filled == len(m.data):
		r.complete()
	case p.err != nil:
		r.fail(p.err) // it was lost on the way
	default:
		p.split.r, p.split.m = r, nil
	}
}

// arrivedRest takes in the next bytes.
func (pc *pieces) arrivedRest(p *peer, data []byte) {
	s := &p.split
	if len(data) == 0 || len(data) > s.left {
		pc.ep.Stats.Malformed++
		return
	}
	s.left -= len(data)
	switch {
	case s.r != nil:
		s.r.data.fill(data)
		if s.left == 0 {
			s.r.complete()
		}
	case s.m != nil:
		s.m.filled += copy(s.m.data[s.m.filled:], data)
	default:
		pc.ep.Stats.Stale++
	}
	if s.left == 0 {
		*s = split{}
	}
}

// abandon forgets the message m, which no receive will take.
func (pc *pieces) abandon(m *message) {
	if s := &pc.ep.peers[m.entry.Source].split; s.m == m {
		s.m = nil
	}
}

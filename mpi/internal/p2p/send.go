package p2p

import (
	"slices"

	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// burstMax is how many nonblocking sends wait for one another before they go
// out at the latest. A frame costs the sender as much as ten short messages: in
// windows of 64 messages of 8 bytes bursts of 16 made 1.7 million messages a
// second, of 32 2.0, of 64 2.6, and long messages lost nothing by it.
const burstMax = 64

// copyMax is the longest message of which a copy is kept for reuse.
const copyMax = 1 << 20

// sender hands messages, and words of our own, to the transport that leads to their peer,
// those to one peer in their order.
type sender struct {
	ep    *Endpoint
	stuck peerQueue             // with requests for which there was no room
	head  [verbs.MaxInline]byte // word that is being written
}

// send is Send of what does not go at once.
func (s *sender) send(env match.Envelope, dest int, buf []byte) error {
	if p := &s.ep.peers[dest]; p.self && s.stranded(p, env, len(buf)) {
		return &Error{Code: Deadlock, Peer: dest, Detail: "a blocking send of this size to the own rank waits for a receive that is not posted: post it with Irecv first, or use Sendrecv"}
	}
	s.ep.delegator.attended = true
	r := s.isend(env, dest, data{buf: buf}, false)
	s.ep.delegator.attended = false
	_, err := r.wait()
	return err
}

// stranded reports whether a blocking send of n bytes to the own rank can never
// end: its receive is not posted, and there is no other goroutine that could.
func (s *sender) stranded(p *peer, env match.Envelope, n int) bool {
	ep := s.ep
	return ep.lock == nil && (n > int(p.eagerMax) || ep.match.full()) && ep.failures.open(p, env) && ep.match.posted.Find(env) == nil
}

// trySend is Inside.TrySend.
func (s *sender) trySend(env match.Envelope, dest int, v view) bool {
	if !s.eager(&s.ep.peers[dest], env.Context, env.Tag, v, alone) {
		return false
	}
	s.push(burstMax)
	return true
}

// isendBytes is isend of bytes that lie side by side. Of a short message that goes
// at once, as most do, the request holds the result and nothing else.
func (s *sender) isendBytes(env match.Envelope, dest int, buf []byte) *Request {
	if !s.eager(&s.ep.peers[dest], env.Context, env.Tag, view{buf: buf}, burst) {
		return s.isend(env, dest, data{buf: buf}, false)
	}
	r := s.ep.requests.spare()
	r.st = Status{Source: int32(dest), Tag: env.Tag, Bytes: len(buf)}
	r.state = done
	s.push(burstMax)
	return r
}

// isendAttended is isendBytes for a caller that makes progress until it is done.
func (s *sender) isendAttended(env match.Envelope, dest int, buf []byte) *Request {
	s.ep.delegator.attended = true
	r := s.isendBytes(env, dest, buf)
	s.ep.delegator.attended = false
	return r
}

// isendCopy is isend of a copy of buf. Its memory is kept for reuse, unless it is long: new memory
// costs a page fault for every 4 KiB, and wakes the garbage collector.
func (s *sender) isendCopy(env match.Envelope, dest int, buf []byte) *Request {
	if len(buf) > copyMax {
		return s.isend(env, dest, data{buf: slices.Clone(buf)}, false)
	}
	m := s.ep.match.messages.get(len(buf))
	copy(m.data, buf)
	r := s.isend(env, dest, data{buf: m.data}, false)
	if r.state == done {
		s.ep.match.messages.put(m)
	} else {
		r.answer = m
	}
	return r
}

func (s *sender) isend(env match.Envelope, dest int, d data, sync bool) *Request {
	p := &s.ep.peers[dest]
	r := s.ep.requests.request(int32(dest), nil)
	r.data = d
	r.entry.Envelope = env
	r.total = uint64(d.len())
	r.st = Status{Source: int32(dest), Tag: env.Tag, Bytes: d.len()}
	switch {
	case !s.ep.failures.open(p, env):
		if p.err == nil {
			r.fail(s.ep.failures.broken(env))
		} else {
			r.fail(p.err)
		}
	case p.self:
		s.sendSelf(r, sync)
	default:
		if r.state = sendRTS; s.unasked(p, r, sync) {
			r.state = sendEager
		}
		s.advanceOrQueue(r)
		s.push(burstMax)
	}
	return r
}

// unasked decides whether a message begins without an RTS, whole or in pieces. How it
// crosses after one, its receiver decides (rendezvous.clear).
func (s *sender) unasked(p *peer, r *Request, sync bool) bool {
	switch n := int(r.total); {
	case p.eagerMax < 0:
		return false
	case sync && n > int(p.eagerMax):
		return false
	case sync:
		r.notice = kindSync
		return true
	case n > int(p.plainMax) && s.ep.lanes.takes(p, n):
		r.notice = kindLinked
		return true
	case p.channel != nil && n > int(p.plainMax) && p.answered: // alone
		p.answered = false
		return n <= int(p.eagerCap) && p.tune.try()
	case n <= int(p.eagerMax), n <= int(p.eagerCap) && p.tune.try():
		return true
	case s.ep.pieces.fits(p, r, n):
		r.notice = kindHead
		return true
	}
	return false
}

// push lets what was posted go out when it is more than n messages. verbs puts
// the first one after a step on the wire at once and gathers those that follow
// until the next step. So single messages never wait, a blocking send neither,
// and nonblocking ones share frames: they go by the dozen, or with the next
// call that waits.
func (s *sender) push(n int) {
	if s.ep.net.posts > n && !s.ep.poller.polling {
		s.ep.step()
	}
}

// flush lets go out what waits for others.
func (s *sender) flush() {
	s.ep.near.flush()
	s.push(1)
}

// sending says which message sender.eager is to send.
type sending uint8

const (
	alone  sending = iota
	burst          // others may follow at once
	queued         // it has waited for its turn, and may go whatever its length
)

// eager sends a whole message at once. false means that it must not, or no room; then
// nothing happened.
func (s *sender) eager(p *peer, context uint32, tag int32, v view, how sending) (ok bool) {
	ep, n := s.ep, v.len()
	if how != queued && (!p.takes(n) || !ep.failures.open(p, match.Envelope{Context: context, Tag: tag})) {
		return false
	}
	f := header{kind: kindEager, context: context, source: ep.rank, tag: tag}
	h := f.pack()
	near := p.channel != nil
	switch {
	case !near:
		if ok = ep.net.eager(p, h, v, how); ok {
			ep.inviter.plain(p, context, tag)
		}
	case how == burst:
		ok = ep.near.eager(p, h, v, n)
	default:
		ok = ep.near.put(p, h, v, n, how)
	}
	if ok {
		ep.groups.counted(context, near)
	}
	return ok
}

// piece sends a header and n bytes of a message behind it; see network.sendBuffer for more.
// false means no room.
func (s *sender) piece(p *peer, h front, v view, n int, more verbs.SendFlags) bool {
	if p.channel != nil {
		return s.ep.near.put(p, h, v, n, queued)
	}
	return s.ep.net.sendBuffer(p, h, v, n, more)
}

// postSync sends a whole message that the receiver answers when a receive meets it.
func (s *sender) postSync(r *Request, p *peer) bool {
	ep, near := s.ep, p.channel != nil
	h := header{kind: kindSync, context: r.entry.Context, source: ep.rank, tag: r.entry.Tag, id: r.wireID()}
	if !s.piece(p, h.pack(), r.data.view(), int(r.total), 0) {
		return false
	}
	if !near {
		ep.inviter.plain(p, h.context, h.tag)
	}
	ep.groups.counted(h.context, near)
	r.state = waitCTS
	return true
}

// word sends the first n bytes of s.head. r is told when they have arrived, unless they are
// there at once; nil: no request is. false means no room.
func (s *sender) word(p *peer, n int, r *Request) bool {
	if p.channel != nil {
		return s.ep.near.word(p, s.head[:n])
	}
	return s.ep.net.sendInline(p, s.head[:n], r)
}

// advance posts what r is about to post. false means no room yet.
func (s *sender) advance(r *Request) bool {
	ep := s.ep
	p := &ep.peers[r.peer]
	switch r.state {
	case sendEager:
		switch {
		case r.notice == kindLinked:
			return ep.lanes.post(r, p)
		case r.written == 0 && (p.eagerMax < 0 || r.notice != kindHead && r.total > uint64(p.eagerCap)):
			r.state, r.notice = sendRTS, 0 // the peer has asked for that meanwhile, or there is no channel to it
			return ep.rendezvous.postRTS(r, p)
		case r.notice == kindHead:
			return ep.pieces.post(r, p)
		case r.notice == kindSync:
			return s.postSync(r, p)
		}
		if !s.eager(p, r.entry.Context, r.entry.Tag, r.data.view(), queued) {
			return false
		}
		r.complete()
	case sendRTS:
		return ep.rendezvous.postRTS(r, p)
	case sendCTS:
		return ep.rendezvous.postCTS(r, p)
	case sendRead:
		return ep.reads.post(r, p)
	case sendData:
		return ep.rendezvous.postData(r, p)
	case sendAgain:
		return ep.lanes.postAgain(r, p)
	case sendNotice:
		return s.postNotice(r, p)
	case sendWrite:
		return ep.actives.postWrites(r, p)
	case sendActive:
		return ep.actives.postAnswer(r, p)
	default:
		panic("p2p: a request that has nothing to post is queued")
	}
	return true
}

// sendSelf delivers to the own rank.
func (s *sender) sendSelf(r *Request, sync bool) {
	ep := s.ep
	env := r.entry.Envelope
	if e := ep.match.posted.Match(env); e != nil {
		e.Owner.deliverSelf(env, r)
		return
	}
	eager := r.total <= uint64(ep.peers[ep.rank].eagerMax) && !sync && !ep.match.full()
	n := 0
	if eager {
		n = int(r.total)
	}
	m := ep.match.messages.get(n)
	m.entry.Envelope = env
	m.kind, m.size = kindEager, r.total
	if eager {
		r.data.view().copyTo(m.data)
		r.complete()
	} else {
		m.self, m.id = r, r.gen
		r.state = waitCTS
	}
	ep.match.keep(m, ep.rank)
}

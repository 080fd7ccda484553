package p2p

import (
	"errors"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// burstMax is how many nonblocking sends wait for one another before they go
// out at the latest. A frame costs the sender as much as ten short messages: in
// windows of 64 messages of 8 bytes bursts of 16 made 1.7 million messages a
// second, of 32 2.0, of 64 2.6, and long messages lost nothing by it.
const burstMax = 64

// sender brings messages, and words of our own, to the transport that leads to their peer,
// each peer's in their order.
type sender struct {
	ep    *Endpoint
	stuck peerQueue // with requests for which there was no room
}

// send is Send for those inside.
func (s *sender) send(env match.Envelope, dest int, buf []byte) error {
	ep := s.ep
	p := &ep.peers[dest]
	eager := len(buf) <= int(p.eagerMax) && p.ready() && ep.failures.open(p, env)
	if eager && p.channel != nil && ep.near.putEager(env, p, buf) {
		return nil
	}
	d := data{buf: buf}
	if eager && s.postEager(env, p, dest, &d) {
		s.push(1)
		return nil
	}
	if p.self && s.stranded(p, env, len(buf)) {
		return &Error{Code: Deadlock, Peer: dest, Detail: "a blocking send of this size to the own rank waits for a receive that is not posted: post it with Irecv first, or use Sendrecv"}
	}
	_, err := s.isend(env, dest, d, false).wait()
	return err
}

// stranded reports whether a blocking send of n bytes to the own rank can never
// end: its receive is not posted, and there is no other goroutine that could.
func (s *sender) stranded(p *peer, env match.Envelope, n int) bool {
	ep := s.ep
	return ep.lock == nil && (n > int(p.eagerMax) || ep.match.full()) && ep.failures.open(p, env) && ep.match.posted.Find(env) == nil
}

// trySend is Inside.TrySend.
func (s *sender) trySend(env match.Envelope, dest int, buf []byte) bool {
	ep := s.ep
	p := &ep.peers[dest]
	eager := len(buf) <= int(p.eagerMax) && p.ready() && ep.failures.open(p, env)
	if eager && p.channel != nil && ep.near.putEager(env, p, buf) {
		return true
	}
	d := data{buf: buf}
	if !eager || !s.postEager(env, p, dest, &d) {
		return false
	}
	s.push(burstMax)
	return true
}

// trySendTyped is Inside.TrySendTyped.
func (s *sender) trySendTyped(env match.Envelope, dest int, cur dtype.Cursor) bool {
	p, d := &s.ep.peers[dest], dataOf(cur)
	if d.len() > int(p.eagerMax) || !p.ready() || !s.ep.failures.open(p, env) || !s.postEager(env, p, dest, &d) {
		return false
	}
	s.push(burstMax)
	return true
}

// open reports whether messages may go to a peer: nobody who matters is lost.
func (fs *failures) open(p *peer, env match.Envelope) bool {
	return !fs.impaired || p.err == nil && fs.broken(env) == nil
}

// isendBytes is isend of bytes that lie side by side. Of a short message that goes
// at once, as most do, the request holds the result and nothing else.
func (s *sender) isendBytes(env match.Envelope, dest int, buf []byte) *Request {
	ep := s.ep
	p := &ep.peers[dest]
	if len(buf) > int(p.eagerMax) || !p.ready() || !ep.failures.open(p, env) || !s.dispatch(env, p, int32(dest), buf) {
		return s.isend(env, dest, data{buf: buf}, false)
	}
	r := ep.requests.spare()
	r.st = Status{Source: int32(dest), Tag: env.Tag, Bytes: len(buf)}
	r.state = done
	s.push(burstMax)
	return r
}

// dispatch copies a message into a channel or into a batch. false means that neither
// will do.
func (s *sender) dispatch(env match.Envelope, p *peer, rank int32, buf []byte) bool {
	ep := s.ep
	switch {
	case p.channel != nil:
		return ep.near.isend(env, p, buf)
	case len(buf) > batchedMax, ep.net.posts == 0 && !p.bursts.waits():
		return false
	}
	room := ep.net.appendBatch(env, p, rank, len(buf))
	if room == nil {
		return false
	}
	copy(room, buf)
	ep.groups.counted(env.Context, false)
	return true
}

func (s *sender) isend(env match.Envelope, dest int, d data, sync bool) *Request {
	ep := s.ep
	p := &ep.peers[dest]
	n := d.len()
	r := ep.requests.request(int32(dest), nil)
	r.data = d
	r.entry.Envelope = env
	r.total = uint64(n)
	r.st = Status{Source: int32(dest), Tag: env.Tag, Bytes: n}
	switch {
	case ep.failures.impaired && !ep.failures.open(p, env):
		if p.err == nil {
			r.fail(ep.failures.broken(env))
		} else {
			r.fail(p.err)
		}
	case p.self:
		s.sendSelf(r, sync)
	default:
		r.state = sendRTS
		switch {
		case sync:
		case n <= int(p.eagerMax), n <= int(p.eagerCap) && p.eagerMax >= 0 && p.tune.try():
			r.state = sendEager
		case ep.pieces.fits(p, r, n):
			r.state = sendSplit
		}
		s.advanceOrQueue(r)
		s.push(burstMax)
	}
	return r
}

// push lets what was posted go out when it is more than n messages. verbs puts
// the first one after a step on the wire at once and gathers those that follow
// until the next step. So single messages never wait, a blocking send neither,
// and nonblocking ones share frames: they go by the dozen, or with the next
// call that waits.
func (s *sender) push(n int) {
	ep := s.ep
	if ep.net.posts > n && !ep.poller.polling {
		ep.step()
	}
}

// flush lets go out what waits for others.
func (s *sender) flush() {
	s.ep.near.flush()
	s.push(1)
}

// postEager posts header and data in one Send. false means no room; then
// nothing happened.
func (s *sender) postEager(env match.Envelope, p *peer, dest int, d *data) bool {
	ep := s.ep
	h := header{kind: kindEager, context: env.Context, source: ep.rank, tag: env.Tag}
	n := d.len()
	if n <= batchedMax && p.channel == nil && ep.net.posts > 0 {
		if room := ep.net.appendBatch(env, p, int32(dest), n); room != nil {
			d.peek(room)
			ep.groups.counted(env.Context, false)
			return true
		}
	}
	if n <= ep.net.inlineMax && p.channel == nil {
		h.put(ep.net.head[:])
		d.peek(ep.net.head[headerLen : headerLen+n])
		if !s.postInline(p, int32(dest), headerLen+n) {
			return false
		}
		ep.groups.counted(env.Context, false)
		return true
	}
	if !s.postBuffer(&h, p, int32(dest), d, n) {
		return false
	}
	ep.groups.counted(env.Context, p.channel != nil)
	return true
}

// postBuffer posts a header and the next n bytes of d in one Send from a buffer
// of ours. false means no room; then nothing happened.
func (s *sender) postBuffer(h *header, p *peer, rank int32, d *data, n int) bool {
	ep := s.ep
	if p.channel != nil {
		return ep.near.put(p, h, d, n)
	}
	free := len(ep.net.txFree)
	if free == 0 {
		ep.Stats.Queued++
		return false
	}
	slot := ep.net.txFree[free-1]
	b := ep.net.tx.get(slot, headerLen+n)
	h.put(b)
	d.peek(b[headerLen:])
	wr := &ep.net.long
	wr.WRID = wrBuffer | uint64(rank)<<wrPeerShift | uint64(slot)
	wr.SGL[0] = verbs.SGE{Addr: ep.net.tx.addr(slot), Length: uint32(len(b)), LKey: ep.net.tx.mr.LKey()}
	if !ep.net.post(p, wr) {
		return false
	}
	ep.net.txFree = ep.net.txFree[:free-1]
	p.buffered++
	if len(b) > ep.net.maxSeg {
		ep.net.posts = burstMax + 1 // only its first datagram has left: the rest needs a step
	}
	return true
}

// post hands a work request to the queue pair that leads to p. Everything that
// is sent through the network passes here. false means no room.
func (nw *network) post(p *peer, wr *verbs.SendWR) bool {
	if p == nw.batch.to && !nw.flushBatch() { // it is before this one
		return false
	}
	wr.AH = p.ah
	var err error
	if p.rel != nil {
		err = nw.rel.PostSend(p.rel, wr)
	} else {
		err = p.qp.PostSend(wr)
	}
	if err != nil {
		return nw.refused(err)
	}
	nw.posts++
	nw.latest = p
	if p.used = true; p.watched {
		nw.ep.count(p, wr)
	}
	return true
}

// postInline posts the first n bytes of ep.head. Nobody is told when they have
// arrived, only when they have not.
func (s *sender) postInline(p *peer, rank int32, n int) bool {
	ep := s.ep
	if p.channel != nil {
		return ep.near.putHead(p, n)
	}
	wr := &ep.net.inline
	wr.WRID = wrNone | uint64(rank)<<wrPeerShift
	wr.Flags = verbs.Inline
	wr.InlineData = ep.net.head[:n]
	return ep.net.post(p, wr)
}

// postSignaled is postInline for the last word of a request: the completion
// comes back to r.
func (s *sender) postSignaled(p *peer, r *Request, n int) bool {
	ep := s.ep
	if p.channel != nil {
		return ep.near.putHead(p, n) // it is there, and r has nothing in flight
	}
	wr := &ep.net.inline
	wr.WRID = wrRequest | uint64(r.peer)<<wrPeerShift | uint64(r.wireID())
	wr.Flags = verbs.Inline | verbs.Signaled
	wr.InlineData = ep.net.head[:n]
	if !ep.net.post(p, wr) {
		return false
	}
	r.inFlight++
	return true
}

// refused counts a full queue. Any other refusal of a request that we built is
// a bug of ours.
func (nw *network) refused(err error) bool {
	if !errors.Is(err, verbs.ErrQueueFull) {
		panic("p2p: verbs refused a work request: " + err.Error())
	}
	nw.ep.Stats.Queued++
	return false
}

// advance posts what r is about to post. false means no room yet.
func (s *sender) advance(r *Request) bool {
	ep := s.ep
	p := &ep.peers[r.peer]
	switch r.state {
	case sendEager:
		if p.eagerMax < 0 || r.total > uint64(p.eagerCap) { // the peer has asked for that meanwhile, or there is no channel to it
			r.state = sendRTS
			return ep.rendezvous.postRTS(r, p)
		}
		if !s.postEager(r.entry.Envelope, p, int(r.peer), &r.data) {
			return false
		}
		r.complete()
	case sendSplit:
		if r.written == 0 && p.eagerMax < 0 {
			r.state = sendRTS
			return ep.rendezvous.postRTS(r, p)
		}
		return ep.pieces.post(r, p)
	case sendRTS:
		return ep.rendezvous.postRTS(r, p)
	case sendCTS:
		return ep.writes.postCTS(r, p)
	case sendRead:
		return ep.reads.post(r, p)
	case sendData:
		return ep.writes.postData(r, p)
	case sendNotice:
		return s.postNotice(r, p)
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
		r.data.peek(m.data)
		r.complete()
	} else {
		m.self, m.id = r, r.gen
		r.state = matchSelf
	}
	ep.match.keep(m, ep.rank)
}

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

// send is Send for those inside.
func (ep *Endpoint) send(env match.Envelope, dest int, buf []byte) error {
	p := &ep.peers[dest]
	eager := len(buf) <= int(p.eagerMax) && p.ready() && ep.open(p, env)
	if eager && p.channel != nil && ep.putEager(env, p, buf) {
		return nil
	}
	d := data{buf: buf}
	if eager && ep.postEager(env, p, dest, &d) {
		ep.push(1)
		return nil
	}
	if p.self && ep.stranded(p, env, len(buf)) {
		return &Error{Code: Deadlock, Peer: dest, Detail: "a blocking send of this size to the own rank waits for a receive that is not posted: post it with Irecv first, or use Sendrecv"}
	}
	_, err := ep.isend(env, dest, d, false).wait()
	return err
}

// stranded reports whether a blocking send of n bytes to the own rank can never
// end: its receive is not posted, and there is no other goroutine that could.
func (ep *Endpoint) stranded(p *peer, env match.Envelope, n int) bool {
	return ep.lock == nil && (n > int(p.eagerMax) || ep.full()) && ep.open(p, env) && ep.posted.Find(env) == nil
}

// trySend is Inside.TrySend.
func (ep *Endpoint) trySend(env match.Envelope, dest int, buf []byte) bool {
	p := &ep.peers[dest]
	eager := len(buf) <= int(p.eagerMax) && p.ready() && ep.open(p, env)
	if eager && p.channel != nil && ep.putEager(env, p, buf) {
		return true
	}
	d := data{buf: buf}
	if !eager || !ep.postEager(env, p, dest, &d) {
		return false
	}
	ep.push(burstMax)
	return true
}

// trySendTyped is Inside.TrySendTyped.
func (ep *Endpoint) trySendTyped(env match.Envelope, dest int, cur dtype.Cursor) bool {
	p, d := &ep.peers[dest], dataOf(cur)
	if d.len() > int(p.eagerMax) || !p.ready() || !ep.open(p, env) || !ep.postEager(env, p, dest, &d) {
		return false
	}
	ep.push(burstMax)
	return true
}

// open reports whether messages may go to a peer: nobody who matters is lost.
func (ep *Endpoint) open(p *peer, env match.Envelope) bool {
	return !ep.impaired || p.err == nil && ep.broken(env) == nil
}

// isendBytes is isend of bytes that lie side by side. Of a short message that goes
// at once, as most do, the request holds the result and nothing else.
func (ep *Endpoint) isendBytes(env match.Envelope, dest int, buf []byte) *Request {
	p := &ep.peers[dest]
	if len(buf) > int(p.eagerMax) || !p.ready() || !ep.open(p, env) || !ep.dispatch(env, p, int32(dest), buf) {
		return ep.isend(env, dest, data{buf: buf}, false)
	}
	r := ep.spare()
	r.st = Status{Source: int32(dest), Tag: env.Tag, Bytes: len(buf)}
	r.state = done
	ep.push(burstMax)
	return r
}

// dispatch copies a message into a channel or into a batch. false means that neither
// will do.
func (ep *Endpoint) dispatch(env match.Envelope, p *peer, rank int32, buf []byte) bool {
	switch {
	case p.channel != nil:
		return ep.isendNear(env, p, buf)
	case len(buf) > batchedMax, ep.posts == 0 && !p.bursts.waits():
		return false
	}
	room := ep.appendBatch(env, p, rank, len(buf))
	if room == nil {
		return false
	}
	copy(room, buf)
	ep.counted(env.Context, false)
	return true
}

func (ep *Endpoint) isend(env match.Envelope, dest int, d data, sync bool) *Request {
	p := &ep.peers[dest]
	n := d.len()
	r := ep.request(int32(dest), nil)
	r.data = d
	r.entry.Envelope = env
	r.total = uint64(n)
	r.st = Status{Source: int32(dest), Tag: env.Tag, Bytes: n}
	switch {
	case ep.impaired && !ep.open(p, env):
		if p.err == nil {
			r.fail(ep.broken(env))
		} else {
			r.fail(p.err)
		}
	case p.self:
		ep.sendSelf(r, sync)
	default:
		r.state = sendRTS
		switch {
		case sync:
		case n <= int(p.eagerMax), n <= int(p.eagerCap) && p.eagerMax >= 0 && p.tune.try():
			r.state = sendEager
		case ep.splits(p, r, n):
			r.state = sendSplit
		}
		ep.advanceOrQueue(r)
		ep.push(burstMax)
	}
	return r
}

// push lets what was posted go out when it is more than n messages. verbs puts
// the first one after a step on the wire at once and gathers those that follow
// until the next step. So single messages never wait, a blocking send neither,
// and nonblocking ones share frames: they go by the dozen, or with the next
// call that waits.
func (ep *Endpoint) push(n int) {
	if ep.posts > n && !ep.polling {
		ep.step()
	}
}

// flush lets go out what waits for others.
func (ep *Endpoint) flush() {
	ep.flushChannelBatch()
	ep.push(1)
}

// postEager posts header and data in one Send. false means no room; then
// nothing happened.
func (ep *Endpoint) postEager(env match.Envelope, p *peer, dest int, d *data) bool {
	h := header{kind: kindEager, context: env.Context, source: ep.rank, tag: env.Tag}
	n := d.len()
	if n <= batchedMax && p.channel == nil && ep.posts > 0 {
		if room := ep.appendBatch(env, p, int32(dest), n); room != nil {
			d.peek(room)
			ep.counted(env.Context, false)
			return true
		}
	}
	if n <= ep.inlineMax && p.channel == nil {
		h.put(ep.head[:])
		d.peek(ep.head[headerLen : headerLen+n])
		if !ep.postInline(p, int32(dest), headerLen+n) {
			return false
		}
		ep.counted(env.Context, false)
		return true
	}
	if !ep.postBuffer(&h, p, int32(dest), d, n) {
		return false
	}
	ep.counted(env.Context, p.channel != nil)
	return true
}

// postBuffer posts a header and the next n bytes of d in one Send from a buffer
// of ours. false means no room; then nothing happened.
func (ep *Endpoint) postBuffer(h *header, p *peer, rank int32, d *data, n int) bool {
	if p.channel != nil {
		return ep.put(p, h, d, n)
	}
	free := len(ep.txFree)
	if free == 0 {
		ep.Stats.Queued++
		return false
	}
	slot := ep.txFree[free-1]
	b := ep.tx.get(slot, headerLen+n)
	h.put(b)
	d.peek(b[headerLen:])
	wr := &ep.long
	wr.WRID = wrBuffer | uint64(rank)<<wrPeerShift | uint64(slot)
	wr.SGL[0] = verbs.SGE{Addr: ep.tx.addr(slot), Length: uint32(len(b)), LKey: ep.tx.mr.LKey()}
	if !ep.post(p, wr) {
		return false
	}
	ep.txFree = ep.txFree[:free-1]
	p.buffered++
	if len(b) > ep.maxSeg {
		ep.posts = burstMax + 1 // only its first datagram has left: the rest needs a step
	}
	return true
}

// post hands a work request to the queue pair that leads to p. Everything that
// is sent through the network passes here. false means no room.
func (ep *Endpoint) post(p *peer, wr *verbs.SendWR) bool {
	if p == ep.batch.to && !ep.flushBatch() { // it is before this one
		return false
	}
	wr.AH = p.ah
	var err error
	if p.rel != nil {
		err = ep.rel.PostSend(p.rel, wr)
	} else {
		err = p.qp.PostSend(wr)
	}
	if err != nil {
		return ep.refused(err)
	}
	ep.posts++
	ep.latest = p
	if p.used = true; p.watched {
		ep.count(p, wr)
	}
	return true
}

// postInline posts the first n bytes of ep.head. Nobody is told when they have
// arrived, only when they have not.
func (ep *Endpoint) postInline(p *peer, rank int32, n int) bool {
	if p.channel != nil {
		return ep.putHead(p, n)
	}
	wr := &ep.inline
	wr.WRID = wrNone | uint64(rank)<<wrPeerShift
	wr.Flags = verbs.Inline
	wr.InlineData = ep.head[:n]
	return ep.post(p, wr)
}

// postSignaled is postInline for the last word of a request: the completion
// comes back to r.
func (ep *Endpoint) postSignaled(p *peer, r *Request, n int) bool {
	if p.channel != nil {
		return ep.putHead(p, n) // it is there, and r has nothing in flight
	}
	wr := &ep.inline
	wr.WRID = wrRequest | uint64(r.peer)<<wrPeerShift | uint64(r.wireID())
	wr.Flags = verbs.Inline | verbs.Signaled
	wr.InlineData = ep.head[:n]
	if !ep.post(p, wr) {
		return false
	}
	r.inFlight++
	return true
}

// refused counts a full queue. Any other refusal of a request that we built is
// a bug of ours.
func (ep *Endpoint) refused(err error) bool {
	if !errors.Is(err, verbs.ErrQueueFull) {
		panic("p2p: verbs refused a work request: " + err.Error())
	}
	ep.Stats.Queued++
	return false
}

// advance posts what r is about to post. false means no room yet.
func (ep *Endpoint) advance(r *Request) bool {
	p := &ep.peers[r.peer]
	switch r.state {
	case sendEager:
		if p.eagerMax < 0 || r.total > uint64(p.eagerCap) { // the peer has asked for that meanwhile, or there is no channel to it
			r.state = sendRTS
			return ep.postRTS(r, p)
		}
		if !ep.postEager(r.entry.Envelope, p, int(r.peer), &r.data) {
			return false
		}
		r.complete()
	case sendSplit:
		if r.written == 0 && p.eagerMax < 0 {
			r.state = sendRTS
			return ep.postRTS(r, p)
		}
		return ep.postSplit(r, p)
	case sendRTS:
		return ep.postRTS(r, p)
	case sendCTS:
		return ep.postCTS(r, p)
	case sendRead:
		return ep.postReads(r, p)
	case sendData:
		return ep.postData(r, p)
	case sendNotice:
		return ep.postNotice(r, p)
	case sendWrite:
		return (*actives)(ep).postWrites(r, p)
	case sendActive:
		return (*actives)(ep).postAnswer(r, p)
	default:
		panic("p2p: a request that has nothing to post is queued")
	}
	return true
}

// sendSelf delivers to the own rank.
func (ep *Endpoint) sendSelf(r *Request, sync bool) {
	env := r.entry.Envelope
	if e := ep.posted.Match(env); e != nil {
		e.Owner.deliverSelf(env, r)
		return
	}
	eager := r.total <= uint64(ep.peers[ep.rank].eagerMax) && !sync && !ep.full()
	n := 0
	if eager {
		n = int(r.total)
	}
	m := ep.messages.get(n)
	m.entry.Envelope = env
	m.kind, m.size = kindEager, r.total
	if eager {
		r.data.peek(m.data)
		r.complete()
	} else {
		m.self, m.id = r, r.gen
		r.state = matchSelf
	}
	ep.keep(m, ep.rank)
}

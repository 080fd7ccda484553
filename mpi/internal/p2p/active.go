package p2p

import (
	"math"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// Active messages are for a handler of the receiver, and no receive waits for them.
// They arrive in the order in which they were sent, behind all RDMA Writes that were
// posted to the same rank before and are not Apart: those are placed when the handler is called. A
// handler takes a message in at once, so that there is no memory to run out of: room
// at the sender, and the credits of the transport, are all that holds one back.
// One-sided communication is made of them, and of Writes and Reads (package rma).

// ActiveHandler takes the active messages of a communicator. It is called in a step of
// the engine, inside, and must not wait; it may answer with [Inside.Answer].
type ActiveHandler interface {
	// Active takes a message from a rank of World. The body is the handler's until it
	// returns, and may change meanwhile: what is checked must be read once. False
	// means that our code has not sent this.
	Active(source, what int32, id uint32, body []byte) bool
	// Lost tells that a member of the communicator is lost.
	Lost(source int32)
}

// Server takes the active messages of all communicators, in a process that is in none: a
// ghost. See ActiveHandler.
type Server interface {
	Serve(context uint32, source, what int32, id uint32, body []byte) bool
	Lost(source int32)
}

// actives sends and receives active messages, and Writes and Reads that no receive waits for.
type actives struct {
	ep      *Endpoint
	server  Server       // or nil
	inline  verbs.SendWR // reused: a short Write
	atomic  verbs.SendWR // reused
	answers []header     // to atomics under way, by send buffer
}

// Active is an active message: its body is Head, and behind it Data, or the next Bytes
// before Over where that is not nil. What and ID are for the handler; What is not below
// 0. Nothing of it is needed any more when it is sent.
type Active struct {
	Context uint32
	What    int32
	ID      uint32
	Head    []byte
	Data    []byte
	Over    *dtype.Cursor
	Bytes   int
}

// Size returns how long the body is.
func (a *Active) Size() int {
	if a.Over != nil {
		return len(a.Head) + a.Bytes
	}
	return len(a.Head) + len(a.Data)
}

// Put writes the body. It leaves the cursor where it is.
func (a *Active) Put(b []byte) {
	n := copy(b, a.Head)
	if a.Over == nil {
		copy(b[n:], a.Data)
		return
	}
	cur := *a.Over
	cur.Pack(b[n : n+a.Bytes])
}

// SetActive gives the active messages of a communicator to a handler, until the
// communicator is unregistered.
func (in Inside) SetActive(context uint32, h ActiveHandler) { in.ep.groups.at(context).active = h }

// SetServer gives all active messages to a server, for good. It is called inside.
func (ep *Endpoint) SetServer(s Server) { ep.actives.server = s }

// ActiveMax returns the length of the longest body that may be sent to a rank, through
// shared memory or not. It is the same the other way round.
func (in Inside) ActiveMax(rank int32) int {
	p := &in.ep.peers[rank]
	return max(int(min(p.eagerCap, p.eagerFar)), in.ep.net.inlineMax)
}

// Near reports whether a rank is reached through shared memory, where there are neither
// Writes nor Reads.
func (in Inside) Near(rank int32) bool { return in.ep.peers[rank].channel != nil }

// CanRead reports whether the memory of a rank can be read: not over UD.
func (in Inside) CanRead(rank int32) bool {
	p := &in.ep.peers[rank]
	return p.channel == nil && p.rel == nil
}

// Trouble returns why nothing can be expected from a rank any more, or of the whole
// communicator, or nil.
func (in Inside) Trouble(context uint32, rank int32) error {
	if !in.ep.failures.impaired {
		return nil
	}
	if err := in.ep.peers[rank].err; err != nil {
		return err
	}
	return in.ep.failures.broken(match.Envelope{Context: context, Source: rank})
}

// Lost reports whether a rank, or a ghost, is lost.
func (in Inside) Lost(rank int32) bool { return in.ep.peers[rank].err != nil }

// TryActive sends a message to another rank if there is room for it now. Messages may
// wait for one another, as those of Isend.
func (in Inside) TryActive(rank int32, a *Active) bool {
	p, ok := in.ep.actives.open(rank)
	if !ok || !in.ep.actives.post(p, a) {
		return false
	}
	in.ep.out.push(burstMax)
	return true
}

// Answer is TryActive for handlers: what finds no room is kept, and sent in its turn.
func (in Inside) Answer(rank int32, a *Active) {
	ep := in.ep
	p := &ep.peers[rank]
	if p.err != nil || p.ready() && ep.actives.post(p, a) {
		return
	}
	m := ep.match.messages.get(a.Size())
	a.Put(m.data)
	r := ep.out.notice(rank, header{kind: kindActive, context: a.Context, tag: a.What, id: a.ID}, m.data)
	r.state, r.answer = sendActive, m
	ep.out.advanceOrQueue(r)
}

// open returns a rank to which something may be posted now: there is a way, and nothing
// waits that has to go before.
func (x *actives) open(rank int32) (p *peer, ok bool) {
	p = &x.ep.peers[rank]
	if p.ready() && p.err == nil {
		return p, true
	}
	x.ep.out.reach(p)
	return p, false
}

// post posts a message. false means no room; then nothing happened.
func (x *actives) post(p *peer, a *Active) bool {
	ep, net := x.ep, &x.ep.net
	h := header{kind: kindActive, context: a.Context, source: ep.rank, tag: a.What, id: a.ID}
	n := headerLen + a.Size()
	switch {
	case p.channel != nil:
		ep.near.flush()
		b, ok := p.channel.Reserve(n)
		if !ok {
			return ep.near.noRoom(p)
		}
		h.put(b)
		a.Put(b[headerLen:])
		p.channel.Commit(n)
		p.used = true
		return true
	case n <= headerLen+net.inlineMax:
		h.put(net.head[:])
		a.Put(net.head[headerLen:n])
		return net.sendInline(p, net.head[:n], nil)
	}
	slot, ok := net.take()
	if !ok {
		return false
	}
	b := net.tx.get(slot, n)
	h.put(b)
	a.Put(b[headerLen:])
	return net.postLong(p, &net.long, slot, n)
}

// postAnswer posts an answer that had to wait.
func (x *actives) postAnswer(r *Request, p *peer) bool {
	a := Active{Context: r.entry.Context, What: r.entry.Tag, ID: r.remote, Data: r.data.buf}
	if !x.post(p, &a) {
		return false
	}
	r.complete()
	return true
}

// arrived hands a message to its handler.
func (x *actives) arrived(h *header, body []byte) {
	if x.server != nil {
		if !x.server.Serve(h.context, h.source, h.tag, h.id, body) {
			x.ep.Stats.Malformed++
		}
		return
	}
	g := x.ep.groups.groupOf(h.envelope())
	switch {
	case g == nil || g.active == nil || g.left || g.revoked:
		x.ep.Stats.Stale++ // the user is done with it here
	case !g.has(h.source) && int(h.source) < x.ep.cfg.ranks() || !g.active.Active(h.source, h.tag, h.id, body):
		x.ep.Stats.Malformed++
	}
}

// WriteMax is the length of the longest TryWrite.
func (in Inside) WriteMax() int { return in.ep.net.tx.stride }

// TryWrite writes buf to memory of another rank if there is room for that now (RDMA
// Write). If it reports true, buf may be changed. No rank is told when it is there, but
// messages to the rank come behind it. The rank is not Near.
func (in Inside) TryWrite(rank int32, key uint32, addr uint64, buf []byte) bool {
	p, ok := in.ep.actives.open(rank)
	if !ok || !in.ep.actives.write(p, key, addr, buf) {
		return false
	}
	in.ep.out.push(burstMax)
	return true
}

func (x *actives) write(p *peer, key uint32, addr uint64, buf []byte) bool {
	net := &x.ep.net
	if len(buf) <= headerLen+net.inlineMax {
		wr := &x.inline
		wr.WRID = wrNone | uint64(p.rank)<<wrPeerShift
		wr.RemoteAddr, wr.RKey = addr, key
		wr.InlineData = net.head[:copy(net.head[:], buf)]
		return net.post(p, wr)
	}
	slot, ok := net.take()
	if !ok {
		return false
	}
	copy(net.tx.get(slot, len(buf)), buf)
	wr := &x.ep.rendezvous.wr
	wr.RemoteAddr, wr.RKey = addr, key
	return net.postLong(p, wr, slot, len(buf))
}

// Write writes buf, of any length, to memory of another rank from where it lies. The
// request is done when buf may be changed. See TryWrite, and Apart.
func (in Inside) Write(context uint32, rank int32, key uint32, addr uint64, buf []byte) *Request {
	r := in.ep.actives.oneSided(context, rank, buf)
	if r.state == done {
		return r
	}
	mr, err := in.ep.net.pd.RegMR(buf, 0)
	if err != nil {
		r.fail(&Error{Code: NoMemory, Peer: int(rank), Detail: "cannot register the memory to write from", Err: err})
		return r
	}
	r.mr = mr
	r.grant = grant{rkey: key, addr: addr, size: uint64(len(buf))}
	in.ep.actives.choose(r, putData)
	r.state = sendWrite
	in.ep.out.advanceOrQueue(r)
	return r
}

// Apart reports whether r, which Write has just made, goes over a connection beside datagrams. Then
// messages to the rank may come before it, and when it is done the data is there.
func (r *Request) Apart() bool { return r.state != done && r.grant.linked }

// choose decides which way the data of a Write or a Read goes.
func (x *actives) choose(r *Request, w linkWork) {
	if c := x.ep.net.conn; c != nil && r.total > uint64(x.ep.net.tx.stride) {
		c.choose(r, &x.ep.peers[r.peer], w)
	}
}

// Read reads memory of another rank, as long as buf is, into buf (RDMA Read). The request
// is done when it is there. CanRead says where that is possible. Messages that were sent before
// may come behind it.
func (in Inside) Read(context uint32, rank int32, key uint32, addr uint64, buf []byte) *Request {
	r := in.ep.actives.oneSided(context, rank, buf)
	if r.state == done {
		return r
	}
	r.grant = grant{size: uint64(len(buf))}
	r.offer = offer{rkey: key, addr: addr}
	if !in.ep.reads.start(r) {
		r.fail(&Error{Code: NoMemory, Peer: int(rank), Detail: "cannot register the memory to read into"})
	}
	return r
}

// oneSided makes a request that concerns memory of another rank.
func (x *actives) oneSided(context uint32, rank int32, buf []byte) *Request {
	r := x.ep.requests.request(rank, buf)
	r.notice, r.remote = kindActive, math.MaxUint32 // no request of the peer waits for a FIN
	r.entry.Envelope = match.Envelope{Context: context}
	r.total = uint64(len(buf))
	r.st = Status{Source: rank, Bytes: len(buf)}
	if err := x.ep.peers[rank].err; err != nil {
		r.fail(err)
	}
	return r
}

// postWrites posts what is left of r to be written.
func (x *actives) postWrites(r *Request, p *peer) bool {
	if r.grant.linked && p.link.state != up && !x.ep.net.conn.missed(r, p.link) {
		return true
	}
	for r.written < r.grant.size {
		n := x.ep.rendezvous.writeDirect(r, p, int(r.grant.size-r.written))
		if n == 0 {
			return false
		}
		r.written += uint64(n)
	}
	if r.grant.linked {
		return x.ep.rendezvous.finishLinked(r, p)
	}
	r.state = waitAck
	return true
}

// Region is memory that is registered.
type Region = verbs.MR

// Expose registers memory that other ranks may write and read, and do atomics on.
func (in Inside) Expose(buf []byte) (*Region, error) {
	return in.ep.net.pd.RegMR(buf, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic)
}

package p2p

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// maxMessage is the longest message in bytes: what a status can tell.
const maxMessage = 1<<63 - 1

// rendezvous announces large messages, decides how each crosses, and lets senders write
// into the memory of receivers.
type rendezvous struct {
	ep   *Endpoint
	wr   verbs.SendWR // reused
	most int          // bytes of a Write
}

// postRTS asks the receiver of r for a place to write to.
func (rv *rendezvous) postRTS(r *Request, p *peer) bool {
	ep := rv.ep
	h := header{kind: kindRTS, context: r.entry.Context, source: ep.rank, tag: r.entry.Tag, id: r.wireID()}
	h.put(ep.out.head[:])
	binary.BigEndian.PutUint64(ep.out.head[headerLen:], r.total)
	n, delegated := rtsLen, false
	invited := ep.inviter.find(p, r.entry.Envelope, ep.rank)
	switch {
	case p.channel != nil:
		n = ep.pulls.putOffer(r, p)
	case ep.delegator.takes(r): // this rank may compute, too
		n, delegated = ep.delegator.name(r), true
	case invited >= 0:
	case ep.reads.lends(r, p):
		n = ep.reads.lend(r)
	}
	if !ep.out.word(p, n, nil) {
		return false
	}
	ep.Stats.Rendezvous++
	ep.groups.countsOf(r.entry.Context).Rendezvous++
	r.state, r.asked = waitCTS, true
	p.asked++
	if p.channel == nil {
		sent := &p.sent[r.entry.Context&1]
		sent.asked++
		r.remote = sent.asked
	}
	if delegated {
		ep.delegator.delegate(r)
	}
	if invited >= 0 {
		i := ep.inviter.held[invited]
		ep.inviter.drop(p, invited)
		ep.inviter.accept(r, &i)
	}
	return true
}

// arrivedRTS takes in the announcement of a large message.
func (rv *rendezvous) arrivedRTS(h *header, b []byte) {
	ep := rv.ep
	env, size := h.envelope(), binary.BigEndian.Uint64(b[headerLen:])
	if size > maxMessage {
		ep.Stats.Malformed++
		return
	}
	o := ep.parseOffer(h, b)
	ep.peers[h.source].alone = o.ghost == 0
	if e := ep.match.posted.Match(env); e != nil {
		rv.clear(e.Owner, env, h.id, size, o)
		return
	}
	m := ep.match.messages.get(0)
	m.entry.Envelope = env
	m.kind, m.id, m.size, m.offer = kindRTS, h.id, size, o
	ep.match.keep(m, h.source)
}

// clear answers the RTS that r has met. What does not fit into the buffer of r
// is not asked for, so that nothing can be overrun.
func (rv *rendezvous) clear(r *Request, env match.Envelope, id uint32, size uint64, o offer) {
	ep := rv.ep
	p := &ep.peers[env.Source]
	room := min(uint64(r.data.len()), size)
	r.peer = env.Source
	r.st = Status{Source: env.Source, Tag: env.Tag, Bytes: int(room), Mark: got | ep.match.number(env)}
	r.total = size
	if p.err != nil {
		r.fail(p.err)
		return
	}
	if size > room {
		r.err = truncated(env.Source, size, int(room))
	}
	there := ep.inviter.there(r, &o)
	if r.remote, r.offer = id, o; there {
		ep.delegator.noted(r)
		r.complete()
		return
	}
	r.grant = grant{request: r.wireID(), size: room, stream: r.data.typed || o.near, looks: r.grant.looks}
	if o.near && o.addr != 0 && !r.data.typed {
		ep.pulls.start(r)
		return
	}
	if !ep.delegator.claims(r) && ep.reads.fits(r, p, o) && ep.reads.start(r) {
		return
	}
	if ep.inviter.leaves && (o == (offer{}) || o.ghost != 0) {
		ep.inviter.invite(r, env, &id)
	}
	rv.ask(r)
}

// ask asks for the data of r, with what others may write to.
func (rv *rendezvous) ask(r *Request) {
	ep := rv.ep
	if r.grant.size > 0 && !r.grant.stream {
		mr, err := ep.net.pd.RegMR(r.data.buf[:r.grant.size], verbs.LocalWrite|verbs.RemoteWrite|verbs.SequentialWrite)
		if err != nil {
			// The sender is told that there is no room, so that it ends too.
			r.err = &Error{Code: NoMemory, Peer: int(r.st.Source), Detail: "cannot register the receive buffer", Err: err}
			r.grant.size, r.st.Bytes = 0, 0
		} else {
			r.mr = mr
			r.grant.addr, r.grant.rkey = mr.Addr(), mr.RKey()
		}
	}
	r.state = sendCTS
	ep.out.advanceOrQueue(r)
}

func (rv *rendezvous) postCTS(r *Request, p *peer) bool {
	ep := rv.ep
	h := header{kind: kindCTS, context: r.entry.Context, source: ep.rank, id: r.remote}
	if r.grant.stream {
		h.tag = ctsStream
	}
	h.put(ep.out.head[:])
	r.grant.put(ep.out.head[:])
	n := ctsLen
	if r.offer.ghost != 0 {
		n = ep.delegator.putClaim(r)
	} else if r.offer.number != 0 {
		binary.BigEndian.PutUint32(ep.out.head[ctsLen:], r.offer.number)
		n += numberLen
	}
	if !ep.out.word(p, n, nil) {
		return false
	}
	r.state = waitFIN
	if (r.mr != nil || r.grant.stream) && p.link != nil && p.link.state == up {
		ep.net.conn.expect(r) // the data may come over it
	}
	return true
}

// arrivedCTS starts to send the data.
func (rv *rendezvous) arrivedCTS(h *header, b []byte) {
	ep := rv.ep
	var g grant
	g.get(b)
	g.stream = h.tag == ctsStream || ep.peers[h.source].channel != nil
	r := ep.requests.lookup(h.id)
	switch {
	case len(b) >= ctsLen+numberLen && ep.delegator.vouch(h.source, binary.BigEndian.Uint32(b[ctsLen:])):
		ep.out.notify(int(h.source), kindFIN, 0, g.request) // the ghost is lost that has written it
		return
	case ep.inviter.cleared(h.source, r, g):
		return
	case r == nil || r.state != waitCTS || r.peer != h.source:
		ep.Stats.Stale++
		ep.failures.explain(h)
		ep.out.notify(int(h.source), kindFIN, finFailed, g.request) // or it waits for ever
		return
	case !g.stream && g.size > 0 && g.rkey == 0:
		ep.Stats.Malformed++ // there is nothing to write to
		return
	}
	if r.lent {
		r.unlend()
	}
	rv.begin(r, g)
}

// begin starts to send the data of r to where its receiver has granted.
func (rv *rendezvous) begin(r *Request, g grant) {
	ep := rv.ep
	r.grant = g
	r.grant.size = min(r.grant.size, r.total)
	switch {
	case r.grant.stream || r.data.typed:
		if ep.net.conn != nil && ep.peers[r.peer].channel == nil && r.grant.size > uint64(ep.net.tx.stride) {
			ep.net.conn.choose(r, &ep.peers[r.peer], packedData)
		}
	case !rv.packs(r):
		mr, err := ep.net.pd.RegMR(r.data.buf[:r.grant.size], 0)
		if err != nil {
			// Nothing is written; the FIN tells the receiver so.
			r.err = &Error{Code: NoMemory, Peer: int(r.peer), Detail: "cannot register the send buffer", Err: err}
			r.grant.size = 0
		} else {
			r.mr = mr
			if ep.net.conn != nil {
				ep.net.conn.choose(r, &ep.peers[r.peer], messageData)
			}
		}
	}
	r.state = sendData
	ep.out.advanceOrQueue(r)
}

// packs reports whether the Writes of r go from buffers of ours: a datatype is
// packed there, and what fits into one buffer is copied, which takes less time
// than the acknowledgement that the user's memory would have to wait for.
func (rv *rendezvous) packs(r *Request) bool {
	return r.data.typed || r.grant.size <= uint64(rv.ep.net.tx.stride)
}

// postData posts the data and then the FIN, as far as there is room. There are
// three ways: Writes from where the data lies, Writes from buffers of ours, and a
// stream of messages for receivers that have to unpack. Over a connection the latter two go in
// the same pieces. The memory is the sender's
// again when all Writes from it have come back; the FIN is a copy, so that no
// request waits for its acknowledgement.
func (rv *rendezvous) postData(r *Request, p *peer) bool {
	ep := rv.ep
	if r.grant.linked && p.link.state != up && !ep.net.conn.missed(r, p.link) {
		return true
	}
	for r.written < r.grant.size {
		var n int
		left := int(r.grant.size - r.written)
		switch {
		case r.grant.linked && r.mr == nil:
			n = rv.postPacked(r, p, left)
		case r.grant.stream:
			n = rv.postPiece(r, p, left)
		case rv.packs(r):
			n = rv.writePacked(r, p, left)
		default:
			n = rv.writeDirect(r, p, left)
		}
		if n == 0 {
			return false
		}
		if r.written += uint64(n); r.mr == nil && !r.grant.linked { // else the data is to be whole if it has to go again
			r.data.skip(n)
		}
	}
	switch {
	case r.grant.linked:
		return rv.finishLinked(r, p)
	case r.notice == kindInvite:
		return ep.inviter.postDone(r, p)
	}
	h := header{kind: kindFIN, source: ep.rank, id: r.grant.request}
	if r.err != nil {
		h.tag = finFailed
	}
	h.put(ep.out.head[:])
	var timed *Request
	if r.grant.timed && r.mr == nil {
		timed = r // until the peer has it
	}
	if !ep.out.word(p, headerLen, timed) {
		return false
	}
	if r.state = waitAck; r.inFlight == 0 {
		r.complete() // nothing was written from the user's memory
	}
	return true
}

// writeDirect posts a Write from the user's memory. Like the other two it returns
// how many of the next bytes are on their way, 0 when there is no room.
func (rv *rendezvous) writeDirect(r *Request, p *peer, left int) int {
	n := min(left, rv.most)
	wr := &rv.wr
	wr.WRID = r.workID(wrRequest)
	wr.RemoteAddr, wr.RKey = r.grant.addr+r.written, r.grant.rkey
	wr.SGL[0] = verbs.SGE{Addr: r.mr.Addr() + r.written, Length: uint32(n), LKey: r.mr.LKey()}
	post := (*network).postFor
	if r.grant.linked {
		wr.WRID, post = r.workID(wrLink), (*network).postLink
		if n == left {
			wr.Flags |= verbs.More // the FIN, which takes a system call at both ends if it goes by itself
		}
	}
	posted := post(&rv.ep.net, p, wr, r)
	if wr.Flags = verbs.Signaled; !posted {
		return 0
	}
	return n
}

// writePacked copies into a buffer of ours and posts a Write from there.
func (rv *rendezvous) writePacked(r *Request, p *peer, left int) int {
	net := &rv.ep.net
	slot, ok := net.take()
	if !ok {
		return 0
	}
	n := min(left, net.tx.stride)
	r.data.view().copyTo(net.tx.get(slot, n))
	rv.wr.RemoteAddr, rv.wr.RKey = r.grant.addr+r.written, r.grant.rkey
	if !net.postBuffer(p, &rv.wr, slot, n) {
		net.give(slot)
		return 0
	}
	return n
}

// postPiece posts the next message of a stream, as long as the eager buffers of
// the receiver are.
func (rv *rendezvous) postPiece(r *Request, p *peer, left int) int {
	ep := rv.ep
	h := header{kind: kindData, source: ep.rank, id: r.grant.request}
	n := min(left, max(int(p.eagerTop), ep.net.inlineMax))
	if !ep.out.piece(p, h.pack(), r.data.view(), n, 0) {
		return 0
	}
	return n
}

// arrivedData takes in the next bytes of a stream.
func (rv *rendezvous) arrivedData(h *header, b []byte) {
	r := rv.ep.requests.lookup(h.id)
	if !rv.awaits(r, h, b) || r.grant.linked {
		rv.ep.Stats.Stale++
		return
	}
	r.written += uint64(r.data.fill(b))
}

// awaits reports whether r is a receive that waits for b, which are the next bytes of a stream.
func (rv *rendezvous) awaits(r *Request, h *header, b []byte) bool {
	return r != nil && r.state == waitFIN && r.peer == h.source && r.grant.stream && uint64(len(b)) <= r.grant.size-r.written
}

// arrivedFIN ends a large receive: all data before it is placed.
func (rv *rendezvous) arrivedFIN(h *header) {
	ep := rv.ep
	r := ep.requests.lookup(h.id)
	if ep.inviter.arrivedFIN(h, r) {
		return
	}
	if h.tag == finCancelled && r != nil && r.state == waitCTS && r.peer == h.source {
		r.cancelled()
		return
	}
	if r != nil && ep.delegator.arrivedFIN(h, r) {
		return
	}
	if r != nil && r.state == waitCTS && r.notice == kindSync && r.peer == h.source {
		r.complete()
		return
	}
	if r != nil && (r.state == waitCTS && (r.offered || r.lent) || r.state == lingering && r.lent) && r.peer == h.source {
		if t := ep.peers[r.peer].idle; t != nil && r.err == nil {
			ep.pieces.arrived(t, askedFor, h.id)
		}
		r.complete() // the receiver has it, or will not read it
		return
	}
	if r != nil && r.state == waitPlaced && r.peer == h.source {
		ep.net.conn.placed(r)
		return
	}
	if r == nil || r.state != waitFIN || r.peer != h.source {
		ep.Stats.Stale++
		return
	}
	if r.grant.joint != 0 {
		ep.pulls.settle(r, &ep.peers[r.peer])
		return
	}
	if h.tag == finFailed || r.grant.stream && r.written < r.grant.size {
		r.abandon(match.Envelope{Context: r.entry.Context, Source: h.source, Tag: r.st.Tag})
		return
	}
	r.complete()
}

// cancel takes back a send that is not announced yet or waits in the own rank, and asks
// the receiver of one that is announced to drop it: else it would wait for a receive that
// may never come. What was sent without a question is not worth one.
func (rv *rendezvous) cancel(r *Request) {
	ep := rv.ep
	switch {
	case r.state == sendRTS, r.state == sendEager && r.notice == kindSync:
		ep.peers[r.peer].pending.remove(r)
		r.cancelled()
	case r.state == waitCTS && r.peer == ep.rank:
		if ep.match.withdraw(func(m *message) bool { return m.self == r && m.id == r.gen }) {
			r.cancelled()
		}
	case r.state == waitCTS:
		ep.out.notify(int(r.peer), kindRecall, recallCancel, r.wireID())
	}
}

// cancelled ends a send that no receive has met.
func (r *Request) cancelled() {
	r.st.Mark = Cancelled
	r.complete()
}

// explain tells the source of h, which waits for a message that was given up, what
// it may not know yet of its communicator.
func (fs *failures) explain(h *header) {
	ep := fs.ep
	g := ep.groups.groupOf(h.envelope())
	switch {
	case g == nil:
	case g.revoked:
		ep.out.tell(int(h.source), header{kind: kindRevoke, context: h.context &^ 1}, nil)
	case len(g.lost) > 0:
		ep.out.tell(int(h.source), header{kind: kindLost}, fs.lossList())
	}
}

func gaveUp(rank int32) error {
	return &Error{Code: PeerLost, Peer: int(rank), Detail: fmt.Sprintf("rank %d gave up sending the message, because of an error there", rank)}
}

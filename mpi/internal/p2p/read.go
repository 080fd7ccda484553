package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// A large message can cross the network the other way round than rendezvous.go has
// it: the sender lends its memory with the RTS, and the receiver reads it.
//
//	RTS ->      length, key and address of the data
//	<- Reads    the receiver has found the matching receive, and fetches its pieces
//	<- FIN      the sender may have its memory back
//
// Only the receiver knows when it reads, and a Read of memory that is not lent
// any more would end the association of the two ranks. So a sender that gives up,
// because the communicator was revoked for example, asks for its memory first:
//
//	recall ->   I want it back
//	<- FIN      at once, or behind the Reads that are under way
//
// What a datatype scatters the receiver cannot read, and what one picks out the
// sender does not lend: then a CTS answers the RTS, as ever.

// Rendezvous is how large messages cross the network.
type Rendezvous uint8

// The ways, in the order of config.Rendezvous. RendezvousAuto is the one that was measured to be the better one.
const (
	RendezvousAuto  Rendezvous = iota // RendezvousWrite
	RendezvousWrite                   // the sender writes into the receiver's memory
	RendezvousRead                    // the receiver reads the sender's memory; not over UD
)

func (v Rendezvous) String() string { return config.Rendezvous.Name(uint8(v), "Rendezvous") }

// ErrRendezvous is wrapped when a name is not that of a way.
var ErrRendezvous = errors.New("unknown rendezvous")

// ParseRendezvous is the inverse of String.
func ParseRendezvous(s string) (Rendezvous, error) {
	if i := config.Rendezvous.Index(s); i >= 0 {
		return Rendezvous(i), nil
	}
	return RendezvousAuto, fmt.Errorf("%w %.32q: want %v", ErrRendezvous, s, config.Rendezvous)
}

// reads lets receivers read the memory of senders.
type reads struct {
	ep   *Endpoint
	wr   verbs.SendWR // reused
	most int          // bytes of a Read
}

// Reads are of readPiece bytes at most, and readsMost of them are under way to a
// peer, which it answers one after the other: so it always has one to answer while
// the next is asked for, and it is never asked for more than a few messages' worth
// at a time, however many there are. Verbs hold back everything behind the
// seventeenth (ORD).
const (
	readPiece = 256 << 10
	readsMost = 8
)

// lends reports whether the receiver of r may read its data: they are in one piece,
// and so long that copying them would not free them sooner (see packs).
func (rd *reads) lends(r *Request, p *peer) bool {
	return rd.ep.cfg.Rendezvous == RendezvousRead && p.rel == nil && !r.data.typed && r.total > uint64(rd.ep.net.tx.stride)
}

// lendLen is how much longer an RTS is with which memory is lent.
const lendLen = 12

// lend lets the receiver of r read its data, appends where they lie to an RTS in
// sender.head, and returns how long that is now.
func (rd *reads) lend(r *Request) int {
	ep := rd.ep
	if !r.lent {
		mr, err := ep.net.pd.RegMR(r.data.buf, verbs.RemoteRead)
		if err != nil {
			return rtsLen // too many regions: perhaps there are fewer when it is to be written
		}
		r.mr, r.lent = mr, true
	}
	binary.BigEndian.PutUint32(ep.out.head[rtsLen:], r.mr.RKey())
	binary.BigEndian.PutUint64(ep.out.head[rtsLen+4:], r.mr.Addr())
	return rtsLen + lendLen
}

// unlend ends what lend has begun, for a receiver that does not read.
func (r *Request) unlend() {
	if r.delegated() {
		r.ep.delegator.revoke(r)
		return
	}
	_ = r.mr.Dereg() // see complete
	r.mr, r.lent = nil, false
}

// recall asks the receiver of r, which has failed, or the ghost to let go of its data.
func (r *Request) recall() {
	r.state = lingering
	r.ep.out.notify(int(r.borrower().rank), kindRecall, 0, r.wireID())
}

// mayRead reports whether a peer may be reading what was lent to it.
func (p *peer) mayRead() bool { return p.err == nil && p.saidBye == mono.Never }

// returned ends the sends that have failed, and whose memory a peer had that leaves.
func (rd *reads) returned(rank int32) {
	for _, r := range rd.ep.requests.all {
		if r.state == retracting {
			rd.ep.inviter.answered(r, rank)
		}
		if r.state == lingering && r.lent && r.borrower().rank == rank {
			r.lent = r.mr != nil // no ghost is there to which a delegation is to be revoked
			r.complete()
		}
	}
}

// fits reports whether r reads what was lent to it: it is a receive of plain memory,
// from a rank that is reached through the network.
func (rd *reads) fits(r *Request, p *peer, o offer) bool {
	return o.rkey != 0 && !r.data.typed && rd.ep.cfg.Rendezvous != RendezvousWrite && p.channel == nil && p.rel == nil
}

// start begins to read the data of r. false means that its memory cannot be
// registered.
func (rd *reads) start(r *Request) bool {
	ep := rd.ep
	if r.grant.size > 0 {
		mr, err := ep.net.pd.RegMR(r.data.buf[:r.grant.size], verbs.LocalWrite)
		if err != nil {
			return false
		}
		r.mr = mr
	}
	if r.notice == kindActive {
		ep.actives.choose(r, getData)
	}
	ep.Stats.Reads++
	r.state = sendRead
	ep.out.advanceOrQueue(r)
	return true
}

// post posts the Reads of r that are left, as many as there may be. false means
// that the queue pair has no room.
func (rd *reads) post(r *Request, p *peer) bool {
	if r.grant.linked && p.link.state != up {
		r.unlink()
	}
	for r.written < r.grant.size {
		if p.reading >= readsMost {
			r.state = waitTurn
			p.readers.push(r)
			return true
		}
		n := min(r.grant.size-r.written, uint64(rd.most))
		wr := &rd.wr
		wr.WRID = wrRead | uint64(r.peer)<<wrPeerShift | uint64(r.wireID())
		wr.RemoteAddr, wr.RKey = r.offer.addr+r.written, r.offer.rkey
		wr.SGL[0] = verbs.SGE{Addr: r.mr.Addr() + r.written, Length: uint32(n), LKey: r.mr.LKey()}
		post := (*network).postFor
		if r.grant.linked {
			wr.WRID, post = r.workID(wrLinkRead), (*network).postLink
		}
		if !post(&rd.ep.net, p, wr, r) {
			return false
		}
		p.reading++
		r.written += n
	}
	if r.state = waitRead; r.inFlight == 0 {
		rd.finish(r) // there was no room for anything
	}
	return true
}

// fetched handles the end of a Read.
func (rd *reads) fetched(wc *verbs.WC) {
	ep := rd.ep
	p := &ep.peers[wc.WRID>>wrPeerShift&wrPeerMask]
	p.reading--
	if wc.WRID>>wrKindShift == wrLinkRead>>wrKindShift {
		rd.fetchedLinked(wc)
	} else {
		ep.poller.released(wc)
	}
	if next := p.readers.head; next != nil && p.err == nil {
		p.readers.pop()
		next.state = sendRead
		ep.out.advanceOrQueue(next)
	}
}

// fetchedLinked is poller.released of a Read over a connection beside datagrams. When that has
// broken, nothing is placed any more, and all of the request is read again, in datagrams.
func (rd *reads) fetchedLinked(wc *verbs.WC) {
	ep := rd.ep
	if ep.failures.ended {
		return
	}
	r := ep.requests.lookup(uint32(wc.WRID))
	if r == nil {
		panic("p2p: a Read over a connection completes for a request that has ended")
	}
	if wc.Status != verbs.Success && r.grant.linked && r.state != lingering {
		r.unlink()
		if r.state == waitRead {
			r.state = sendRead
			ep.out.advanceOrQueue(r)
		}
	}
	if r.inFlight--; r.inFlight > 0 {
		return
	}
	switch r.state {
	case waitRead:
		rd.finish(r)
	case lingering:
		r.complete()
	}
}

// finish gives the sender its memory back.
func (rd *reads) finish(r *Request) {
	if r.notice != kindActive {
		rd.ep.out.notify(int(r.peer), kindFIN, 0, r.remote)
	}
	r.complete()
}

// arrivedRecall gives memory back that was lent with an RTS. If it is being read, the
// FIN comes behind that; else it is not read any more.
func (rd *reads) arrivedRecall(h *header) {
	ep := rd.ep
	if h.tag == recallInvite {
		ep.inviter.arrivedRecall(h)
		return
	}
	if ep.delegatee != nil {
		ep.delegatee.arrivedRecall(h.source, h.id, h.tag == recallDrop)
		return
	}
	if h.tag == recallCancel {
		if ep.match.withdraw(func(m *message) bool { return m.announced(h) }) {
			ep.out.notify(int(h.source), kindFIN, finCancelled, h.id)
		}
		return
	}
	for _, r := range ep.requests.all {
		if (r.state == sendRead || r.state == waitTurn || r.state == waitRead) && r.peer == h.source && r.remote == h.id {
			return
		}
	}
	for _, e := range ep.match.unexpected.All() {
		e.Owner.recall(h)
	}
	for _, m := range ep.match.seized {
		m.recall(h)
	}
	ep.out.notify(int(h.source), kindFIN, finFailed, h.id)
}

// recall forgets where the data of m lie, if it is the one that h means.
func (m *message) recall(h *header) {
	if m.announced(h) {
		m.offer = offer{}
	}
}

// announced reports whether m is what the source of h has announced, and means with it.
func (m *message) announced(h *header) bool {
	return (m.kind == kindRTS || m.kind == kindSync) && m.entry.Source == h.source && m.id == h.id
}

// seizes notes that m, whose memory is lent, is in the user's hands, and not among
// those that wait.
func (mt *matching) seizes(m *message) {
	if m.offer.rkey != 0 {
		mt.seized = append(mt.seized, m)
	}
}

// unseizes ends that.
func (mt *matching) unseizes(m *message) {
	mt.seized = slices.DeleteFunc(mt.seized, func(x *message) bool { return x == m })
}

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
// Nobody but the receiver knows when it reads, and a Read of memory that is not lent
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

func (v Rendezvous) String() string {
	if int(v) < len(config.Rendezvous) {
		return config.Rendezvous[v].Name
	}
	return fmt.Sprintf("Rendezvous(%d)", uint8(v))
}

// ErrRendezvous is wrapped when a name is not that of a way.
var ErrRendezvous = errors.New("unknown rendezvous")

// ParseRendezvous is the inverse of String.
func ParseRendezvous(s string) (Rendezvous, error) {
	if i := config.Rendezvous.Index(s); i >= 0 {
		return Rendezvous(i), nil
	}
	return RendezvousAuto, fmt.Errorf("%w %.32q: want %v", ErrRendezvous, s, config.Rendezvous)
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
func (ep *Endpoint) lends(r *Request, p *peer) bool {
	return ep.cfg.Rendezvous == RendezvousRead && p.rel == nil && !r.data.typed && r.total > uint64(ep.tx.stride)
}

// lendLen is how much longer an RTS is with which memory is lent.
const lendLen = 12

// lend lets the receiver of r read its data, appends where they lie to an RTS in
// ep.head, and returns how long that is now.
func (ep *Endpoint) lend(r *Request) int {
	if !r.lent {
		mr, err := ep.pd.RegMR(r.data.buf, verbs.RemoteRead)
		if err != nil {
			return rtsLen // too many regions: perhaps there are fewer when it is to be written
		}
		r.mr, r.lent = mr, true
	}
	binary.BigEndian.PutUint32(ep.head[rtsLen:], r.mr.RKey())
	binary.BigEndian.PutUint64(ep.head[rtsLen+4:], r.mr.Addr())
	return rtsLen + lendLen
}

// unlend ends what lend has begun, for a receiver that does not read.
func (r *Request) unlend() {
	_ = r.mr.Dereg() // see complete
	r.mr, r.lent = nil, false
}

// recall asks the receiver of r, which has failed, to let go of its data.
func (r *Request) recall() {
	r.state = recalled
	r.ep.notify(int(r.peer), kindRecall, 0, r.wireID())
}

// mayRead reports whether a peer may be reading what was lent to it.
func (p *peer) mayRead() bool { return p.err == nil && p.saidBye == mono.Never }

// returned ends the sends that have failed, and whose memory a peer had that leaves.
func (ep *Endpoint) returned(rank int32) {
	for _, r := range ep.requests {
		if r.state == recalled && r.peer == rank {
			r.complete()
		}
	}
}

// reads reports whether r reads what was lent to it: it is a receive of plain memory,
// from a rank that is reached through the network.
func (ep *Endpoint) reads(r *Request, p *peer, o offer) bool {
	return o.rkey != 0 && !r.data.typed && ep.cfg.Rendezvous != RendezvousWrite && p.channel == nil && p.rel == nil
}

// startRead begins to read the data of r. false means that its memory cannot be
// registered.
func (ep *Endpoint) startRead(r *Request) bool {
	if r.grant.size > 0 {
		mr, err := ep.pd.RegMR(r.data.buf[:r.grant.size], verbs.LocalWrite)
		if err != nil {
			return false
		}
		r.mr = mr
	}
	ep.Stats.Reads++
	r.state = sendRead
	ep.advanceOrQueue(r)
	return true
}

// postReads posts the Reads of r that are left, as many as there may be. false means
// that the queue pair has no room.
func (ep *Endpoint) postReads(r *Request, p *peer) bool {
	for r.written < r.grant.size {
		if p.reading >= readsMost {
			r.state = waitRoom
			p.readers.push(r)
			return true
		}
		n := min(r.grant.size-r.written, uint64(ep.maxRead))
		wr := &ep.read
		wr.WRID = wrRead | uint64(r.peer)<<wrPeerShift | uint64(r.wireID())
		wr.RemoteAddr, wr.RKey = r.offer.addr+r.written, r.offer.rkey
		wr.SGL[0] = verbs.SGE{Addr: r.mr.Addr() + r.written, Length: uint32(n), LKey: r.mr.LKey()}
		if !ep.post(p, wr) {
			return false
		}
		p.reading++
		r.inFlight++
		r.written += n
	}
	if r.state = waitRead; r.inFlight == 0 {
		ep.endRead(r) // there was no room for anything
	}
	return true
}

// fetched handles the end of a Read.
func (ep *Endpoint) fetched(wc *verbs.WC) {
	p := &ep.peers[wc.WRID>>wrPeerShift&wrPeerMask]
	p.reading--
	ep.released(wc)
	if next := p.readers.head; next != nil && p.err == nil {
		p.readers.pop()
		next.state = sendRead
		ep.advanceOrQueue(next)
	}
}

// endRead gives the sender its memory back.
func (ep *Endpoint) endRead(r *Request) {
	if r.notice != kindActive {
		ep.notify(int(r.peer), kindFIN, 0, r.remote)
	}
	r.complete()
}

// arrivedRecall gives memory back that was lent with an RTS. If it is being read, the
// FIN comes behind that; else it is not read any more.
func (ep *Endpoint) arrivedRecall(h *header) {
	for _, r := range ep.requests {
		if (r.state == sendRead || r.state == waitRoom || r.state == waitRead) && r.peer == h.source && r.remote == h.id {
			return
		}
	}
	for _, e := range ep.unexpected.All() {
		e.Owner.recall(h)
	}
	for _, m := range ep.seized {
		m.recall(h)
	}
	ep.notify(int(h.source), kindFIN, finFailed, h.id)
}

// recall forgets where the data of m lie, if it is the one that h means.
func (m *message) recall(h *header) {
	if m.kind == kindRTS && m.entry.Source == h.source && m.id == h.id {
		m.offer = offer{}
	}
}

// seizes notes that m, whose memory is lent, is in the user's hands, and not among
// those that wait.
func (ep *Endpoint) seizes(m *message) {
	if m.offer.rkey != 0 {
		ep.seized = append(ep.seized, m)
	}
}

// unseizes ends that.
func (ep *Endpoint) unseizes(m *message) {
	ep.seized = slices.DeleteFunc(ep.seized, func(x *message) bool { return x == m })
}

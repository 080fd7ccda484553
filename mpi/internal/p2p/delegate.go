package p2p

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// A large message may lie in memory that a ghost of the sender's host has mapped. Then the
// sender delegates it: the ghost sends it when its receiver is there, also while the sender
// computes.
//
//	sender                   ghost                    receiver
//	  | -- RTS: ghost, number ------------------------> |
//	  | -- delegate: where --> |                        | has found the matching receive
//	  |                        | <-- claim: a CTS ----- |
//	  |                        | --- Writes, FIN -----> |
//	  | <- FIN ---------------------------------------- |
//
// The receiver alone knows whether it has the message, so it is the one that says that the
// sender may have its memory back. If the ghost is lost, or does not send, the receiver asks
// the sender, with a CTS as ever: what it has got until then is written once more. A sender
// that gives up recalls its memory from the ghost, as it does from a receiver that reads.
//
// Ranks of one host that have a channel need nothing of this: there the receiver copies the
// data from where they lie.

// delegator has ghosts send for this rank, and claims what they send for others.
type delegator struct {
	ep       *Endpoint
	areas    []area
	number   uint32 // of the latest message, from 1 on
	attended bool   // the send that begins is waited for at once, so that this rank does it itself
	sharings []*sharing
	shares   uint32    // number of the latest of these
	ghosts   []int32   // by rank: its ghost; or nil
	vouched  []vouched // messages that have ended here, of which their receivers may not know it
}

// area is memory of this rank that a ghost has mapped.
type area struct {
	mem   []byte
	ghost int32
	key   uint32 // by which the ghost knows it
	addr  uint64 // where it begins for processes that write there
}

// Bytes behind the header.
const (
	nameLen     = 8  // of an RTS: the ghost, and the number
	delegateLen = 40 // key, number, offset, length, receiver, tag, two counts
	claimLen    = ctsLen + 8
	numberLen   = 4 // of a CTS
)

// Delegations is how ghosts send for ranks. It is made of an Inside.
type Delegations struct{ ep *Endpoint }

// Lend lets a ghost, which knows this memory by a key and lets others write it by that and an address,
// send from it and receive into it, until TakeBack.
func (d Delegations) Lend(b []byte, ghost int32, key uint32, addr uint64) {
	d.TakeBack(ghost, key)
	d.ep.delegator.areas = append(d.ep.delegator.areas, area{b, ghost, key, addr})
}

// TakeBack ends that for the messages that follow.
func (d Delegations) TakeBack(ghost int32, key uint32) {
	areas := d.ep.delegator.areas
	for i := range areas {
		if areas[i].ghost == ghost && areas[i].key == key {
			areas[i] = areas[len(areas)-1]
			areas[len(areas)-1] = area{}
			d.ep.delegator.areas = areas[:len(areas)-1]
			return
		}
	}
}

// IsendAttended is Inside.Isend of a rank that makes progress until it is done: it is not
// delegated.
func (d Delegations) IsendAttended(env match.Envelope, dest int, buf []byte) *Request {
	return d.ep.out.isendAttended(env, dest, buf)
}

// IrecvAttended is Inside.Irecv of such a rank, which invites no sender.
func (d Delegations) IrecvAttended(env match.Envelope, buf []byte) *Request {
	return d.ep.match.irecv(env, d.ep.requests.request(env.Source, buf))
}

// delegated reports whether a ghost has the data of r, a send.
func (r *Request) delegated() bool { return r.lent && r.mr == nil }

// borrower returns the peer that may be reading the data of r, which is lent.
func (r *Request) borrower() *peer {
	if r.delegated() {
		return &r.ep.peers[r.offer.ghost]
	}
	return &r.ep.peers[r.peer]
}

// takes reports whether r is delegated, and notes to which ghost. A short message is copied,
// which takes less than a turn of a ghost.
func (d *delegator) takes(r *Request) bool {
	if len(d.areas) == 0 || d.attended || r.data.typed || r.total <= uint64(d.ep.net.tx.stride) {
		return false
	}
	a, off := d.area(r.data.buf, r.total)
	if a == nil {
		return false
	}
	r.offer = offer{ghost: a.ghost, number: d.number + 1, rkey: a.key, addr: off}
	return true
}

// area returns the memory of which the first n bytes of b are a part, and where in it, or nil.
func (d *delegator) area(b []byte, n uint64) (a *area, off uint64) {
	at := mem.AddressOf(b)
	for i := range d.areas {
		a = &d.areas[i]
		off = at - mem.AddressOf(a.mem)
		if size := uint64(len(a.mem)); off < size && n <= size-off && d.ep.peers[a.ghost].err == nil {
			return a, off
		}
	}
	return nil, 0
}

// name appends to an RTS in sender.head which ghost sends r, and returns how long that is now.
func (d *delegator) name(r *Request) int {
	binary.BigEndian.PutUint32(d.ep.out.head[rtsLen:], uint32(r.offer.ghost))
	binary.BigEndian.PutUint32(d.ep.out.head[rtsLen+4:], r.offer.number)
	return rtsLen + nameLen
}

// delegate tells the ghost where the data of r lie, of which the RTS has gone.
func (d *delegator) delegate(r *Request) {
	ep, o := d.ep, &r.offer
	d.number, r.lent = o.number, true
	ep.Stats.Delegated++
	h := header{kind: kindDelegate, context: r.entry.Context, source: ep.rank, id: r.wireID()}
	b := ep.out.head[:headerLen+delegateLen]
	h.put(b)
	binary.BigEndian.PutUint32(b[headerLen:], o.rkey)
	binary.BigEndian.PutUint32(b[headerLen+4:], o.number)
	binary.BigEndian.PutUint64(b[headerLen+8:], o.addr)
	binary.BigEndian.PutUint64(b[headerLen+16:], r.total)
	binary.BigEndian.PutUint32(b[headerLen+24:], uint32(r.peer))
	binary.BigEndian.PutUint32(b[headerLen+28:], uint32(r.entry.Tag))
	binary.BigEndian.PutUint32(b[headerLen+32:], ep.peers[r.peer].sent[r.entry.Context&1].plain)
	binary.BigEndian.PutUint32(b[headerLen+36:], r.remote)
	if p := &ep.peers[o.ghost]; !p.ready() || !ep.out.word(p, len(b), nil) {
		ep.out.tell(int(o.ghost), h, bytes.Clone(b[headerLen:]))
	}
	ep.net.posts = burstMax + 1 // the RTS is not to wait for others: the next call may be late
}

// revoke ends the delegation of r, which its ghost does not send, or need not send any more.
func (d *delegator) revoke(r *Request) {
	r.lent = false
	d.ep.out.notify(int(r.offer.ghost), kindRecall, recallDrop, r.wireID())
}

// claims reports whether r asks a ghost for the data. What a datatype scatters it does not: if
// the ghost is lost in the middle, it could not begin again.
func (d *delegator) claims(r *Request) bool {
	if r.offer.ghost == 0 {
		return false
	}
	p := &d.ep.peers[r.offer.ghost]
	if r.data.typed || r.grant.size == 0 || p.err != nil || p.self || p.channel != nil {
		r.offer.ghost = 0
		return false
	}
	r.peer = r.offer.ghost
	return true
}

// putClaim makes a claim of the CTS of r in sender.head, and returns how long it is.
func (d *delegator) putClaim(r *Request) int {
	b := d.ep.out.head[:claimLen]
	b[0] = byte(kindClaim)
	binary.BigEndian.PutUint32(b[ctsLen:], uint32(r.st.Source))
	binary.BigEndian.PutUint32(b[ctsLen+4:], r.offer.number)
	return claimLen
}

// arrivedFIN takes in the end of a message that was delegated. false: r was not.
func (d *delegator) arrivedFIN(h *header, r *Request) bool {
	switch {
	case r.delegated() && (r.state == waitCTS && r.peer == h.source || r.state == lingering && (r.peer == h.source || r.offer.ghost == h.source)):
		r.lent = false
		r.complete()
	case r.state == waitFIN && r.offer.ghost != 0 && r.peer == h.source:
		if h.tag == finFailed {
			d.fallBack(r)
			break
		}
		d.ep.out.notify(int(r.st.Source), kindFIN, 0, r.remote)
		r.complete()
	default:
		return false
	}
	return true
}

// fallBack has r ask its sender for the data that no ghost sends. The ghost may still be
// there, so its grant ends first.
func (d *delegator) fallBack(r *Request) {
	if r.mr != nil {
		r.deregister()
	}
	r.peer, r.offer.ghost, r.written = r.st.Source, 0, 0
	if err := d.ep.peers[r.peer].err; err != nil {
		r.fail(err)
		return
	}
	d.ep.rendezvous.ask(r)
}

// lost handles that a ghost, or a rank, is lost: receives that wait for the ghost turn to their
// senders, and sends that have failed have their memory back.
func (d *delegator) lost(ghost int32) {
	d.vouched = slices.DeleteFunc(d.vouched, func(v vouched) bool { return v.rank == ghost })
	if int(ghost) < d.ep.cfg.ranks() {
		return
	}
	for _, r := range d.ep.requests.all {
		if r.offer.ghost != ghost || r.peer != ghost {
			continue
		}
		switch r.state {
		case sendCTS:
			d.ep.peers[ghost].pending.remove(r)
			d.fallBack(r)
		case waitFIN:
			d.fallBack(r)
		}
	}
	d.ep.reads.returned(ghost)
}

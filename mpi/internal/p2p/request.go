package p2p

import (
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// state is what a request waits for. The states from sendEager to sendNotice wait
// in peer.pending for room in the queue pair; the others wait for a peer.
type state uint8

const (
	free       state = iota
	posted           // receive: for a message
	sendEager        // to post the message, whole or in pieces
	sendRTS          // to post the RTS
	sendData         // to post the Writes and the FIN
	sendCTS          // receive: to post the CTS
	sendRead         // receive: to post the Reads
	sendWrite        // to post Writes that no receive waits for
	sendActive       // to post an active message
	sendAgain        // to post what has not come over a connection that is broken
	sendNotice       // to post a word of our own
	waitCTS          // for the receiver, or in the own rank for the receive
	waitFIN          // receive: for the data
	waitAck          // for the acknowledgement of what was posted
	waitPlaced       // for the peer's word that it has what went over the connection beside datagrams
	waitRest         // receive: for the rest of the message
	waitTurn         // receive: for its turn to copy from a neighbour, or for others to be read, in peer.readers
	waitRead         // receive: for its Reads
	retracting       // receive: failed or cancelled, but its sender may have the data written by a ghost; it is posted still
	lingering        // failed, but verbs still holds the memory, or a peer it was lent to
	done             // for the user to take the result
)

// waitsForRoom reports whether a request in this state is in peer.pending.
func (s state) waitsForRoom() bool { return s >= sendEager && s <= sendNotice }

// Status is what MPI_Status tells. It has four fields because the compiler keeps
// those in registers; with more, handing it up costs 10 ns per call.
type Status struct {
	Source int32
	Tag    int32
	Bytes  int
	Mark   Mark
}

// Mark says what became of a message: 0 of a send, else that it was received, or
// that it was cancelled.
type Mark uint64

// Cancelled marks an operation that was taken back: there was no message.
const Cancelled Mark = 1 << 63

// got marks a message that was received; below is its number.
const got Mark = 1 << 62

// Got reports whether a message was received.
func (m Mark) Got() bool { return m&got != 0 }

// Number tells a message that was received from others from the same rank with the
// same context and tag: they are counted from 1. It is 0 unless Config.Numbers says
// so.
func (m Mark) Number() uint64 { return uint64(m &^ (got | Cancelled)) }

// Request is an operation under way. Requests are pooled: the caller that
// started one takes its result with Wait or Test, after which the object belongs
// to the pool and has another Generation.
type Request struct {
	// The result, and what the pool needs: all that is touched of a message that is
	// sent at once, 64 bytes.
	ep       *Endpoint
	next     *Request // in the pool or in peer.pending
	err      error
	st       Status
	gen      uint32
	state    state
	detached bool // no caller waits for it: it returns to the pool by itself
	offered  bool // sends: a neighbour may copy the data
	asked    bool // sends: counted in peer.asked

	// What is touched of each receive, in three more cache lines.
	waiter   *waiter // a goroutine that waits for it while another one leads
	mr       *verbs.MR
	answer   *message // active messages, and copies: the memory
	total    uint64   // bytes of the whole message
	written  uint64   // bytes that were posted (sends, Reads) or have come (receives in a stream)
	inFlight int      // signaled work requests of it that verbs holds
	peer     int32    // match.Any for a receive from any rank
	id       uint32
	remote   uint32 // request of the peer; sends that wait for a CTS: number of the RTS
	notice   kind   // of a word of our own; kindHead: the message goes in pieces; kindLinked: its data goes over the connection; kindInvite: to a ghost; kindSync: the receiver answers when a receive meets it
	lent     bool   // sends: the receiver may read the data, which mr is for; or without mr a ghost

	entry match.Entry[Request] // receives: place in the posted queue; sends: context and tag
	offer offer                // receives, and sends that are delegated: where the sender has the data; posted receives: see awaitsSender
	data  data                 // the user's memory, or what is left of it to be sent

	grant grant    // where to write to (sends); what to answer to (receives)
	guard []uint64 // see putOffer
}

// requestLines is a request in memory of whole cache lines.
type requestLines struct {
	request Request
	_       [56]byte
}

// requestPool has all requests.
type requestPool struct {
	ep     *Endpoint
	all    []*Request // by slot
	idle   *Request   // free ones, chained
	active int        // requests whose result the user has not taken
}

// Generation tells the uses of a pooled request apart.
func (r *Request) Generation() uint32 { return r.gen }

// Request ids go over the wire and into work request ids. The upper bits tell
// the uses of one slot apart, so that an answer to an earlier one is noticed.
// The slots suffice for 16 million requests at once, which are 5 GB of them.
const (
	slotBits = 24
	slotMask = 1<<slotBits - 1
)

// request takes a request from the pool.
func (rp *requestPool) request(peer int32, buf []byte) *Request {
	r := rp.spare()
	r.peer, r.data.buf = peer, buf
	r.total, r.written, r.notice = 0, 0, 0
	return r
}

// spare takes a request from the pool of which only the result will be used.
func (rp *requestPool) spare() *Request {
	r := rp.idle
	if r == nil {
		r = &new(requestLines).request
		r.ep, r.id = rp.ep, uint32(len(rp.all))
		r.entry.Owner = r
		rp.all = append(rp.all, r)
	} else {
		rp.idle = r.next
		r.next = nil
	}
	rp.active++
	return r
}

// wireID returns the id under which the peer knows r.
func (r *Request) wireID() uint32 { return r.id | r.gen<<slotBits }

// workID returns the id of a work request of a kind that completes to r.
func (r *Request) workID(kind uint64) uint64 {
	return kind | uint64(r.peer)<<wrPeerShift | uint64(r.wireID())
}

// lookup returns the request with this wire id, or nil when it is not the
// present use of its slot.
func (rp *requestPool) lookup(id uint32) *Request {
	slot := int(id & slotMask)
	if slot >= len(rp.all) {
		return nil
	}
	if r := rp.all[slot]; r.state != free && r.wireID() == id {
		return r
	}
	return nil
}

// deregister ends the registration of the user's memory.
func (r *Request) deregister() {
	// Deregistering our own region only fails when it is no region any
	// more, because the context was closed.
	_ = r.mr.Dereg()
	r.mr, r.lent = nil, false
	if r.grant.timed || r.grant.expects {
		r.ep.net.conn.finished(r)
	}
}

// complete makes the result of r available. verbs holds none of its memory.
func (r *Request) complete() {
	if r.mr != nil {
		r.deregister()
	}
	if r.grant.timed || r.grant.expects {
		r.ep.net.conn.finished(r)
	}
	if r.offered {
		r.withdraw()
	}
	if r.asked {
		r.asked = false
		if r.ep.peers[r.peer].asked--; r.lent {
			r.ep.delegator.revoke(r)
		}
	}
	if r.notice == kindInvite {
		r.ep.inviter.ended(r)
	}
	if r.answer != nil {
		r.ep.match.messages.put(r.answer)
		r.answer = nil
	}
	if r.grant.looks {
		r.ep.lanes.looked(r)
	}
	r.data.clear()
	r.state = done
	if r.waiter != nil {
		r.waiter.wake()
	}
	if r.detached {
		r.ep.requests.release(r)
	}
}

// fail ends r with an error. While verbs still holds memory of it, or a peer that is
// there may be reading it, the memory stays the request's: the result comes when they
// let go.
func (r *Request) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	if r.grant.joint != 0 {
		r.ep.pulls.retract(r)
	}
	switch {
	case r.inFlight > 0:
		r.state = lingering
	case r.state == waitCTS && r.lent && r.borrower().mayRead():
		r.recall()
	default:
		r.complete()
	}
}

func (rp *requestPool) release(r *Request) {
	if !r.detached {
		rp.active--
	}
	r.gen++
	r.state, r.detached, r.err = free, false, nil
	r.st = Status{}
	r.next, rp.idle = rp.idle, r
}

// take hands the result of a finished request to the user and the request to
// the pool.
func (rp *requestPool) take(r *Request) (Status, error) {
	rp.ep.near.flush()
	st, err := r.st, r.err
	rp.release(r)
	return st, err
}

// wait is Wait for those inside.
func (r *Request) wait() (Status, error) {
	st, active, err := r.await()
	if !active {
		return st, err
	}
	r.ep.match.cancel(r)
	st, _ = r.ep.requests.take(r)
	return st, given(err)
}

// await is Await for those inside.
func (r *Request) await() (st Status, active bool, err error) {
	ep := r.ep
	for r.state != done {
		if ep.failures.impaired {
			if err := ep.failures.interruption(r); err != nil {
				return Status{}, true, err
			}
		}
		ep.progress(r)
	}
	st, err = ep.requests.take(r)
	return st, false, err
}

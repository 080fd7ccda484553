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
	matchSelf        // large send to the own rank: for its receive
	sendEager        // to post the message
	sendRTS          // to post the RTS
	sendData         // to post the Writes and the FIN
	sendCTS          // receive: to post the CTS
	sendNotice       // to post a word of our own
	waitCTS          // for the receiver
	waitFIN          // receive: for the data
	waitAck          // for the acknowledgement of what was posted
	pulling          // receive: for its turn to copy from a neighbour
	lingering        // failed, but verbs still holds the memory
	done             // for the user to take the result
)

// waitsForRoom reports whether a request in this state is in peer.pending.
func (s state) waitsForRoom() bool { return s >= sendEager && s <= sendNotice }

// Status is what MPI_Status tells.
type Status struct {
	Source int32
	Tag    int32
	Bytes  int
	// Cancelled says that there was no message: the receive was taken back.
	Cancelled bool
}

// Request is an operation under way. Requests are pooled: whoever started one
// takes its result with Wait or Test, after which the object belongs to the
// pool and has another Generation.
type Request struct {
	entry match.Entry[Request] // receives: place in the posted queue; sends: context and tag
	ep    *Endpoint
	next  *Request // in the pool or in peer.pending
	data  data     // the user's memory, or what is left of it to be sent
	mr    *verbs.MR
	err   error
	st    Status

	peer     int32 // match.Any for a receive from anybody
	state    state
	detached bool // nobody waits for it: it returns to the pool by itself
	inFlight int  // signaled work requests of it that verbs holds
	id       uint32
	gen      uint32
	notice   kind     // of a word of our own
	remote   uint32   // request of the peer
	total    uint64   // bytes of the whole message
	written  uint64   // bytes that were posted (sends) or have come (receives in a stream)
	grant    grant    // where to write to (sends); what to answer to (receives)
	offer    offer    // receives: where a neighbour has the data
	offered  bool     // sends: a neighbour may copy the data
	guard    []uint64 // see putOffer
}

// Generation tells the uses of a pooled request apart.
func (r *Request) Generation() uint32 { return r.gen }

// Done reports whether Wait would return at once: the result is there, or a loss
// makes waiting doubtful.
func (r *Request) Done() bool {
	return r.state == done || r.ep.impaired && r.ep.interruption(r) != nil
}

// Request ids go over the wire and into work request ids. The upper bits tell
// the uses of one slot apart, so that an answer to an earlier one is noticed.
// The slots suffice for 16 million requests at once, which are 5 GB of them.
const (
	slotBits = 24
	slotMask = 1<<slotBits - 1
)

// request takes a request from the pool.
func (ep *Endpoint) request(peer int32, buf []byte) *Request {
	r := ep.idle
	if r == nil {
		r = &Request{ep: ep, id: uint32(len(ep.requests))}
		r.entry.Owner = r
		ep.requests = append(ep.requests, r)
	} else {
		ep.idle = r.next
		r.next = nil
	}
	r.peer, r.data.buf = peer, buf
	ep.active++
	return r
}

// wireID returns the id under which the peer knows r.
func (r *Request) wireID() uint32 { return r.id | r.gen<<slotBits }

// lookup returns the request with this wire id, or nil when it is not the
// present use of its slot.
func (ep *Endpoint) lookup(id uint32) *Request {
	slot := int(id & slotMask)
	if slot >= len(ep.requests) {
		return nil
	}
	if r := ep.requests[slot]; r.state != free && r.wireID() == id {
		return r
	}
	return nil
}

// complete makes the result of r available. verbs holds none of its memory.
func (r *Request) complete() {
	if r.mr != nil {
		// Deregistering our own region only fails when it is no region any
		// more, because the context was closed.
		_ = r.mr.Dereg()
		r.mr = nil
	}
	if r.offered {
		r.withdraw()
	}
	r.data.clear()
	r.state = done
	if r.detached {
		r.ep.release(r)
	}
}

// fail ends r with an error. While verbs still holds memory of it, the memory
// stays the request's: the result comes when verbs lets go.
func (r *Request) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	if r.inFlight > 0 {
		r.state = lingering
		return
	}
	r.complete()
}

func (ep *Endpoint) release(r *Request) {
	if !r.detached {
		ep.active--
	}
	r.gen++
	r.state, r.detached, r.err, r.total, r.written, r.notice = free, false, nil, 0, 0, 0
	r.st = Status{}
	r.next, ep.idle = ep.idle, r
}

// take hands the result of a finished request to the user and the request to
// the pool.
func (ep *Endpoint) take(r *Request) (Status, error) {
	st, err := r.st, r.err
	ep.release(r)
	return st, err
}

// Null returns a request that is done.
func (ep *Endpoint) Null(st Status) *Request {
	r := ep.request(ep.rank, nil)
	r.st = st
	r.complete()
	return r
}

// Wait makes progress until r is done and takes its result. A receive from any
// source that may wait in vain is given up.
func (r *Request) Wait() (Status, error) {
	st, active, err := r.Await()
	if !active {
		return st, err
	}
	r.ep.Cancel(r)
	st, _ = r.ep.take(r)
	return st, given(err)
}

// Await makes progress until r is done and takes its result, or reports that r is
// active still, and may wait in vain.
func (r *Request) Await() (st Status, active bool, err error) {
	ep := r.ep
	for r.state != done {
		if ep.impaired {
			if err := ep.interruption(r); err != nil {
				return Status{}, true, err
			}
		}
		ep.progress()
	}
	st, err = ep.take(r)
	return st, false, err
}

// Progress makes one step, and sleeps until there is more to do when there was
// nothing.
func (r *Request) Progress() { r.ep.progress() }

// Progress makes one step, and sleeps until there is more to do when there was
// nothing.
func (ep *Endpoint) Progress() { ep.progress() }

func (ep *Endpoint) progress() {
	if ep.lanes != nil && ep.spin() {
		return
	}
	if ep.eng.Step() == 0 {
		ep.eng.Park()
	}
}

// Test makes progress once and takes the result of r if it is there. An error of a
// request that is not finished says that it may wait in vain.
func (r *Request) Test() (st Status, finished bool, err error) {
	ep := r.ep
	if r.state != done {
		ep.step()
	}
	if r.state != done {
		if ep.impaired {
			err = ep.interruption(r)
		}
		return Status{}, false, err
	}
	st, err = ep.take(r)
	return st, true, err
}

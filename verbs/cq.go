package verbs

import (
	"cmp"
	"fmt"
	"math/bits"
)

// maxQueue is the most entries of any queue.
const maxQueue = 1 << 20

// CQ is a completion queue: a ring of completions. It cannot overflow: every
// posted work request holds a place in it until its completion was polled, and
// posting fails with ErrQueueFull when there is none.
type CQ struct {
	UserData any // the user's: verbs does not look at it

	ring     []WC // power of two
	head     uint32
	tail     uint32
	depth    int
	reserved int

	ctx     *Context // nil after Destroy
	users   int      // queue pairs, once for each direction
	channel *CompChannel
	armed   notifyOn
	seen    uint32 // while armed: completions before this one make no event
	events  int    // not taken from the channel yet
}

// notifyOn says which completions make an event.
type notifyOn uint8

const (
	notifyNone notifyOn = iota
	notifySolicited
	notifyAny
)

// CreateCQ makes a completion queue. Its errors wrap ErrClosed or ErrInvalid.
func (c *Context) CreateCQ(init CQInit) (*CQ, error) {
	switch {
	case c.closed:
		return nil, ErrClosed
	case init.Depth < 0 || init.Depth > maxQueue:
		return nil, fmt.Errorf("%w: completion queue of %d entries; 1 to %d are possible", ErrInvalid, init.Depth, maxQueue)
	case init.Channel != nil && init.Channel.ctx != c:
		return nil, fmt.Errorf("%w: the completion channel is of another context, or closed", ErrInvalid)
	}
	depth := cmp.Or(init.Depth, 1024)
	size := 1 << bits.Len(uint(depth-1))
	q := &CQ{UserData: init.UserData, ring: make([]WC, size), depth: depth, ctx: c, channel: init.Channel}
	if q.channel != nil {
		q.channel.cqs = append(q.channel.cqs, q)
	}
	return q, nil
}

// Destroy ends the queue; completions that were not polled are lost. It fails
// with ErrBusy while queue pairs use it (ibv_destroy_cq(3)).
func (q *CQ) Destroy() error {
	switch {
	case q.ctx == nil:
		return fmt.Errorf("%w: completion queue was destroyed before", ErrInvalid)
	case q.users > 0:
		return fmt.Errorf("%w: queue pairs complete to this queue: destroy them first", ErrBusy)
	}
	if q.channel != nil {
		q.channel.detach(q)
	}
	q.ctx, q.channel = nil, nil
	return nil
}

// Poll moves completions to dst, oldest first, and returns how many. It makes
// no progress by itself: step the engine.
func (q *CQ) Poll(dst []WC) int {
	if q.armed != notifyNone {
		q.look()
	}
	n := 0
	for n < len(dst) && q.head != q.tail {
		dst[n] = q.ring[q.head&uint32(len(q.ring)-1)]
		q.head++
		n++
	}
	if q.head == q.tail {
		q.head, q.tail, q.seen = 0, 0, 0 // stay in the same cache lines
	}
	q.reserved -= n
	return n
}

// Len returns how many completions wait to be polled.
func (q *CQ) Len() int { return int(q.tail - q.head) }

// ReqNotify arms the queue (ibv_req_notify_cq(3)): the next completion, or
// with solicitedOnly the next that the sender marked as Solicited or that
// failed, makes an event on the channel, once. Completions that are there
// already make none, so poll once more after arming.
func (q *CQ) ReqNotify(solicitedOnly bool) error {
	switch {
	case q.ctx == nil || q.ctx.closed:
		return ErrClosed
	case q.channel == nil:
		return fmt.Errorf("%w: the completion queue was made without a channel", ErrInvalid)
	}
	if q.armed != notifyNone {
		q.look() // with what it was armed for until now
	}
	q.seen = q.tail
	switch {
	case !solicitedOnly:
		q.armed = notifyAny
	case q.armed == notifyNone: // asking for less does not take back what was asked for
		q.armed = notifySolicited
	}
	return nil
}

// look makes the event that the queue is armed for if a completion since then
// is one to make it. Nothing is looked at when a completion is added: a caller that
// waits for events asks before each wait, and Poll before it takes any away.
func (q *CQ) look() {
	for ; q.seen != q.tail; q.seen++ {
		wc := &q.ring[q.seen&uint32(len(q.ring)-1)]
		if q.armed == notifyAny || wc.Status != Success || wc.Flags&WCWithSolicited != 0 {
			q.armed = notifyNone
			q.channel.add(q)
			return
		}
	}
}

// reserve takes a place for the completion of a request that is being posted.
func (q *CQ) reserve() bool {
	if q.reserved == q.depth {
		return false
	}
	q.reserved++
	return true
}

// room returns how many places are free.
func (q *CQ) room() int { return q.depth - q.reserved }

// release gives a place back unused.
func (q *CQ) release() { q.reserved-- }

// next returns the entry for one more completion, for which a place was reserved.
func (q *CQ) next() *WC {
	wc := &q.ring[q.tail&uint32(len(q.ring)-1)]
	q.tail++
	return wc
}

// mark returns where the completions end, for unwind.
func (q *CQ) mark() uint32 { return q.tail }

// unwind takes back the completions that were added since mark, which were
// not polled, and their places.
func (q *CQ) unwind(mark uint32) {
	for at := mark; at != q.tail; at++ {
		if r := q.ring[at&uint32(len(q.ring)-1)].Record; r != nil {
			r.Release()
		}
	}
	q.reserved -= int(q.tail - mark)
	q.tail = mark
}

// holdQueues counts q n times more as a user of its queues.
func holdQueues(q *QP, n int) {
	q.sendCQ.users += n
	q.recvCQ.users += n
	if q.srq != nil {
		q.srq.users += n
	}
}

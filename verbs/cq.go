package verbs

import "fmt"

// maxQueue is the most entries of any queue.
const maxQueue = 1 << 20

// CQ is a completion queue: a ring of completions. It cannot overflow: every
// posted work request holds a place in it until its completion was polled, and
// posting fails with ErrQueueFull when there is none.
type CQ struct {
	ring     []WC // power of two
	head     uint32
	tail     uint32
	depth    int
	reserved int
}

// CreateCQ makes a completion queue.
func (c *Context) CreateCQ(init CQInit) (*CQ, error) {
	depth := init.Depth
	if c.closed {
		return nil, ErrClosed
	}
	if depth < 0 || depth > maxQueue {
		return nil, fmt.Errorf("%w: completion queue of %d entries; 1 to %d are possible", ErrInvalid, depth, maxQueue)
	}
	if depth == 0 {
		depth = 1024
	}
	size := 1
	for size < depth {
		size *= 2
	}
	return &CQ{ring: make([]WC, size), depth: depth}, nil
}

// Poll moves completions to dst, oldest first, and returns how many. It makes
// no progress by itself: step the engine.
func (q *CQ) Poll(dst []WC) int {
	n := 0
	for n < len(dst) && q.head != q.tail {
		dst[n] = q.ring[q.head&uint32(len(q.ring)-1)]
		q.head++
		n++
	}
	if q.head == q.tail {
		q.head, q.tail = 0, 0 // stay in the same cache lines
	}
	q.reserved -= n
	return n
}

// Len returns how many completions wait to be polled.
func (q *CQ) Len() int { return int(q.tail - q.head) }

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

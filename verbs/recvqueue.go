package verbs

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/proto/llp"
)

// rqe is a posted receive. Most have one buffer; the others' further buffers
// lie apart, so that the ring stays small in the cache.
type rqe struct {
	wrid  uint64
	total uint32
	bufN  uint8
	buf   []byte
	more  *[MaxSGE - 1][]byte
}

// recvQueue is a ring of posted receives: a queue pair's own, or a shared one.
type recvQueue struct {
	ring       []rqe                // power of two; it grows as far as max
	more       [][MaxSGE - 1][]byte // made when a receive has several buffers
	head, tail uint32
	max        uint32
	latest     bool // SRQInit.Latest
	spoils     bool // SRQInit.Spoils
}

// firstRQEs is how many entries a queue begins with: thousands of connections
// are mostly idle ones.
const firstRQEs = 8

func (r *recvQueue) init(n int) { r.max = uint32(n) }

// grow doubles the ring.
func (r *recvQueue) grow() {
	old, more := r.ring, r.more
	r.ring = make([]rqe, max(2*len(old), firstRQEs))
	if more != nil {
		r.more = make([][MaxSGE - 1][]byte, len(r.ring))
	}
	for i := r.head; i != r.tail; i++ {
		e := &r.ring[i&uint32(len(r.ring)-1)]
		*e = old[i&uint32(len(old)-1)]
		if e.more != nil {
			to := &r.more[i&uint32(len(r.ring)-1)]
			*to = *e.more
			e.more = to
		}
	}
}

// len returns how many receives are posted.
func (r *recvQueue) len() int { return int(r.tail - r.head) }

// post appends a receive whose elements lie in regions of pd.
func (r *recvQueue) post(c *Context, pd *PD, wr *RecvWR) error {
	switch {
	case wr.NumSGE > MaxSGE:
		return fmt.Errorf("%w: %d scatter/gather elements; at most %d", ErrInvalid, wr.NumSGE, MaxSGE)
	case r.tail-r.head == r.max:
		return ErrQueueFull
	case wr.NumSGE == 0 && wr.SGL[0].Length != 0:
		return fmt.Errorf("%w: %s", ErrInvalid, uncounted)
	case r.len() == len(r.ring):
		r.grow()
	}
	at := r.tail & uint32(len(r.ring)-1)
	e := &r.ring[at]
	e.wrid, e.bufN, e.buf, e.more = wr.WRID, wr.NumSGE, nil, nil
	total := uint64(0)
	for i := range int(wr.NumSGE) {
		b, err := c.resolve(pd, &wr.SGL[i], LocalWrite)
		if err != nil {
			return err
		}
		if total += uint64(len(b)); i == 0 {
			e.buf = b
			continue
		}
		if r.more == nil {
			r.more = make([][MaxSGE - 1][]byte, len(r.ring))
		}
		e.more = &r.more[at]
		e.more[i-1] = b
	}
	if total > maxMsg {
		return fmt.Errorf("%w: receive of %d bytes; at most %d", ErrInvalid, total, maxMsg)
	}
	e.total = uint32(total)
	r.tail++
	return nil
}

// first returns the receive that is taken next; there is one.
func (r *recvQueue) first() *rqe {
	if r.latest {
		return &r.ring[(r.tail-1)&uint32(len(r.ring)-1)]
	}
	return &r.ring[r.head&uint32(len(r.ring)-1)]
}

// take removes the receive whose turn it is; there is one. The result is valid until the
// next is posted.
func (r *recvQueue) take() *rqe {
	e := r.first()
	if r.latest {
		r.tail--
	} else {
		r.head++
	}
	return e
}

// clear forgets everything that is posted, and the memory it names.
func (r *recvQueue) clear() {
	clear(r.ring)
	clear(r.more)
	r.head, r.tail = 0, 0
}

// scatter copies n bytes to offset off of the buffers.
func (e *rqe) scatter(off uint32, rd *llp.Reader, n int) {
	if end := int(off) + n; end <= len(e.buf) {
		rd.Copy(e.buf[off:end])
		return
	}
	bufs := [MaxSGE][]byte{e.buf}
	if e.more != nil {
		copy(bufs[1:], e.more[:])
	}
	var to [MaxSGE][]byte
	for _, b := range to[:pieces(&to, &bufs, int(off), n)] {
		rd.Copy(b)
	}
}

// PostRecv posts a buffer for one incoming Send of any peer
// (ibv_post_recv(3)). It is ErrQueueFull when the queue, or the completion queue, has no
// room; other errors wrap ErrInvalid or ErrClosed.
func (q *QP) PostRecv(wr *RecvWR) error {
	switch {
	case q.closed:
		return ErrClosed
	case q.srq != nil:
		return fmt.Errorf("%w: the queue pair receives from a shared receive queue: post there", ErrInvalid)
	case q.state != StateRTS:
		if err := q.mayPostRecv(); err != nil {
			return err
		}
	}
	if !q.recvCQ.reserve() {
		return ErrQueueFull
	}
	low := q.rq.len() < fewReceives
	if err := q.rq.post(q.ctx, q.pd, wr); err != nil {
		q.recvCQ.release()
		return err
	}
	if q.state == StateErr {
		q.flushOne(q.rq.take().wrid)
		return nil
	}
	switch {
	case !low:
	case q.typ == RC:
		q.rc.in.fed()
	case q.typ == RD && len(q.rd.in.rnr) > 0:
		q.rd.in.feed()
	}
	return nil
}

// PostRecvList is PostRecv for a list, as PostSendList is. Its errors are those of
// PostRecv.
func (q *QP) PostRecvList(wrs []RecvWR) (posted int, err error) {
	for i := range wrs {
		if err := q.PostRecv(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

package reliable

import (
	"github.com/xwarp/xwarp/verbs"
)

// none is the index of nothing.
const none = int32(-1)

// request is a posted work request. It is cut into parts that fit a datagram,
// and read again when a part is lost.
type request struct {
	wrid   uint64
	sge    verbs.SGE // unless inline
	raddr  uint64    // Writes: where to
	rkey   uint32
	total  uint32
	cut    uint32 // bytes that have been sent once
	first  uint32 // Writes: bytes of the first chunk,
	step   uint32 // and of those behind it
	posted uint64 // its last packet was that many-th of those given to the queue pair
	next   int32  // of the same peer
	op     verbs.Opcode
	flags  verbs.SendFlags
	inline [MaxInline]byte
}

// MaxInline is the most bytes that an Inline work request may carry: what verbs
// takes inline, less the header.
const MaxInline = verbs.MaxInline - HeaderLen

// requests is a table of requests with a stack of free entries.
type requests struct {
	all  []request
	free []int32
}

func (t *requests) init(n int) {
	t.all, t.free = make([]request, n), make([]int32, n)
	for i := range t.free {
		t.free[i] = int32(n - 1 - i)
	}
}

// add copies a work request. false means that the table is full.
func (t *requests) add(wr *verbs.SendWR) (int32, bool) {
	n := len(t.free)
	if n == 0 {
		return none, false
	}
	i := t.free[n-1]
	t.free = t.free[:n-1]
	r := &t.all[i]
	r.wrid, r.op, r.flags, r.next = wr.WRID, wr.Opcode, wr.Flags, none
	r.raddr, r.rkey, r.cut, r.posted = wr.RemoteAddr, wr.RKey, 0, 0
	if wr.Flags&verbs.Inline != 0 {
		r.total = uint32(copy(r.inline[:], wr.InlineData))
	} else {
		r.sge = wr.SGL[0]
		r.total = r.sge.Length
	}
	return i, true
}

func (t *requests) give(i int32) { t.free = append(t.free, i) }

// completions is a ring of completions on their way to the user. It never
// fills: whatever completes has held a place in a table before.
type completions struct {
	ring       []verbs.WC
	head, tail uint32
}

func (q *completions) init(n int) {
	size := 1
	for size < n {
		size *= 2
	}
	q.ring = make([]verbs.WC, size)
}

func (q *completions) len() int { return int(q.tail - q.head) }

// next returns the place for one more.
func (q *completions) next() *verbs.WC {
	if q.len() == len(q.ring) {
		panic("reliable: more completions than requests and receive buffers")
	}
	wc := &q.ring[q.tail&uint32(len(q.ring)-1)]
	q.tail++
	return wc
}

// read moves the oldest ones to dst.
func (q *completions) read(dst []verbs.WC) (n int) {
	for n < len(dst) && q.head != q.tail {
		dst[n] = q.ring[q.head&uint32(len(q.ring)-1)]
		q.head++
		n++
	}
	if q.head == q.tail {
		q.head, q.tail = 0, 0 // stay in the same cache lines
	}
	return n
}

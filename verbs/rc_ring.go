package verbs

import (
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// wqeRing holds the messages of one connection, requests or answers, in the order in which
// they are sent.
type wqeRing struct {
	wqes  []wqe // a power of two; it grows as far as limit
	limit uint32
	head  uint32 // oldest that is not complete
	tail  uint32 // where the next one goes
}

// firstWQEs is how many entries a ring begins with: thousands of connections
// are mostly idle ones.
const firstWQEs = 2

// at returns the message with a sequence number.
func (r *wqeRing) at(seq uint32) *wqe { return &r.wqes[seq&uint32(len(r.wqes)-1)] }

// len returns how many messages are in the ring.
func (r *wqeRing) len() int { return int(r.tail - r.head) }

// room returns the entry for the next message, for which there is room if full says no. It
// is in the ring once tail is past it.
func (r *wqeRing) room() *wqe {
	if r.len() == len(r.wqes) {
		r.grow()
	}
	return r.at(r.tail)
}

// full reports whether limit is reached.
func (r *wqeRing) full() bool { return r.tail-r.head >= r.limit }

// grow doubles the ring.
func (r *wqeRing) grow() {
	wqes := make([]wqe, max(2*len(r.wqes), firstWQEs))
	for seq := r.head; seq != r.tail; seq++ {
		wqes[seq&uint32(len(wqes)-1)] = *r.at(seq)
	}
	r.wqes = wqes
}

// drop removes the oldest message.
func (r *wqeRing) drop() {
	w := r.at(r.head)
	clear(w.bufs[:w.bufN])
	r.head++
}

// culprit finds the request that a Terminate tells of, if it is not complete yet.
func (r *wqeRing) culprit(t *rdmap.Term) (seq uint32, ok bool) {
	var h ddp.Header
	if !t.Header(&h) {
		return 0, false
	}
	for seq = r.head; seq != r.tail; seq++ {
		if r.at(seq).isBlamed(t, &h) {
			return seq, true
		}
	}
	return 0, false
}

package xdp

import (
	"math/bits"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/mem"
)

// member is one who takes part in a shared queue: a seat's port, or who made
// the queue.
type member struct {
	ledger     *ledger
	roll       roll
	number     int         // of the seat; that of no seat for who made the queue
	fills      []*fillRing // of each queue
	fds        []int       // of our sockets there; none for who made the queues
	completion *completionRing
	held       []uint64 // frames that we hold, a bit for each; nil for no seat
	own        mem.Part

	opened uint32     // letters in our box that we have read
	found  []mem.Addr // scratch: buffers of ours in the COMPLETION ring
}

// slab is how many received frames gather in a seat before it gives them back to
// all: others write the same cache lines, so that is paid per batch.
const slab = 32

func newMember(g *ledger, r roll, number int, completion *completionRing, fills ...*fillRing) *member {
	m := &member{ledger: g, roll: r, number: number, fills: fills, completion: completion}
	if number < g.seats {
		m.held, m.own = g.held[number], g.partOf(number)
		m.found = make([]mem.Addr, 0, g.txDepth)
		_, m.opened, _ = g.boxes[number].read()
	}
	return m
}

// give gives frames to the kernel to receive into, held until then by held, and
// returns on which queue. A frame is not held any more before others can see it,
// for then the kernel may give it to them.
func (m *member) give(frames []mem.Addr, held []uint64) (queue int) {
	queue = m.emptiest()
	fill := m.fills[queue]
	at := atomic.LoadUint32(fill.shared)
	for _, f := range frames {
		m.ledger.unmark(held, f)
		m.ledger.pause(unmarked)
		at = fill.put(at, f)
		m.ledger.pause(put)
	}
	fill.show(at)
	return queue
}

// emptiest returns the queue with the least to receive into: any frame may go to
// any queue, and goes where most arrives.
func (m *member) emptiest() (queue int) {
	if len(m.fills) == 1 {
		return 0
	}
	least := ^uint32(0)
	for i, f := range m.fills {
		f.refresh()
		if n := atomic.LoadUint32(f.shared) - f.theirs; n < least {
			queue, least = i, n
		}
	}
	return queue
}

// look finds out which of our buffers were sent, and returns how many. It writes
// nothing that others read in passing.
func (m *member) look(pool *Pool) (sent int) {
	b, cq := &m.ledger.boxes[m.number], m.completion
	for {
		mark, letters, seen := b.read()
		sent += m.open(b, letters, pool)
		cq.refresh()
		end := cq.theirs
		if end-seen > cq.mask+1 || end != seen && !m.take(b, mark, markOf(letters, end)) {
			continue // somebody has moved the mark on
		}
		for _, a := range m.found {
			pool.PutSent(a)
		}
		sent += len(m.found)
		m.found = m.found[:0]
		if cq.unread(end) > cq.mask/4 {
			m.clear(end)
		}
		return sent
	}
}

// take finds our buffers between two marks, and sets the second one if the first
// still stands: then they are ours, and nobody will tell us about them.
func (m *member) take(b *box, mark, next uint64) bool {
	for at := uint32(mark); at != uint32(next); at++ {
		if a := m.completion.entry(at); a-m.own.Start < mem.Addr(m.own.Len) {
			m.found = append(m.found, a) // never grows
		}
	}
	m.ledger.pause(found)
	if atomic.CompareAndSwapUint64(b.mark, mark, next) {
		return true
	}
	m.found = m.found[:0]
	return false
}

// open reads the letters that came since the last time and returns how many.
func (m *member) open(b *box, letters uint32, pool *Pool) int {
	n := int(letters - m.opened)
	for ; m.opened != letters; m.opened++ {
		pool.PutSent(bufferOf(atomic.LoadUint64(&b.letters[m.opened&uint32(len(b.letters)-1)])))
	}
	return n
}

// clear gives the entries of the COMPLETION ring before end, which we have seen,
// to the kernel, after all others know what is there for them.
func (m *member) clear(end uint32) {
	g, cq := m.ledger, m.completion
	from := atomic.LoadUint32(cq.shared)
	if end-from > cq.mask+1 {
		return // others have, while we were stopped
	}
	for at := from; at != end; at++ {
		g.tell(cq, at, cq.entry(at))
	}
	for i := range g.boxes {
		g.boxes[i].skip(cq, end)
	}
	g.pause(told)
	atomic.CompareAndSwapUint32(cq.shared, from, end)
}

// hold notes that we hold frames that were received.
func (m *member) hold(bufs []Desc) {
	for i := range bufs {
		m.ledger.mark(m.held, bufs[i].Addr)
	}
}

// heldBy returns the frames that a seat holds.
func (g *ledger) heldBy(seat int) (frames []mem.Addr) {
	for i := range g.held[seat] {
		for w := atomic.LoadUint64(&g.held[seat][i]); w != 0; w &= w - 1 {
			frames = append(frames, g.frame(i*64+bits.TrailingZeros64(w)))
		}
	}
	return frames
}

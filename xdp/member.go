package xdp

import (
	"math/bits"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
)

// member is one who takes part in a shared queue: a seat's port, or who made
// the queue.
type member struct {
	ledger     *ledger
	roll       roll
	number     int // of the seat; that of no seat for who made the queue
	fill       *fillRing
	completion *completionRing
	held       []uint64 // frames that we hold, a bit for each; nil for no seat
	own        mem.Part

	taken   uint32   // how many were taken out of our box
	staged  []uint32 // by seat: how many are put into its box in this step
	touched []int32  // seats with any
	waits   int      // times in a row that the lock was somebody's
}

// Handing round is paid per batch: slab is how many received frames gather in a
// seat before it gives them back to all.
const slab = 32

// suspicious is after how many vain attempts at the lock its holder is looked
// up. It is held for a microsecond or so.
const suspicious = 64

func newMember(g *ledger, r roll, number int, rings *rings) *member {
	m := &member{
		ledger: g, roll: r, number: number,
		fill: &rings.fill, completion: &rings.completion,
		staged: make([]uint32, g.seats), touched: make([]int32, 0, g.seats),
	}
	if number < g.seats {
		m.held, m.own = g.held[number], g.partOf(number)
	}
	return m
}

// enter takes the lock if it is free or its holder is dead. When it is
// somebody's it is tried again with the next batch.
func (m *member) enter() bool {
	g := m.ledger
	if g.try(m.number) {
		m.waits = 0
		return true
	}
	if m.waits++; m.waits%suspicious != 0 {
		return false
	}
	from, ok := g.holder()
	if !ok || !m.roll.absent(from) || !g.inherit(from, m.number) {
		return false
	}
	m.waits = 0
	g.mend(from, m.fill, m.completion)
	return true
}

// step gives frames to the kernel to receive into, held until then by held, and
// sorts the buffers that were sent: ours go back into pool, and it returns how
// many. The lock is ours.
func (m *member) step(frames []mem.Addr, held []uint64, pool *mem.Pool) (sent int) {
	m.fill.reload()
	m.completion.reload()
	for _, f := range frames {
		m.fill.push(f)
	}
	sent = m.sort(pool)
	m.ledger.begin(m.fill, m.completion)
	m.ledger.finish(held, m.fill, m.completion, m.touched)
	for _, seat := range m.touched {
		m.staged[seat] = 0
	}
	m.touched = m.touched[:0]
	return sent
}

// sort takes what was sent out of the COMPLETION ring: our own buffers at once,
// others' into the boxes of their owners.
func (m *member) sort(pool *mem.Pool) (sent int) {
	cq := m.completion
	for range cq.available() {
		a := cq.pop()
		if a-m.own.Start < mem.Addr(m.own.Len) {
			pool.PutSent(a)
			sent++
			continue
		}
		m.stage(m.ledger.owner(a), a)
	}
	for _, seat := range m.touched {
		w := m.ledger.boxes[seat].words
		atomic.StoreUint32(&w[boxStaged], w[boxPosted]+m.staged[seat])
	}
	return sent
}

func (m *member) stage(seat int, a mem.Addr) {
	b := &m.ledger.boxes[seat]
	if m.staged[seat] == 0 {
		m.touched = append(m.touched, int32(seat)) // never grows
	}
	b.slots[(b.words[boxPosted]+m.staged[seat])&uint32(len(b.slots)-1)] = a
	m.staged[seat]++
}

// collect takes what others have put into our box and returns how many.
func (m *member) collect(pool *mem.Pool) int {
	b := &m.ledger.boxes[m.number]
	posted := atomic.LoadUint32(&b.words[boxPosted])
	n := int(posted - m.taken)
	for ; m.taken != posted; m.taken++ {
		pool.PutSent(b.slots[m.taken&uint32(len(b.slots)-1)])
	}
	return n
}

// hold notes that we hold frames that were received.
func (m *member) hold(bufs []fabric.Desc) {
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

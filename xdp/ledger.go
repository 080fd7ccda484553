package xdp

import (
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/mem"
)

// ledger is what the seats of a queue share besides its rings: the beginning of
// the arena. Any of them may die at any instruction, so it follows three rules.
//
// The lock holds the number of its holder. A taker that waits in vain asks the
// roll whether the holder is gone, and takes the lock from it.
//
// Under the lock everything happens in one step: what is to be is written where
// nobody reads yet, then its record in the step's line, and from then on
// whoever has the lock can finish it. Doing so twice does no harm.
//
// A frame to receive into is always either the kernel's (on its way through
// FILL ring and RX ring) or marked as held in the map of one seat.
type ledger struct {
	layout
	words []uint32 // of the lock and the step
	boxes []box    // by seat
	held  [][]uint64

	inside func() // tests: called all along a step
}

// Words of the step's line.
const (
	lockWord       = lockAt / 4
	stepBegun      = stepAt / 4 // 1: the step must be finished
	stepFill       = stepBegun + 1
	stepCompletion = stepBegun + 2
)

// box is the mailbox of a seat: what others have found in the COMPLETION ring
// and was sent by it. A buffer takes room in it only after it took room in the
// seat's TX ring, until the seat knows; so it is never full.
type box struct {
	words []uint32 // posted, staged
	slots []mem.Addr
}

const (
	boxPosted = 0 // how many were put in, seen by the owner
	boxStaged = 1 // the same after the step
)

func newLedger(arena *mem.Arena, l layout) *ledger {
	b := arena.Bytes()
	g := &ledger{layout: l, words: mem.ScalarsOf[uint32](b[:boxesAt])}
	for i := range l.seats {
		at := b[boxesAt+i*l.boxLen():][:l.boxLen()]
		g.boxes = append(g.boxes, box{
			words: mem.ScalarsOf[uint32](at[:lineLen]),
			slots: mem.ScalarsOf[mem.Addr](at[lineLen:][:l.txDepth*8]),
		})
		g.held = append(g.held, mem.ScalarsOf[uint64](b[l.heldAt()+i*l.heldLen():][:(l.frames+63)/64*8]))
	}
	return g
}

// try takes the lock for a seat.
func (g *ledger) try(seat int) bool {
	return atomic.CompareAndSwapUint32(&g.words[lockWord], 0, uint32(seat)+1)
}

// holder returns who has the lock; ok is false for nobody.
func (g *ledger) holder() (seat int, ok bool) {
	w := atomic.LoadUint32(&g.words[lockWord])
	return int(w) - 1, w != 0
}

// inherit takes the lock from a dead seat, unless somebody else was faster.
func (g *ledger) inherit(from, seat int) bool {
	return atomic.CompareAndSwapUint32(&g.words[lockWord], uint32(from)+1, uint32(seat)+1)
}

func (g *ledger) release() { atomic.StoreUint32(&g.words[lockWord], 0) }

// mend finishes or undoes what a dead holder of the lock has begun.
func (g *ledger) mend(dead int, fill *fillRing, completion *completionRing) {
	if atomic.LoadUint32(&g.words[stepBegun]) == 0 {
		for i := range g.boxes {
			w := g.boxes[i].words
			atomic.StoreUint32(&w[boxStaged], atomic.LoadUint32(&w[boxPosted]))
		}
		return
	}
	fill.reload()
	completion.reload()
	var held []uint64
	if dead < len(g.held) {
		held = g.held[dead]
	}
	g.finish(held, fill, completion, nil)
}

// begin records the step: from here on it will be finished, by us or by the
// one who finds us dead.
func (g *ledger) begin(fill *fillRing, completion *completionRing) {
	g.pause()
	atomic.StoreUint32(&g.words[stepFill], fill.ours)
	atomic.StoreUint32(&g.words[stepCompletion], completion.ours)
	atomic.StoreUint32(&g.words[stepBegun], 1)
	g.pause()
}

func (g *ledger) pause() {
	if g.inside != nil {
		g.inside()
	}
}

// finish makes the recorded step visible: to the owners of the boxes in
// touched, or of all if it is nil, and to the kernel. The frames that go into
// the FILL ring are not held any more; that comes first, for then the kernel
// may give them to others.
func (g *ledger) finish(held []uint64, fill *fillRing, completion *completionRing, touched []int32) {
	if touched == nil {
		for i := range g.boxes {
			g.boxes[i].post()
		}
	}
	for _, i := range touched {
		g.boxes[i].post()
	}
	g.pause()
	end := g.words[stepFill]
	if held != nil {
		for at := *fill.shared; at != end; at++ {
			g.unmark(held, fill.addrs[at&fill.mask])
		}
	}
	g.pause()
	fill.ours = end
	fill.publish()
	g.pause()
	completion.ours = g.words[stepCompletion]
	completion.publish()
	g.pause()
	atomic.StoreUint32(&g.words[stepBegun], 0)
}

// post shows the owner what was staged.
func (b *box) post() { atomic.StoreUint32(&b.words[boxPosted], b.words[boxStaged]) }

// owner returns the seat that the address is part of.
func (g *ledger) owner(a mem.Addr) int { return (int(a) - g.partsAt()) / g.part }

// mark notes that a seat holds the frame that a lies in. Only the seat itself
// writes its map, until it is dead.
func (g *ledger) mark(held []uint64, a mem.Addr) {
	n := (int(a) - g.framesAt()) / mem.FrameSize
	atomic.StoreUint64(&held[n/64], held[n/64]|1<<(n%64))
}

func (g *ledger) unmark(held []uint64, a mem.Addr) {
	n := (int(a) - g.framesAt()) / mem.FrameSize
	atomic.StoreUint64(&held[n/64], held[n/64]&^(1<<(n%64)))
}

// frame returns the address of a frame to receive into.
func (g *ledger) frame(n int) mem.Addr { return mem.Addr(g.framesAt() + n*mem.FrameSize) }

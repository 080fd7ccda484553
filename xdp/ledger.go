package xdp

import (
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/mem"
)

// ledger is what the seats of a queue share besides its rings: the beginning of
// the arena. Any of them may be stopped or killed at any instruction and the
// others must go on, so there is no lock. What others see changes by a
// compare-and-swap of a word that does not take the same value again: who was
// stopped before it comes too late and changes nothing, and what somebody left
// half done is done by the next one.
//
// A frame to receive into is always either the kernel's (on its way through
// FILL ring and RX ring) or marked as held in the map of one seat. In between,
// for the moment of giving it back, it is neither: who is killed there takes one
// frame along, of the many that were counted for it (QueueConfig.Budget).
//
// The COMPLETION ring is read by all seats. Each looks for its own buffers, and
// remembers up to where. Once in a while somebody frees the ring for the kernel:
// it puts what others have not seen into their boxes, which is rare, and moves
// their marks on. So no entry goes before its owner knows.
type ledger struct {
	layout
	boxes []box // by seat
	held  [][]uint64

	inside func(place) // tests: called where it makes a difference to be stopped
}

// place is one where tests stop and kill.
type place int

const (
	unmarked place = iota // a frame is nobody's
	put                   // a frame is in the FILL ring, and the kernel may not see it
	found                 // what was sent was read, and the mark stands
	writing               // a letter is about to be written
	written               // a letter was written, and the mark stands
	told                  // all know what is in the COMPLETION ring, and it stands
	places
)

// box is what a seat knows of the COMPLETION ring.
type box struct {
	// mark is what the seat has seen of the ring, a position, in its lower half,
	// and how many letters it was sent in the upper one. It is never behind the
	// consumer index, so entries that a seat has not seen are not written over.
	mark *uint64

	// letters tell of buffers that were sent, and that the seat was not there to
	// see. One takes room only after the buffer took room in the seat's TX ring,
	// until the seat has read it; so there is always room.
	letters []uint64
}

func newLedger(arena *Arena, l layout) *ledger {
	b := arena.Bytes()
	g := &ledger{layout: l}
	for i := range l.seats {
		at := b[l.boxesAt()+i*l.boxLen():][:l.boxLen()]
		g.boxes = append(g.boxes, box{
			mark:    &mem.ScalarsOf[uint64](at[:lineLen])[0],
			letters: mem.ScalarsOf[uint64](at[lineLen:][:l.txDepth*8]),
		})
		g.held = append(g.held, mem.ScalarsOf[uint64](b[l.heldAt()+i*l.heldLen():][:(l.frames+63)/64*8]))
	}
	return g
}

func (g *ledger) pause(at place) {
	if g.inside != nil {
		g.inside(at)
	}
}

// markOf makes a mark of the number of letters and the position that was seen.
func markOf(letters, seen uint32) uint64 { return uint64(letters)<<32 | uint64(seen) }

// A letter is the number of a frame of the arena, and the low bits of a
// position, which make it differ from others that might be in its place.
const letterBits = 28

func letterOf(buffer mem.Addr, at uint32) uint64 {
	return uint64(buffer/mem.FrameSize)<<letterBits | uint64(at)&(1<<letterBits-1)
}

func bufferOf(letter uint64) mem.Addr { return mem.Addr(letter>>letterBits) * mem.FrameSize }

// read returns the mark.
func (b *box) read() (mark uint64, letters, seen uint32) {
	mark = atomic.LoadUint64(b.mark)
	return mark, uint32(mark >> 32), uint32(mark)
}

// tell makes sure that the owner of a buffer learns what the entry of cq at a
// position says. Others may do the same at the same time.
func (g *ledger) tell(cq *completionRing, at uint32, buffer mem.Addr) {
	b := &g.boxes[g.owner(buffer)]
	for {
		mark, letters, seen := b.read()
		if cq.unread(at) > cq.mask || int32(seen-at) > 0 {
			return // it was told, and what we have read may be another entry
		}
		slot := &b.letters[letters&uint32(len(b.letters)-1)]
		old := atomic.LoadUint64(slot)
		if atomic.LoadUint64(b.mark) != mark {
			continue
		}
		g.pause(writing)
		if atomic.CompareAndSwapUint64(slot, old, letterOf(buffer, at)) {
			g.pause(written)
			atomic.CompareAndSwapUint64(b.mark, mark, markOf(letters+1, at+1))
		}
	}
}

// skip moves the mark of a seat that needs to see nothing of cq before end.
func (b *box) skip(cq *completionRing, end uint32) {
	for {
		mark, letters, seen := b.read()
		if cq.unread(end)-1 > cq.mask || int32(end-seen) <= 0 || atomic.CompareAndSwapUint64(b.mark, mark, markOf(letters, end)) {
			return
		}
	}
}

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

package xdp

import (
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// slotTable is what the slots of a queue share besides its rings: in front of their
// parts of the arena. Any of them may be stopped or killed at any instruction and the
// others must go on, so there is no lock. What others see changes by a
// compare-and-swap of a word that does not take the same value again: a process that was
// stopped before it comes too late and changes nothing, and what a process left
// half done is done by the next one.
//
// A frame to receive into is always either the kernel's (on its way through
// FILL ring and RX ring) or marked as held in the map of one slot. In between,
// for the moment of giving it back, it is neither: a process killed there takes one
// frame along, of the many that were counted for it (QueueConfig.Budget).
//
// The COMPLETION ring is read by all slots. Each looks for its own buffers, and
// remembers up to where. Once in a while a participant frees the ring for the kernel:
// it puts what others have not seen into their mailboxes, which is rare, and moves
// their cursors on. So no entry goes before its owner knows.
type slotTable struct {
	layout
	mailboxes []mailbox // by slot
	held      [][]uint64
	begun     *uint32 // frames that the kernel has had: see participant.widen

	inside func(place) // tests: called where it makes a difference to be stopped
}

// place is one where tests stop and kill.
type place int

const (
	unmarked place = iota // a frame has no owner
	put                   // a frame is in the FILL ring, and the kernel may not see it
	found                 // what was sent was read, and the cursor stands
	writing               // an entry is about to be written
	written               // an entry was written, and the cursor stands
	told                  // all know what is in the COMPLETION ring, and it stands
	places
)

// mailbox is what a slot knows of the COMPLETION ring.
type mailbox struct {
	// cursor is what the slot has seen of the ring, a position, in its lower half,
	// and how many entries it was sent in the upper one. It is never behind the
	// consumer index, so entries that a slot has not seen are not written over.
	cursor *uint64

	// entries tell of buffers that were sent, and that the slot was not there to
	// see. One takes room only after the buffer took room in the slot's TX ring,
	// until the slot has read it; so there is always room.
	entries []uint64
}

func newSlotTable(arena *Arena, l layout) *slotTable {
	b := arena.Bytes()
	g := &slotTable{layout: l, begun: meetingOf(arena, l).begun}
	for i := range l.slots {
		at := b[l.mailboxesAt()+i*l.mailboxLen():][:l.mailboxLen()]
		g.mailboxes = append(g.mailboxes, mailbox{
			cursor:  &mem.ScalarsOf[uint64](at[:lineLen])[0],
			entries: mem.ScalarsOf[uint64](at[lineLen:][:l.txDepth*8]),
		})
		g.held = append(g.held, mem.ScalarsOf[uint64](b[l.heldAt()+i*l.heldLen():][:(l.frames+63)/64*8]))
	}
	return g
}

func (g *slotTable) pause(at place) {
	if g.inside != nil {
		g.inside(at)
	}
}

// cursorOf makes a cursor of the number of entries and the position that was seen.
func cursorOf(entries, seen uint32) uint64 { return uint64(entries)<<32 | uint64(seen) }

// An entry is the number of a frame of the arena, and the low bits of a
// position, which make it differ from others that might be in its place.
const entryBits = 28

func entryOf(buffer mem.Addr, at uint32) uint64 {
	return uint64(buffer/mem.FrameSize)<<entryBits | uint64(at)&(1<<entryBits-1)
}

func bufferOf(entry uint64) mem.Addr { return mem.Addr(entry>>entryBits) * mem.FrameSize }

// read returns the cursor.
func (b *mailbox) read() (cursor uint64, entries, seen uint32) {
	cursor = atomic.LoadUint64(b.cursor)
	return cursor, uint32(cursor >> 32), uint32(cursor)
}

// tell makes sure that the owner of a buffer learns what the entry of cq at a
// position says. Others may do the same at the same time.
func (g *slotTable) tell(cq *completionRing, at uint32, buffer mem.Addr) {
	owner := g.owner(buffer)
	if uint(owner) >= uint(len(g.mailboxes)) {
		return // what no slot sends
	}
	b := &g.mailboxes[owner]
	for {
		cursor, entries, seen := b.read()
		if cq.unread(at) > cq.mask || int32(seen-at) > 0 {
			return // it was told, and what we have read may be another entry
		}
		slot := &b.entries[entries&uint32(len(b.entries)-1)]
		old := atomic.LoadUint64(slot)
		if atomic.LoadUint64(b.cursor) != cursor {
			continue
		}
		g.pause(writing)
		if atomic.CompareAndSwapUint64(slot, old, entryOf(buffer, at)) {
			g.pause(written)
			atomic.CompareAndSwapUint64(b.cursor, cursor, cursorOf(entries+1, at+1))
		}
	}
}

// skip moves the cursor of a slot that needs to see nothing of cq before end.
func (b *mailbox) skip(cq *completionRing, end uint32) {
	for {
		cursor, entries, seen := b.read()
		if cq.unread(end)-1 > cq.mask || int32(end-seen) <= 0 || atomic.CompareAndSwapUint64(b.cursor, cursor, cursorOf(entries, end)) {
			return
		}
	}
}

// owner returns the slot that the address is part of.
func (g *slotTable) owner(a mem.Addr) int { return (int(a) - g.parts) / g.part }

// mark notes that a slot holds the frame that a lies in. Only the slot itself
// writes its map, until it is dead.
func (g *slotTable) mark(held []uint64, a mem.Addr) {
	n := (int(a) - g.framesAt()) / mem.FrameSize
	atomic.StoreUint64(&held[n/64], held[n/64]|1<<(n%64))
}

func (g *slotTable) unmark(held []uint64, a mem.Addr) {
	n := (int(a) - g.framesAt()) / mem.FrameSize
	atomic.StoreUint64(&held[n/64], held[n/64]&^(1<<(n%64)))
}

// frame returns the address of a frame to receive into.
func (g *slotTable) frame(n int) mem.Addr { return mem.Addr(g.framesAt() + n*mem.FrameSize) }

package xdp

import (
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// participant is one user of a shared queue: a slot's port, or the maker of
// the queue.
type participant struct {
	slotTable  *slotTable
	liveness   livenessFile
	number     int         // of the slot; that of no slot for the maker of the queue
	fills      []*fillRing // of each queue
	fds        []int       // of our sockets there; none for the maker of the queues
	completion *completionRing
	held       []uint64 // frames that we hold, a bit for each; nil for no slot
	own        mem.Part

	opened uint32     // entries in our mailbox that we have read
	found  []mem.Addr // scratch: buffers of ours in the COMPLETION ring
}

// slab is how many received frames gather in a slot before it gives them back to
// all: others write the same cache lines, so that is paid per batch.
const slab = 32

func newParticipant(g *slotTable, r livenessFile, number int, completion *completionRing, fills ...*fillRing) *participant {
	m := &participant{slotTable: g, liveness: r, number: number, fills: fills, completion: completion}
	if number < g.slots {
		m.held, m.own = g.held[number], g.partOf(number)
		m.found = make([]mem.Addr, 0, g.txDepth)
		_, m.opened, _ = g.mailboxes[number].read()
	}
	return m
}

// give gives frames to the kernel to receive into, held until then by held, and
// returns on which queue. A frame is not held any more before others can see it,
// for then the kernel may give it to them. false: the ring takes no more, for a process has torn
// it up.
func (m *participant) give(frames []mem.Addr, held []uint64) (queue int, ok bool) {
	queue = m.emptiest()
	fill := m.fills[queue]
	at := atomic.LoadUint32(fill.shared)
	for _, f := range frames {
		m.slotTable.unmark(held, f)
		m.slotTable.pause(unmarked)
		at, ok = fill.put(at, f)
		m.slotTable.pause(put)
		if !ok {
			break // each further try takes as long
		}
	}
	fill.show(at)
	return queue, ok
}

// Where the kernel copies it has the first frames only at the beginning, beginQueue for each queue and
// beginSlot for each slot: that is enough for most jobs, and where a hypervisor shadows the page
// tables the first message into each frame takes 20 us longer. When less than widenBelow are left in a
// FILL ring it gets more, up to widenTo. What comes meanwhile and finds none is sent again.
const (
	beginQueue = 128
	beginSlot  = 2 * slab
	widenBelow = 128
	widenTo    = 192
)

// widen gives the kernel frames that it has never had, if it has few, in the ring from which it has taken
// most. A process that is killed here takes one along. It reports whether there may be more of them.
func (m *participant) widen() (more bool) {
	g := m.slotTable
	if int(atomic.LoadUint32(g.begun)) >= g.frames {
		return false
	}
	fill := m.fills[m.emptiest()]
	fill.refresh()
	at := atomic.LoadUint32(fill.shared)
	if at-fill.theirs >= widenBelow {
		return true
	}
	for ok := true; ok && at-fill.theirs < widenTo; {
		n := int(atomic.AddUint32(g.begun, 1)) - 1
		if n >= g.frames {
			break
		}
		at, ok = fill.put(at, g.frame(n))
	}
	fill.show(at)
	return true
}

// giveAll is give by and by, so that the frames are spread over the queues. It ends where a ring
// takes no more.
func (m *participant) giveAll(frames []mem.Addr, held []uint64) {
	for ok := true; ok && len(frames) > 0; {
		n := min(len(frames), slab)
		_, ok = m.give(frames[:n], held)
		frames = frames[n:]
	}
}

// emptiest returns the queue with the least to receive into: any frame may go to
// any queue, and goes where most arrives.
func (m *participant) emptiest() (queue int) {
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
func (m *participant) look(pool *Pool) (sent int) {
	b, cq := &m.slotTable.mailboxes[m.number], m.completion
	for {
		cursor, entries, seen := b.read()
		sent += m.open(b, entries, pool)
		cq.refresh()
		end := cq.theirs
		if end-seen > cq.mask+1 || end != seen && !m.take(b, cursor, cursorOf(entries, end)) {
			continue // another process has moved the cursor on
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

// take finds our buffers between two cursors, and sets the second one if the first
// still stands: then they are ours, and no other participant will report them.
func (m *participant) take(b *mailbox, cursor, next uint64) bool {
	for at := uint32(cursor); at != uint32(next); at++ {
		if a := m.completion.entry(at); a-m.own.Start < mem.Addr(m.own.Len) {
			m.found = append(m.found, a) // never grows
		}
	}
	m.slotTable.pause(found)
	if atomic.CompareAndSwapUint64(b.cursor, cursor, next) {
		return true
	}
	m.found = m.found[:0]
	return false
}

// open reads the entries that came since the last time and returns how many.
func (m *participant) open(b *mailbox, entries uint32, pool *Pool) int {
	n := int(entries - m.opened)
	for ; m.opened != entries; m.opened++ {
		pool.PutSent(bufferOf(atomic.LoadUint64(&b.entries[m.opened&uint32(len(b.entries)-1)])))
	}
	return n
}

// clear gives the entries of the COMPLETION ring before end, which we have seen,
// to the kernel, after all others know what is there for them.
func (m *participant) clear(end uint32) {
	g, cq := m.slotTable, m.completion
	from := atomic.LoadUint32(cq.shared)
	if end-from > cq.mask+1 {
		return // others have, while we were stopped
	}
	for at := from; at != end; at++ {
		g.tell(cq, at, cq.entry(at))
	}
	for i := range g.mailboxes {
		g.mailboxes[i].skip(cq, end)
	}
	g.pause(told)
	atomic.CompareAndSwapUint32(cq.shared, from, end)
}

// hold notes that we hold frames that were received.
func (m *participant) hold(bufs []Desc) {
	for i := range bufs {
		m.slotTable.mark(m.held, bufs[i].Addr)
	}
}

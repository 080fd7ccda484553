package xdp

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// sharing is a shared queue on plain memory, with a kernel that receives into
// whatever it is given for any slot, and sends at once.
type sharing struct {
	slotTable    *slotTable
	fill         fillRing
	done         completionRing
	participants []*participant
	pools        []*mem.Pool

	mu       sync.Mutex // of the kernel
	taken    uint32     // FILL entries that the kernel has taken
	received []chan mem.Addr
}

func newSharing(t *testing.T, start uint32, slots, txDepth, rxDepth, frames int) *sharing {
	t.Helper()
	s := unbegunSharing(t, start, slots, txDepth, rxDepth, frames)
	s.begin(frames)
	return s
}

// unbegunSharing is one whose kernel has nothing to receive into.
func unbegunSharing(t *testing.T, start uint32, slots, txDepth, rxDepth, frames int) *sharing {
	t.Helper()
	l := layout{slots: slots, txDepth: txDepth, frames: frames, part: 1 << 20, base: 2 * hugePage}
	l.parts = l.end() + hugePage
	arena, err := mem.New(mem.Config{Size: l.size()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { arena.Close() })
	ring := func(depth int) indices {
		ix, _, _ := memoryRing(start)
		ix.mask = uint32(depth - 1)
		return ix
	}
	s := &sharing{
		slotTable: newSlotTable(arena, l), taken: start,
		fill: fillRing{ring(powerFrom(frames)), make([]mem.Addr, powerFrom(frames))},
		done: completionRing{ring(powerFrom(2 * slots * txDepth)), make([]mem.Addr, powerFrom(2*slots*txDepth))},
	}
	for i := range s.fill.addrs { // as the lap before has left them
		at := start + uint32(i)
		s.fill.addrs[at&s.fill.mask] = s.fill.lap(at - s.fill.mask - 1)
	}
	for i := range slots {
		*s.slotTable.mailboxes[i].cursor = cursorOf(0, start)
		done, fill := s.done, s.fill // each process has a view of the rings of its own
		m := newParticipant(s.slotTable, livenessFile{-1}, i, &done, &fill)
		m.slotTable = &slotTable{layout: l, mailboxes: s.slotTable.mailboxes, held: s.slotTable.held, begun: s.slotTable.begun}
		s.participants = append(s.participants, m)
		part, err := mem.MapPart(arena.FD(), l.size(), l.partOf(i), l.partOf(i), l.common())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { part.Close() })
		pool, err := mem.NewPool(part, txDepth, true)
		if err != nil {
			t.Fatal(err)
		}
		s.pools = append(s.pools, pool)
		s.received = append(s.received, make(chan mem.Addr, rxDepth))
	}
	return s
}

// begin gives the kernel the first n frames.
func (s *sharing) begin(n int) {
	end := s.taken
	for i := range n {
		end, _ = s.fill.put(end, s.slotTable.frame(i))
	}
	s.fill.show(end)
	*s.slotTable.begun = uint32(n)
}

// send completes a buffer, and receives a frame for a slot if there is one.
func (s *sharing) send(t *testing.T, buffer mem.Addr, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := atomic.LoadUint32(s.done.kernel)
	if end-atomic.LoadUint32(s.done.shared) > s.done.mask {
		t.Error("the COMPLETION ring is full")
		return
	}
	atomic.StoreUint64((*uint64)(&s.done.addrs[end&s.done.mask]), uint64(buffer))
	atomic.StoreUint32(s.done.kernel, end+1)
	if s.taken == atomic.LoadUint32(s.fill.shared) || len(s.received[to]) == cap(s.received[to]) {
		return // a packet is lost
	}
	f := mem.Addr(atomic.LoadUint64((*uint64)(&s.fill.addrs[s.taken&s.fill.mask])))
	s.taken++
	s.received[to] <- f &^ lapMask
}

// slot sends and receives for a while, and is now and then away in the middle of
// something.
func (s *sharing) slot(t *testing.T, number, rounds int, owned []atomic.Int32) {
	m, pool, rng := s.participants[number], s.pools[number], rand.New(rand.NewPCG(3, uint64(number)))
	m.slotTable.inside = func(place) {
		if rng.IntN(16) == 0 {
			for range rng.IntN(100) {
				runtime.Gosched()
			}
		}
	}
	queued := 0
	var back []mem.Addr
	for range rounds {
		for range rng.IntN(8) {
			if b, ok := pool.Get(); ok {
				queued++
				s.send(t, b, rng.IntN(len(s.participants)))
			}
		}
		for range len(s.received[number]) {
			f := <-s.received[number]
			if n := owned[s.frameNumber(f)].Add(1); n != 1 {
				t.Errorf("frame %#x is somebody else's, too", f)
			}
			s.slotTable.mark(m.held, f)
			back = append(back, f)
		}
		if len(back) >= slab {
			for _, f := range back {
				owned[s.frameNumber(f)].Add(-1)
			}
			m.give(back, m.held)
			back = back[:0]
		}
		if rng.IntN(4) > 0 { // else it computes
			queued -= m.look(pool) // the pool panics when a buffer comes twice
		}
	}
	for queued > 0 {
		queued -= m.look(pool)
	}
	for _, f := range back {
		owned[s.frameNumber(f)].Add(-1)
	}
	m.give(back, m.held)
}

func (s *sharing) frameNumber(f mem.Addr) int {
	return (int(f) - s.slotTable.framesAt()) / mem.FrameSize
}

// Whatever slots do at the same time, and wherever they are held up: every buffer
// comes back to its owner once, and every frame is somewhere, once.
func TestParticipant_sharesWithoutALock(t *testing.T) {
	const slots, txDepth, rxDepth = 4, 32, 40
	const frames = slots*(rxDepth+slab) + 12
	for _, start := range starts {
		s := newSharing(t, start, slots, txDepth, rxDepth, frames)
		owned := make([]atomic.Int32, frames)
		var all sync.WaitGroup
		for i := range slots {
			all.Go(func() { s.slot(t, i, 4000, owned) })
		}
		all.Wait()
		there := make([]int, frames)
		for ; s.taken != *s.fill.shared; s.taken++ {
			there[s.frameNumber(s.fill.addrs[s.taken&s.fill.mask]&^lapMask)]++
		}
		for i, r := range s.received {
			for range len(r) {
				there[s.frameNumber(<-r)]++
			}
			if h := s.slotTable.heldBy(i); len(h) > 0 {
				t.Errorf("slot %d holds %v", i, h)
			}
			if pool := s.pools[i]; pool.Free() != txDepth {
				t.Errorf("slot %d has %d buffers, want %d", i, pool.Free(), txDepth)
			}
		}
		for f, n := range there {
			if n != 1 {
				t.Errorf("start %d: frame %d is there %d times", start, f, n)
			}
		}
		if *s.done.shared == start || s.taken-start < 20*frames {
			t.Errorf("start %d: the rings went to %d and %d, which tests little", start, *s.done.shared-start, s.taken-start)
		}
	}
}

// The kernel gets frames that it has not had as those run out that it has, each once.
func TestParticipant_widen(t *testing.T) {
	const frames = 1000
	s := unbegunSharing(t, 0, 2, 64, 512, frames)
	s.begin(200)
	left := func() int { return int(atomic.LoadUint32(s.fill.shared) - s.taken) }
	take := func(n int) {
		s.taken += uint32(n)
		atomic.StoreUint32(s.fill.kernel, s.taken)
	}
	if m := s.participants[0]; !m.widen() || left() != 200 {
		t.Errorf("%d frames are left of 200: more are not needed", left())
	}
	take(100)
	if m := s.participants[1]; !m.widen() || left() != widenTo {
		t.Errorf("%d frames are left, want %d", left(), widenTo)
	}
	for i := 0; s.participants[i%2].widen(); i++ {
		take(left())
	}
	seen := map[mem.Addr]bool{}
	for _, a := range s.fill.addrs[:atomic.LoadUint32(s.fill.shared)] {
		seen[a&^lapMask] = true
	}
	if n := atomic.LoadUint32(s.fill.shared); n != frames || len(seen) != frames {
		t.Errorf("the kernel got %d frames, %d different ones, want %d", n, len(seen), frames)
	}
}

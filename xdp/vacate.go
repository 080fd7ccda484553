package xdp

import (
	"fmt"
	"math/bits"
	"runtime/debug"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// The maker of a shared queue takes back what a slot had whose process has ended
// ([Queue.Vacate]), and may do so with more rights than that process. All that it reads
// for it lies in memory that any process of a slot can write: the indices and entries
// of rings, and the maps of frames that are held. So it trusts none of that: it goes
// around a ring once at most, and gives the kernel nothing but frames to receive into.
// What was torn up may cost frames, which the slots miss that share the queue.

// isFrame reports whether an address lies in a frame to receive into.
func (g *slotTable) isFrame(a mem.Addr) bool {
	return a-g.frame(0) < mem.Addr(g.frames*mem.FrameSize)
}

// markReceived notes the frames in an RX ring as held by its slot, and empties the ring.
func (g *slotTable) markReceived(rx *rxRing, held []uint64) {
	rx.resume()
	n := rx.theirs - rx.ours
	if n > rx.mask+1 {
		return // the ring does not hold so many
	}
	for range n {
		if a := rx.pop().Addr; g.isFrame(a) {
			g.mark(held, a)
		}
	}
	rx.publish()
}

// heldBy returns the frames that a slot holds.
func (g *slotTable) heldBy(slot int) (frames []mem.Addr) {
	for i := range g.held[slot] {
		for w := atomic.LoadUint64(&g.held[slot][i]); w != 0; w &= w - 1 {
			if n := i*64 + bits.TrailingZeros64(w); n < g.frames {
				frames = append(frames, g.frame(n))
			}
		}
	}
	return frames
}

// guarded calls f, which uses memory that others have, too. Its size is fixed, but a process that
// may write to huge pages that were set aside can take them out of it, and if there are
// no others then the process that touches it next gets a SIGBUS. That is an error of guarded.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		if _, ok := fault.(interface{ Addr() uintptr }); !ok {
			panic(fault)
		}
		err = fmt.Errorf("xdp: a process has taken pages out of the memory that the slots share: %v", fault)
	}()
	return f()
}

package xdp

import (
	"math/bits"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// fillRing gives empty chunks to the kernel. The port counts what it gave and
// got back and never gives more than fits, so there is no room to ask for.
type fillRing struct {
	indices
	addrs []mem.Addr
}

// push writes a chunk into the ring. The kernel sees it after publish.
func (r *fillRing) push(chunk mem.Addr) {
	r.addrs[r.ours&r.mask] = chunk
	r.ours++
}

// Where many processes write the ring each uses put and show in place of push
// and publish. They need no lock, and a process stopped or killed between two
// instructions holds up no other: an entry is written once in a lap of the ring,
// by the first process there, and any process shows the kernel what is written. An entry
// carries its lap in the low bits of the address, which the kernel does not read
// (UMEM in aligned chunk mode).

// put writes a chunk into the first entry from at on that is not written yet,
// and returns the position behind it. All between what the kernel sees and that
// is written then. false: it gives up, and the chunk is lost, in a ring that a process has torn
// up. There is room for all chunks, so that the search ends within a lap or two.
func (r *fillRing) put(at uint32, chunk mem.Addr) (next uint32, ok bool) {
	for range putLaps * len(r.addrs) {
		entry := (*uint64)(&r.addrs[at&r.mask])
		old := atomic.LoadUint64(entry)
		switch shown := atomic.LoadUint32(r.shared); {
		case at-shown > r.mask:
			at = shown // others went on while we were stopped
		case mem.Addr(old)&lapMask == r.lap(at):
			at++
		case atomic.CompareAndSwapUint64(entry, old, uint64(chunk|r.lap(at))):
			return at + 1, true
		}
	}
	return at, false
}

// putLaps is more often than put goes around a ring while others write it, too.
const putLaps = 16

// show lets the kernel see all that is before end, which put has returned. A process that comes
// in between has shown at least one more entry, so that there are no more tries than
// entries unless a process tears up the ring.
func (r *fillRing) show(end uint32) {
	for range len(r.addrs) + 1 {
		shown := atomic.LoadUint32(r.shared)
		if end-shown-1 > r.mask || atomic.CompareAndSwapUint32(r.shared, shown, end) {
			return // done by another process, or by this one
		}
	}
}

// lapMask is where an entry carries its lap.
const lapMask = mem.FrameSize - 1

// lap marks the entries of one lap. It differs from that of 4095 laps before,
// and in the first one from that of a ring that was never written.
func (r *fillRing) lap(at uint32) mem.Addr {
	return mem.Addr(at>>bits.OnesCount32(r.mask)+1) & lapMask
}

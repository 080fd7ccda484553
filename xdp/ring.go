package xdp

import "sync/atomic"

// indices are the two counters of a ring, which user space and the kernel
// share: the producer's and the consumer's. They run freely and are masked
// when used. We write one of them and only read the other.
//
// Reading the kernel's index is a cache miss when another processor wrote it,
// so it is read once per batch, and ours is written once per batch. Go's
// atomics order more than the acquire and release that are needed here, which
// is correct everywhere and cheap when paid per batch.
type indices struct {
	shared *uint32 // our index, as the kernel sees it
	kernel *uint32 // the kernel's index
	flags  *uint32
	mask   uint32
	ours   uint32 // our index: at or ahead of *shared
	theirs uint32 // the kernel's index when it was last read
}

// size returns how many entries the ring has.
func (r *indices) size() int { return int(r.mask) + 1 }

// refresh reads the kernel's index. What the kernel wrote into the ring before
// it moved that index is visible afterwards (load-acquire).
func (r *indices) refresh() { r.theirs = atomic.LoadUint32(r.kernel) }

// publish makes our index, and what we wrote into the ring before, visible to
// the kernel (store-release).
func (r *indices) publish() { atomic.StoreUint32(r.shared, r.ours) }

// needWakeup reports whether the kernel sleeps until it is woken by a system
// call (XDP_USE_NEED_WAKEUP).
func (r *indices) needWakeup() bool { return atomic.LoadUint32(r.flags)&ringNeedWakeup != 0 }

// XDP_RING_NEED_WAKEUP of linux/if_xdp.h.
const ringNeedWakeup = 1

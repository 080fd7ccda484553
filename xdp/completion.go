package xdp

import (
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// completionRing hands back buffers that were sent, under the addresses that
// they were sent with.
type completionRing struct {
	indices
	addrs []mem.Addr
}

// available returns how many buffers wait to be taken.
func (r *completionRing) available() int {
	r.refresh()
	return int(r.theirs - r.ours)
}

// pop takes the next buffer; there must be one. The entry is the kernel's
// again after publish.
func (r *completionRing) pop() mem.Addr {
	addr := r.addrs[r.ours&r.mask]
	r.ours++
	return addr
}

// entry returns what is at a position, for rings that several read.
func (r *completionRing) entry(at uint32) mem.Addr {
	return mem.Addr(atomic.LoadUint64((*uint64)(&r.addrs[at&r.mask])))
}

// unread returns how many entries before a position the kernel has not got back;
// it is a huge number when the kernel has got more than those.
func (r *completionRing) unread(at uint32) uint32 { return at - atomic.LoadUint32(r.shared) }

package xdp

import "github.com/xwarp/xwarp/internal/mem"

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

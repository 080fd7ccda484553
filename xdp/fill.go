package xdp

import "github.com/xwarp/xwarp/internal/mem"

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

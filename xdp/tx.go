package xdp

import "github.com/xwarp/xwarp/internal/carrier/fabric"

// txRing gives buffers to the kernel to be sent. The port counts what it gave
// and got back and never gives more than fits.
type txRing struct {
	indices
	descs []Desc
}

// push writes buffers into the ring. The kernel sees them after publish.
func (r *txRing) push(src []Desc) {
	for i := range src {
		r.descs[r.ours&r.mask] = src[i]
		r.ours++
	}
}

// waiting returns how many buffers the kernel has not taken yet.
func (r *txRing) waiting() uint32 {
	r.refresh()
	return r.ours - r.theirs
}

// wholeFrames returns how many of the first limit buffers of src make whole
// frames.
func wholeFrames(src []Desc, limit int) int {
	if len(src) <= limit {
		return len(src)
	}
	for limit > 0 && src[limit-1].Flags&fabric.More != 0 {
		limit--
	}
	return limit
}

package xdp

import (
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// rxRing hands us received buffers.
type rxRing struct {
	indices
	descs []Desc
}

// received is what take found.
type received struct {
	bufs, frames int
	bytes        uint64
	tooLong      bool // the next frame has more than fabric.MaxBufs buffers
}

// take copies the buffers of whole frames into dst, as many as fit. A frame
// whose last buffer has not arrived, or does not fit, stays in the ring. The
// entries are the kernel's again after publish.
func (r *rxRing) take(dst []Desc) received {
	r.refresh()
	if r.theirs == r.ours { // another core writes the entry and then its index: both shall be on their way at once
		prefetch(&r.descs[r.ours&r.mask])
		return received{}
	}
	n := min(int(r.theirs-r.ours), len(dst))
	var got received
	var bytes uint64
	for i := range n {
		d := r.descs[(r.ours+uint32(i))&r.mask]
		d.Flags &= fabric.More
		dst[i] = d
		bytes += uint64(d.Len)
		if d.Flags == 0 {
			got.bufs, got.bytes = i+1, bytes
			got.frames++
		}
	}
	got.tooLong = got.bufs == 0 && n >= fabric.MaxBufs
	r.ours += uint32(got.bufs)
	return got
}

// resume goes on where another process has stopped to take buffers.
func (r *rxRing) resume() {
	r.ours = atomic.LoadUint32(r.shared)
	r.refresh()
}

// pop takes the next buffer, whatever it is part of; there must be one.
func (r *rxRing) pop() fabric.Desc {
	d := r.descs[r.ours&r.mask]
	r.ours++
	return d
}

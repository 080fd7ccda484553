package mem

import (
	"slices"
	"sort"
)

// heap hands out ranges of the arena: first fit over a sorted list of free
// ranges. It serves buffers that live long (frame pools, eager buffers,
// mpi.Alloc), never the path of a message.
type heap struct {
	ranges []span        // free, sorted, never adjacent
	used   map[Addr]Addr // start of a range handed out -> its size
	free   Addr
}

type span struct{ start, size Addr }

func (h *heap) reset(size Addr) { h.resetTo(0, size) }

// resetTo makes size bytes from start on all that there is.
func (h *heap) resetTo(start, size Addr) {
	h.ranges = []span{{start, size}}[:min(size, 1)] // none of an empty arena
	h.used = map[Addr]Addr{}
	h.free = size
}

func (h *heap) alloc(n, align Addr) (Addr, bool) {
	if n > h.free { // also keeps the sums below from wrapping
		return 0, false
	}
	n = (max(n, 1) + 63) &^ 63
	for i, r := range h.ranges {
		at := (r.start + align - 1) &^ (align - 1)
		if at+n > r.start+r.size {
			continue
		}
		rest := [2]span{{r.start, at - r.start}, {at + n, r.start + r.size - at - n}}
		left := rest[:]
		if rest[1].size == 0 {
			left = left[:1]
		}
		if rest[0].size == 0 {
			left = left[1:]
		}
		h.ranges = slices.Replace(h.ranges, i, i+1, left...)
		h.used[at] = n
		h.free -= n
		return at, true
	}
	return 0, false
}

func (h *heap) release(at Addr) {
	n, ok := h.used[at]
	if !ok {
		panic("mem: Free of an address that Alloc did not return, or twice")
	}
	delete(h.used, at)
	h.free += n
	i := sort.Search(len(h.ranges), func(i int) bool { return h.ranges[i].start > at })
	h.ranges = slices.Insert(h.ranges, i, span{at, n})
	if i+1 < len(h.ranges) && at+n == h.ranges[i+1].start {
		h.ranges[i].size += h.ranges[i+1].size
		h.ranges = append(h.ranges[:i+1], h.ranges[i+2:]...)
	}
	if i > 0 && h.ranges[i-1].start+h.ranges[i-1].size == at {
		h.ranges[i-1].size += h.ranges[i].size
		h.ranges = append(h.ranges[:i], h.ranges[i+1:]...)
	}
}

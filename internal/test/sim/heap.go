package sim

import "github.com/xwarp/xwarp/internal/base/mono"

// firer is something that happens at a point in time.
type firer interface{ fire(w *World) }

// event is an entry of the heap. order decides between events at the same
// time: random bits from the seed above, a sequence number below.
type event struct {
	at    mono.Time
	order uint64
	what  firer
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.order < f.order
}

// heap is a binary min-heap of events by (at, order). container/heap would
// allocate for each push.
type heap []event

func (h *heap) push(e event) {
	*h = append(*h, e)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
}

// pop removes the first event of a heap that is not empty.
func (h *heap) pop() event {
	s := *h
	first, last := s[0], s[len(s)-1]
	s[len(s)-1] = event{}
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].before(&s[child]) {
			child++
		}
		if !s[child].before(&last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = last
	return first
}

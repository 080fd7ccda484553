package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

func TestHeap_sorts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var h heap
	var last event
	for round := range 2000 {
		for range r.IntN(4) {
			h.push(event{at: max(last.at, mono.Time(r.IntN(50)+round)), order: r.Uint64()})
		}
		if len(h) == 0 {
			continue
		}
		e := h.pop()
		if e.at < last.at {
			t.Fatalf("popped time %d after %d", e.at, last.at)
		}
		for i := range h {
			if h[i].before(&e) {
				t.Fatalf("popped (%d, %d) before (%d, %d)", e.at, e.order, h[i].at, h[i].order)
			}
		}
		last = e
	}
}

func TestAllocs_heap(t *testing.T) {
	h := make(heap, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		h.push(event{at: 2})
		h.push(event{at: 1})
		h.pop()
		h.pop()
	}); n != 0 {
		t.Errorf("%v allocations for two events", n)
	}
}

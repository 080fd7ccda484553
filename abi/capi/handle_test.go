package capi

import (
	"sync"
	"testing"
)

// A handle finds its object until that is removed, and no other one. Places are used again, and no object is there
// before it is whole, whichever threads make others.
func TestTable(t *testing.T) {
	for _, threads := range []int{1, 4} {
		tab := &table[*int]{kind: kindInfo, serial: threads == 1}
		var all sync.WaitGroup
		for range threads {
			all.Go(func() {
				for range 5 {
					var handles []Handle
					for i := range 3 * chunkSize / 2 {
						h := tab.add(&i)
						handles = append(handles, h)
						if found := tab.find(0, func(p **int) bool { return *p == &i || **p < 0 }); found != h {
							t.Errorf("%#x found in place of %#x", found, h)
							return
						}
					}
					for i, h := range handles {
						if p := tab.get(h); p == nil || **p != i {
							t.Errorf("%#x: not the object %d", h, i)
						}
						tab.remove(h)
					}
				}
			})
		}
		all.Wait()
		if most := threads * 3 * chunkSize / 2; tab.n > most || len(tab.free) != tab.n {
			t.Errorf("%d threads: %d places, %d of them free; at most %d objects were there at a time", threads, tab.n, len(tab.free), most)
		}
		p, h := tab.take()
		if *p != nil || tab.get(h) != p {
			t.Error("what was taken is not a zero value in its place")
		}
		for _, wrong := range []Handle{0, makeHandle(kindComm, 0), makeHandle(kindInfo, tab.n), makeHandle(kindInfo, 100*chunkSize)} {
			if tab.get(wrong) != nil {
				t.Errorf("%#x has an object", wrong)
			}
		}
		tab.remove(h)
		tab.remove(h)
		if tab.get(h) != nil || len(tab.free) != tab.n {
			t.Error("an object is there after it was removed, or its place is free twice")
		}
	}
}

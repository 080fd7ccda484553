package llp

import "github.com/xwarp/xwarp/internal/fabric"

// remoteTable finds a peer by its address: open addressing over powers of two,
// never more than half full.
type remoteTable struct {
	keys []fabric.Remote // 0 is empty: no peer has port 0 and address 0
	vals []int32
	n    int
}

func (t *remoteTable) slot(r fabric.Remote) int {
	return int(uint64(r) * 0x9e3779b97f4a7c15 >> 32 & uint64(len(t.keys)-1))
}

func (t *remoteTable) find(r fabric.Remote) (int, bool) {
	if t.n == 0 {
		return 0, false
	}
	for i := t.slot(r); t.keys[i] != 0; i = (i + 1) & (len(t.keys) - 1) {
		if t.keys[i] == r {
			return int(t.vals[i]), true
		}
	}
	return 0, false
}

func (t *remoteTable) add(r fabric.Remote, v int) {
	if 2*(t.n+1) > len(t.keys) {
		old := *t
		size := max(16, 2*len(old.keys))
		t.keys, t.vals, t.n = make([]fabric.Remote, size), make([]int32, size), 0
		for i, k := range old.keys {
			if k != 0 {
				t.add(k, int(old.vals[i]))
			}
		}
	}
	i := t.slot(r)
	for t.keys[i] != 0 {
		i = (i + 1) & (len(t.keys) - 1)
	}
	t.keys[i], t.vals[i] = r, int32(v)
	t.n++
}

// remove takes a peer out and moves those behind it up, so that no search ends
// at the gap.
func (t *remoteTable) remove(r fabric.Remote) {
	if _, ok := t.find(r); !ok {
		return
	}
	mask := len(t.keys) - 1
	gap := t.slot(r)
	for t.keys[gap] != r {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; t.keys[i] != 0; i = (i + 1) & mask {
		if (i-t.slot(t.keys[i]))&mask >= (i-gap)&mask {
			t.keys[gap], t.vals[gap] = t.keys[i], t.vals[i]
			gap = i
		}
	}
	t.keys[gap] = 0
	t.n--
}

package p2p

import "testing"

func TestMessagePool_reusesMemory(t *testing.T) {
	var p messagePool
	for _, n := range []int{0, 1, 63, 64, 65, 4096, 16384, 1 << 20} {
		m := p.get(n)
		if len(m.data) != n || m.entry.Owner != m {
			t.Fatalf("message of %d bytes: %d bytes, owner %p", n, len(m.data), m.entry.Owner)
		}
		p.put(m)
		if again := p.get(max(n-1, min(n, 1))); n > 1 && class(n) == class(n-1) && again != m {
			t.Errorf("%d bytes: the memory was not used again", n)
		} else {
			p.put(again)
		}
	}
}

func TestMessagePool_neverTooSmall(t *testing.T) {
	var p messagePool
	for n := range 5000 {
		m := p.get(n)
		if cap(m.data) < n {
			t.Fatalf("%d bytes wanted, %d given", n, cap(m.data))
		}
		p.put(m)
	}
}

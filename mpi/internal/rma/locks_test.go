package rma

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever is asked for, an exclusive lock is alone, who asked first has it first, and in
// the end everybody has had what he asked for.
func TestLocks_random(t *testing.T) {
	const n = 6
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var l locks
		var order []int32 // who waits, in the order of asking
		want, has := map[int32]Mode{}, map[int32]Mode{}
		take := func(granted []int32) {
			for _, r := range granted {
				if order[0] != r {
					t.Fatalf("seed %d: rank %d has the lock before rank %d, who asked first", seed, r, order[0])
				}
				order, has[r] = order[1:], want[r]
				delete(want, r)
			}
			for r, m := range has {
				if m == Exclusive && len(has) > 1 {
					t.Fatalf("seed %d: rank %d has it exclusive, and all have %v", seed, r, has)
				}
			}
			if len(order) > 0 && (len(has) == 0 || want[order[0]] == Shared && !slices.Contains(modes(has), Exclusive)) {
				t.Fatalf("seed %d: rank %d waits for %v, and %v have it", seed, order[0], want[order[0]], has)
			}
		}
		for range 200 {
			r := int32(rnd.IntN(n))
			switch _, holds := has[r]; {
			case rnd.IntN(20) == 0:
				delete(has, r)
				delete(want, r)
				order = slices.DeleteFunc(order, func(x int32) bool { return x == r })
				take(l.lost(r))
			case holds:
				delete(has, r)
				granted, ok := l.release(r)
				if !ok {
					t.Fatalf("seed %d: rank %d cannot release what it has", seed, r)
				}
				take(granted)
			case want[r] == Unlocked && rnd.IntN(3) == 0:
				can := len(order) == 0 && !slices.Contains(modes(has), Exclusive)
				got, ok := l.try(n, r, Shared)
				if got != can || !ok {
					t.Fatalf("seed %d: try gives %v, want %v (%v has it, %v wait)", seed, got, can, has, order)
				}
				if got {
					has[r] = Shared
				}
			case want[r] == Unlocked:
				want[r] = Shared + Mode(rnd.IntN(2))
				order = append(order, r)
				granted, ok := l.claim(n, r, want[r])
				if !ok {
					t.Fatalf("seed %d: rank %d may not ask", seed, r)
				}
				take(granted)
			default:
				if _, ok := l.claim(n, r, Shared); ok {
					t.Fatalf("seed %d: rank %d asks twice", seed, r)
				}
			}
		}
	}
}

func modes(m map[int32]Mode) (all []Mode) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// FuzzFront feeds bytes of others to the parser: what it accepts is inside of them, and
// writes back as the same.
func FuzzFront(f *testing.F) {
	f.Add([]byte{14, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		var x front
		data, ok := x.get(b)
		if !ok {
			return
		}
		again := make([]byte, len(b))
		if n := x.put(again); n+len(data) != len(b) || !slices.Equal(again[:n], b[:n]) {
			t.Errorf("%x is written as %x", b, again[:n])
		}
	})
}

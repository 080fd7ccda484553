package mem

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func TestAlloc_refuses(t *testing.T) {
	a := Over(make([]byte, 4096))
	for _, c := range []struct{ n, align int }{{-1, 0}, {math.MinInt, 0}, {1, -64}, {1, 3}, {1, 96}} {
		if _, err := a.Alloc(c.n, c.align); err == nil {
			t.Errorf("Alloc(%d, %d) succeeded", c.n, c.align)
		}
	}
	for _, c := range []struct{ n, align int }{{4097, 0}, {math.MaxInt, 0}, {math.MaxInt, 1 << 62}} {
		if _, err := a.Alloc(c.n, c.align); !errors.Is(err, ErrNoMemory) {
			t.Errorf("Alloc(%d, %d): %v", c.n, c.align, err)
		}
	}
	if a.Room() != 4096 {
		t.Errorf("%d bytes free after nothing was handed out", a.Room())
	}
}

func TestAlloc_zeroBytesIsAnAddressOfItsOwn(t *testing.T) {
	a := Over(make([]byte, 4096))
	x, err1 := a.Alloc(0, 0)
	y, err2 := a.Alloc(0, 0)
	if err1 != nil || err2 != nil || x == y {
		t.Errorf("%d and %d, %v, %v", x, y, err1, err2)
	}
}

func TestFree_panics(t *testing.T) {
	a := Over(make([]byte, 4096))
	x, err := a.Alloc(100, 0)
	if err != nil {
		t.Fatal(err)
	}
	a.Free(x)
	for _, addr := range []Addr{x, 64, 5000} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Free(%d) did not panic", addr)
				}
			}()
			a.Free(addr)
		}()
	}
}

// Random use against a map of bytes: nothing overlaps, nothing gets lost, and
// free neighbours become one range.
func TestAlloc_random(t *testing.T) {
	const size = 1 << 16
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		a := Over(make([]byte, size))
		owner := make([]int, size) // 0 is free
		type piece struct {
			at Addr
			n  int
		}
		var pieces []piece
		for round := 1; round < 2000; round++ {
			if len(pieces) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(pieces))
				p := pieces[i]
				pieces[i] = pieces[len(pieces)-1]
				pieces = pieces[:len(pieces)-1]
				clear(owner[p.at : int(p.at)+p.n])
				a.Free(p.at)
				continue
			}
			n, align := r.IntN(3000), 1<<r.IntN(13)
			at, err := a.Alloc(n, align)
			if err != nil {
				continue
			}
			if int(at)%align != 0 || int(at)+n > size {
				t.Fatalf("seed %d: %d bytes at %d, alignment %d", seed, n, at, align)
			}
			for j := range owner[at : int(at)+n] {
				if owner[int(at)+j] != 0 {
					t.Fatalf("seed %d: round %d got bytes of round %d", seed, round, owner[int(at)+j])
				}
				owner[int(at)+j] = round
			}
			pieces = append(pieces, piece{at, n})
		}
		for _, p := range pieces {
			a.Free(p.at)
		}
		if len(a.heap.ranges) != 1 || a.heap.ranges[0] != (span{0, size}) || a.Room() != size || len(a.heap.used) != 0 {
			t.Fatalf("seed %d: all given back, free: %v, room %d", seed, a.heap.ranges, a.Room())
		}
	}
}

package main

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPartition_balanced(t *testing.T) {
	a := diffusion(t)
	for _, n := range []int{1, 2, 3, 7, 64} {
		bounds := partition(a.ptr, n)
		if bounds[0] != 0 || int(bounds[n]) != a.rows() || !slices.IsSorted(bounds) {
			t.Fatalf("%d ranks: bounds %v do not cover the rows", n, bounds)
		}
		share := len(a.val) / n
		for r := range n {
			have := int(a.ptr[bounds[r+1]] - a.ptr[bounds[r]])
			if have < share-5 || have > share+5 { // a row has at most 5 entries
				t.Errorf("rank %d of %d has %d entries, its share is %d", r, n, have, share)
			}
		}
	}
}

func TestPartition_moreRanksThanRows(t *testing.T) {
	bounds := partition([]int32{0, 1, 2}, 5)
	if bounds[0] != 0 || bounds[5] != 2 || !slices.IsSorted(bounds) {
		t.Errorf("bounds are %v", bounds)
	}
}

// Multiplying by parts, with what the halo says that each needs of the others,
// gives what multiplying the whole gives.
func TestNewHalo_multiply(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a := randomSPD(rng, 1+rng.IntN(40), rng.Float64())
		n := 1 + rng.IntN(6)
		x, want := make([]float64, a.rows()), make([]float64, a.rows())
		for i := range x {
			x[i] = rng.Float64()
		}
		a.multiply(want, x)

		bounds := partition(a.ptr, n)
		parts, halos := make([]*csr, n), make([]halo, n)
		for r := range n {
			parts[r] = a.slice(bounds[r], bounds[r+1])
			halos[r] = newHalo(parts[r], bounds, r)
		}
		for r := range n {
			local := slices.Clone(x[bounds[r]:bounds[r+1]])
			for _, p := range halos[r].peers {
				if p.from != len(local) {
					t.Fatalf("seed %d: rank %d expects entries of rank %d at %d, not %d", seed, r, p.rank, p.from, len(local))
				}
				back := slices.IndexFunc(halos[p.rank].peers, func(q peer) bool { return q.rank == r })
				if back < 0 {
					t.Fatalf("seed %d: rank %d needs entries of rank %d, which does not know", seed, r, p.rank)
				}
				for _, i := range halos[p.rank].peers[back].send {
					local = append(local, x[bounds[p.rank]+i])
				}
				if len(local) != p.to {
					t.Fatalf("seed %d: rank %d sends %d entries to rank %d, which expects %d", seed, p.rank, len(local)-p.from, r, p.to-p.from)
				}
			}
			y := make([]float64, parts[r].rows())
			parts[r].multiply(y, local)
			if !slices.Equal(y, want[bounds[r]:bounds[r+1]]) {
				// The order of columns in a row is that of the whole
				// matrix, so the sums are equal to the last bit.
				t.Fatalf("seed %d: rank %d of %d: got %v, want %v", seed, r, n, y, want[bounds[r]:bounds[r+1]])
			}
		}
	}
}

// A rank asks only for what its rows touch.
func TestNewHalo_noMoreThanNeeded(t *testing.T) {
	a := diffusion(t) // a grid of 100 x 100: neighbours share one line of it
	bounds := partition(a.ptr, 4)
	for r := range 4 {
		h := newHalo(a.slice(bounds[r], bounds[r+1]), bounds, r)
		neighbours := 2
		if r == 0 || r == 3 {
			neighbours = 1
		}
		if len(h.peers) != neighbours || h.size > 101*neighbours {
			t.Errorf("rank %d has %d peers and %d entries of them", r, len(h.peers), h.size)
		}
	}
}

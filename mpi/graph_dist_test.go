package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// arc is an edge of a graph with its weight, and the rank that knows of it.
type arc struct{ from, to, weight, knows int }

// randomArcs is a graph of p nodes.
func randomArcs(rng *rand.Rand, p int) []arc {
	arcs := make([]arc, rng.IntN(4*p))
	for i := range arcs {
		arcs[i] = arc{rng.IntN(p), rng.IntN(p), rng.IntN(9), rng.IntN(p)}
	}
	slices.SortStableFunc(arcs, func(a, b arc) int { return a.knows - b.knows })
	return arcs
}

// TestDistGraphCreate_random: whoever knows of an edge, both of its ends find it,
// in the order of those who knew, and messages go along all of them.
func TestDistGraphCreate_random(t *testing.T) {
	onRanks(t, []int{1, 2, 3, 5, 8}, func(p *mpi.Proc) error {
		w := p.World()
		rng := rand.New(rand.NewPCG(uint64(w.Size()), 3))
		for i := range 12 {
			arcs := randomArcs(rng, w.Size())
			reorder, weighted := i%3 == 1, i%2 == 0
			var nodes, degrees []int
			var dests mpi.Edges
			for _, a := range arcs {
				if a.knows != w.Rank() {
					continue
				}
				if n := len(nodes); n > 0 && nodes[n-1] == a.from {
					degrees[n-1]++
				} else {
					nodes, degrees = append(nodes, a.from), append(degrees, 1)
				}
				dests.Ranks = append(dests.Ranks, a.to)
				if weighted {
					dests.Weights = append(dests.Weights, a.weight)
				}
			}
			g, err := w.DistGraphCreate(nodes, degrees, dests, reorder)
			if err != nil {
				return err
			}
			if err := errors.Join(checkArcs(g, arcs, weighted), g.Free()); err != nil {
				return fmt.Errorf("graph %d, reorder %v: %w", i, reorder, err)
			}
		}
		return nil
	})
}

// checkArcs checks the neighbours of this rank, and sends along the edges.
func checkArcs(g *mpi.Comm, arcs []arc, weighted bool) error {
	var want [2]mpi.Edges // in and out
	for _, a := range arcs {
		for side, end := range [2][2]int{{a.to, a.from}, {a.from, a.to}} {
			if end[0] == g.Rank() {
				want[side].Ranks = append(want[side].Ranks, end[1])
				want[side].Weights = append(want[side].Weights, a.weight)
			}
		}
	}
	in, out, err := g.DistGraphNeighbors()
	if err != nil {
		return err
	}
	for side, got := range [2]mpi.Edges{in, out} {
		if !slices.Equal(got.Ranks, want[side].Ranks) {
			return fmt.Errorf("neighbours %v, want %v", got.Ranks, want[side].Ranks)
		}
		if weighted && !slices.Equal(got.Weights, want[side].Weights) || !weighted && got.Weights != nil {
			return fmt.Errorf("weights %v, want %v", got.Weights, want[side].Weights)
		}
	}
	heard := make([]int, len(in.Ranks))
	if err := mpi.NeighborAllgather(g, []int{g.Rank()}, heard); err != nil {
		return err
	}
	return expect("heard from", heard, want[0].Ranks)
}

func TestDistGraphCreate_adjacentReordered(t *testing.T) {
	onRanks(t, []int{6}, func(p *mpi.Proc) error {
		w := p.World()
		right, left := (w.Rank()+1)%6, (w.Rank()+5)%6
		g, err := w.DistGraphCreateAdjacent(mpi.Edges{Ranks: []int{right, left}}, mpi.Edges{Ranks: []int{left, right}, Weights: []int{3, 4}}, true)
		if err != nil {
			return err
		}
		in, out, err := g.DistGraphNeighbors()
		right, left = (g.Rank()+1)%6, (g.Rank()+5)%6
		if err != nil || !slices.Equal(in.Ranks, []int{right, left}) || !slices.Equal(out.Ranks, []int{left, right}) ||
			in.Weights != nil || !slices.Equal(out.Weights, []int{3, 4}) {
			return fmt.Errorf("in %v, out %v: %v", in, out, err)
		}
		return g.Free()
	})
}

func TestDistGraphCreate_wrong(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		w := p.World()
		create := func(nodes, degrees, dests, weights []int) error {
			_, err := w.DistGraphCreate(nodes, degrees, mpi.Edges{Ranks: dests, Weights: weights}, false)
			return err
		}
		for i, want := range []struct {
			class mpi.ErrorClass
			err   error
		}{
			{mpi.ErrRank, create([]int{1}, []int{1}, []int{0}, nil)},
			{mpi.ErrRank, create([]int{0}, []int{1}, []int{-1}, nil)},
			{mpi.ErrArg, create([]int{0}, []int{2}, []int{0}, nil)},
			{mpi.ErrArg, create([]int{0}, []int{-1}, []int{0}, nil)},
			{mpi.ErrArg, create([]int{0}, []int{1}, []int{0, 0}, nil)},
			{mpi.ErrArg, create([]int{0}, nil, nil, nil)},
			{mpi.ErrArg, create([]int{0}, []int{1}, []int{0}, []int{-1})},
			{mpi.ErrArg, create([]int{0}, []int{1}, []int{0}, []int{1, 1})},
		} {
			if err := wantClass(want.err, want.class); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		return nil
	})
}

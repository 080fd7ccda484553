package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// note is what rank from sends into direction i.
func note(from, i, n int) []int32 {
	v := make([]int32, n)
	for k := range v {
		v[k] = int32(1000*from + 100*i + k)
	}
	return v
}

// inGrid tests the neighbourhood collectives on a grid: what comes from a
// neighbour went out in the opposite direction.
func inGrid(g *mpi.Comm, f form, n int) error {
	dims, _, coords, err := g.Cart()
	if err != nil {
		return err
	}
	var out, want, wantAll []int32
	const untouched = -7
	for dim := range dims {
		low, high, err := g.CartShift(dim, 1)
		if err != nil {
			return err
		}
		for i, r := range []int{low, high} {
			out = append(out, note(g.Rank(), 2*dim+i, n)...)
			if r == mpi.ProcNull {
				nobody := slices.Repeat([]int32{untouched}, n)
				want, wantAll = append(want, nobody...), append(wantAll, nobody...)
				continue
			}
			want = append(want, note(r, 2*dim+1-i, n)...)
			wantAll = append(wantAll, note(r, 99, n)...)
		}
	}
	in, all := slices.Repeat([]int32{untouched}, len(out)), slices.Repeat([]int32{untouched}, len(out))
	mine := note(g.Rank(), 99, n)
	err = errors.Join(f.call(
		func() error { return mpi.NeighborAlltoall(g, out, in) },
		func() (mpi.Request, error) { return mpi.IneighborAlltoall(g, out, in) },
		func() (*mpi.Persistent, error) { return mpi.NeighborAlltoallInit(g, out, in) },
	), f.call(
		func() error { return mpi.NeighborAllgather(g, mine, all) },
		func() (mpi.Request, error) { return mpi.IneighborAllgather(g, mine, all) },
		func() (*mpi.Persistent, error) { return mpi.NeighborAllgatherInit(g, mine, all) },
	), expect("NeighborAlltoall", in, want), expect("NeighborAllgather", all, wantAll))
	if err != nil {
		return fmt.Errorf("grid %v, at %v, %d elements: %w", dims, coords, n, err)
	}
	return nil
}

func TestNeighbor_grids(t *testing.T) {
	onRanks(t, []int{1, 2, 4, 6}, func(p *mpi.Proc) error {
		for _, dims := range [][]int{{0}, {0, 0}, {1, 0, 0}} {
			if err := mpi.DimsCreate(p.World().Size(), dims); err != nil {
				return err
			}
			for _, round := range []bool{false, true} {
				g, err := p.World().CartCreate(dims, slices.Repeat([]bool{round}, len(dims)), true)
				if err != nil {
					return err
				}
				for _, f := range []form{blocking, nonblocking, persistent} {
					for _, n := range []int{1, 10, 9000} { // 36 KB goes by rendezvous
						if err := inGrid(g, f, n); err != nil {
							return err
						}
					}
				}
				if err := g.Free(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestNeighbor_graphs lets every rank send to the next two, and lengths depend on
// the sender.
func TestNeighbor_graphs(t *testing.T) {
	onRanks(t, []int{1, 2, 5}, func(p *mpi.Proc) error {
		w := p.World()
		n, me := w.Size(), w.Rank()
		dests := []int{(me + 1) % n, (me + 2) % n}
		sources := []int{(me + n - 1) % n, (me + 2*n - 2) % n}
		g, err := w.DistGraphCreateAdjacent(mpi.Edges{Ranks: sources}, mpi.Edges{Ranks: dests}, false)
		if err != nil {
			return err
		}
		length := func(r int) int { return 3 + 2*r }
		mine := note(me, 0, length(me))
		counts := []int{length(sources[0]), length(sources[1])}
		want := slices.Concat(note(sources[0], 0, counts[0]), note(sources[1], 0, counts[1]))
		outs := [][]int32{note(me, 0, length(me)), note(me, 1, length(me))}
		wants := slices.Concat(note(sources[0], 0, counts[0]), note(sources[1], 1, counts[1]))
		for _, f := range []form{blocking, nonblocking, persistent} {
			in, inv := make([]int32, len(want)), make([]int32, len(wants))
			ins := [][]int32{make([]int32, counts[0]), make([]int32, counts[1])}
			out, outCounts := slices.Concat(outs...), []int{length(me), length(me)}
			err := errors.Join(f.call(
				func() error { return mpi.NeighborAllgatherv(g, mine, in, counts, nil) },
				func() (mpi.Request, error) { return mpi.IneighborAllgatherv(g, mine, in, counts, nil) },
				func() (*mpi.Persistent, error) { return mpi.NeighborAllgathervInit(g, mine, in, counts, nil) },
			), f.call(
				func() error { return mpi.NeighborAlltoallv(g, out, outCounts, nil, inv, counts, nil) },
				func() (mpi.Request, error) {
					return mpi.IneighborAlltoallv(g, out, outCounts, nil, inv, counts, nil)
				},
				func() (*mpi.Persistent, error) {
					return mpi.NeighborAlltoallvInit(g, out, outCounts, nil, inv, counts, nil)
				},
			), f.call(
				func() error { return mpi.NeighborAlltoallw(g, outs, ins) },
				func() (mpi.Request, error) { return mpi.IneighborAlltoallw(g, outs, ins) },
				func() (*mpi.Persistent, error) { return mpi.NeighborAlltoallwInit(g, outs, ins) },
			), expect("NeighborAllgatherv", in, want), expect("NeighborAlltoallv", inv, wants),
				expect("NeighborAlltoallw", slices.Concat(ins...), wants))
			if err != nil {
				return fmt.Errorf("%d ranks, form %d: %w", n, f, err)
			}
		}
		// A graph that all ranks know: a star.
		index, edges := make([]int, n), []int{}
		for r := range n {
			if r > 0 {
				edges = append(edges, r)
			}
			index[r] = n - 1 + r
		}
		edges = append(edges, make([]int, n-1)...)
		star, err := w.GraphCreate(index, edges, false)
		if err != nil {
			return err
		}
		near, err := star.GraphNeighbors(star.Rank())
		if err != nil {
			return err
		}
		in, want2 := make([]int32, 4*len(near)), []int32(nil)
		for _, r := range near {
			want2 = append(want2, note(r, 5, 4)...)
		}
		return errors.Join(mpi.NeighborAllgather(star, note(me, 5, 4), in), expect("star", in, want2),
			star.Free(), g.Free())
	})
}

func TestNeighbor_errors(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		w := p.World()
		g, err := w.CartCreate([]int{2}, []bool{true}, false)
		if err != nil {
			return err
		}
		v := make([]int, 3)
		return errors.Join(
			wantClass(mpi.NeighborAllgather(w, v, v), mpi.ErrTopology),
			wantClass(mpi.NeighborAlltoall(g, v, v[:2]), mpi.ErrCount),
			wantClass(mpi.NeighborAllgatherv(g, v, v, []int{1}, nil), mpi.ErrArg),
			wantClass(mpi.NeighborAllgatherv(g, v, v, []int{2, 2}, nil), mpi.ErrCount),
			wantClass(mpi.NeighborAlltoallw(g, [][]int{v}, [][]int{v, v}), mpi.ErrArg),
		)
	})
}

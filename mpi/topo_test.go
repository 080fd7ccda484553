package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestDimsCreate(t *testing.T) {
	for _, c := range []struct {
		n        int
		in, want []int
	}{
		{6, []int{0, 0}, []int{3, 2}},
		{7, []int{0, 0}, []int{7, 1}},
		{12, []int{0, 0, 0}, []int{3, 2, 2}},
		{64, []int{0, 0, 0}, []int{4, 4, 4}},
		{12, []int{0, 3, 0}, []int{2, 3, 2}},
		{1, []int{0, 0}, []int{1, 1}},
		{60, []int{0, 0, 0}, []int{5, 4, 3}},
		{5, []int{5}, []int{5}},
		// Of equal differences the smallest dimensions.
		{6125, []int{0, 0}, []int{125, 49}},
		{163296, make([]int, 11), []int{7, 4, 3, 3, 3, 3, 3, 3, 2, 2, 2}},
		{472392, make([]int, 11), []int{6, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3}},
	} {
		got := slices.Clone(c.in)
		if err := mpi.DimsCreate(c.n, got); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d ranks in %v: %v, %v, want %v", c.n, c.in, got, err, c.want)
		}
	}
	for _, c := range [][]int{{7, 2, 0}, {6, 4}, {6, -1}, {0, 0}} {
		if err := mpi.DimsCreate(c[0], c[1:]); mpi.ClassOf(err) != mpi.ErrDims {
			t.Errorf("%d ranks in %v: %v", c[0], c[1:], err)
		}
	}
}

func TestCart_gridAndShift(t *testing.T) {
	onRanks(t, []int{7}, func(p *mpi.Proc) error {
		c, err := p.World().CartCreate([]int{2, 3}, []bool{false, true}, p.World().Size() > 100)
		if err != nil {
			return err
		}
		if p.World().Rank() == 6 {
			if c != nil {
				return errors.New("the seventh rank has a place")
			}
			return nil
		}
		row, col := c.Rank()/3, c.Rank()%3
		coords, err := c.CartCoords(c.Rank())
		if err != nil || !slices.Equal(coords, []int{row, col}) {
			return fmt.Errorf("rank %d is at %v: %w", c.Rank(), coords, err)
		}
		if r, err := c.CartRank(row, col-30); err != nil || r != c.Rank() {
			return fmt.Errorf("round: rank %d: %w", r, err)
		}
		if _, err := c.CartRank(2, 0); mpi.ClassOf(err) != mpi.ErrArg {
			return fmt.Errorf("outside: %w", err)
		}
		up, down, err := c.CartShift(0, 1)
		want := [2]int{mpi.ProcNull, 3 + col}
		if row == 1 {
			want = [2]int{col, mpi.ProcNull}
		}
		if err != nil || [2]int{up, down} != want {
			return fmt.Errorf("rank %d: from %d to %d: %w", c.Rank(), up, down, err)
		}
		left, right, err := c.CartShift(1, 1)
		if err != nil || left != row*3+(col+2)%3 || right != row*3+(col+1)%3 {
			return fmt.Errorf("rank %d: from %d to %d: %w", c.Rank(), left, right, err)
		}
		in := []int{-1}
		if _, err := mpi.Sendrecv(c, []int{c.Rank()}, right, 0, in, left, 0); err != nil || in[0] != left {
			return fmt.Errorf("got %d: %w", in[0], err)
		}
		line, err := c.CartSub(false, true)
		if err != nil {
			return err
		}
		dims, periods, at, err := line.Cart()
		if err != nil || !slices.Equal(dims, []int{3}) || !periods[0] || at[0] != col || line.Rank() != col || line.Size() != 3 {
			return fmt.Errorf("line: %v %v %v: %w", dims, periods, at, err)
		}
		dup, err := c.Dup()
		if err != nil || dup.Topology() != mpi.TopoCart {
			return fmt.Errorf("duplicate: %v: %w", dup.Topology(), err)
		}
		_, err = c.CartCreate([]int{4, 4}, []bool{true, true}, false)
		if mpi.ClassOf(err) != mpi.ErrArg {
			return fmt.Errorf("too large: %w", err)
		}
		return nil
	})
}

func TestGraph_neighbors(t *testing.T) {
	index, edges := []int{2, 3, 4, 6}, []int{1, 3, 0, 3, 0, 2} // the example of MPI 4.1, section 8.5.3
	onRanks(t, []int{4, 5}, func(p *mpi.Proc) error {
		w := p.World()
		if w.Topology() != mpi.Undefined {
			return errors.New("World has a topology")
		}
		g, err := w.GraphCreate(index, edges, true)
		if err != nil {
			return err
		}
		if (g == nil) != (w.Rank() == 4) {
			return fmt.Errorf("rank %d: %v", w.Rank(), g)
		}
		if g == nil {
			return nil
		}
		for r, want := range [][]int{{1, 3}, {0}, {3}, {0, 2}} {
			if got, err := g.GraphNeighbors(r); err != nil || !slices.Equal(got, want) {
				return fmt.Errorf("neighbours of %d: %v: %w", r, got, err)
			}
		}
		if i, e, err := g.Graph(); err != nil || !slices.Equal(i, index) || !slices.Equal(e, edges) || g.Topology() != mpi.TopoGraph {
			return fmt.Errorf("%v %v: %w", i, e, err)
		}
		for _, bad := range [][2][]int{{{2, 1}, {0, 1}}, {{1}, {0, 0}}} {
			if _, err := g.GraphCreate(bad[0], bad[1], false); mpi.ClassOf(err) != mpi.ErrTopology {
				return fmt.Errorf("%v: %w", bad, err)
			}
		}
		if _, err := g.GraphCreate([]int{1}, []int{7}, false); mpi.ClassOf(err) != mpi.ErrArg {
			return fmt.Errorf("an edge to 7: %w", err)
		}
		_, err = g.GraphNeighbors(9)
		if mpi.ClassOf(err) != mpi.ErrRank {
			return err
		}
		return nil
	})
}

func TestDistGraph_neighbors(t *testing.T) {
	onRanks(t, []int{3}, func(p *mpi.Proc) error {
		w := p.World()
		n := w.Size()
		left, right := (w.Rank()+n-1)%n, (w.Rank()+1)%n
		g, err := w.DistGraphCreateAdjacent(mpi.Edges{Ranks: []int{left}}, mpi.Edges{Ranks: []int{right, right}, Weights: []int{1, 2}}, false)
		if err != nil {
			return err
		}
		in, out, err := g.DistGraphNeighbors()
		if err != nil || !slices.Equal(in.Ranks, []int{left}) || in.Weights != nil || !slices.Equal(out.Ranks, []int{right, right}) || !slices.Equal(out.Weights, []int{1, 2}) {
			return fmt.Errorf("%v %v: %w", in, out, err)
		}
		for _, bad := range []struct {
			e    mpi.Edges
			want mpi.ErrorClass
		}{{mpi.Edges{Ranks: []int{9}}, mpi.ErrRank}, {mpi.Edges{Ranks: []int{0}, Weights: []int{}}, mpi.ErrArg}, {mpi.Edges{Ranks: []int{0}, Weights: []int{-1}}, mpi.ErrArg}} {
			if _, err := w.DistGraphCreateAdjacent(bad.e, mpi.Edges{}, false); mpi.ClassOf(err) != bad.want {
				return fmt.Errorf("%v: %w", bad, err)
			}
		}
		return nil
	})
}

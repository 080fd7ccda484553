package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// Splitting an intercommunicator makes intercommunicators, where a color has ranks
// on both sides.
func TestInter_splitAndCreate(t *testing.T) {
	onRanks(t, []int{5, 6}, func(p *mpi.Proc) error {
		w := p.World()
		side := w.Rank() % 2
		half, err := w.Split(side, 0)
		if err != nil {
			return err
		}
		inter, err := half.CreateInter(0, w, 1-side, 5)
		if err != nil {
			return err
		}
		// The first rank of each side has color 0, the others of side 0 have 1, of side 1 2.
		color := 0
		if half.Rank() > 0 {
			color = 1 + side
		}
		pair, err := inter.Split(color, 0)
		switch {
		case err != nil:
			return err
		case (pair != nil) != (color == 0):
			return fmt.Errorf("color %d has got a communicator: %v", color, pair != nil)
		case pair != nil:
			if !pair.Inter() || pair.Size() != 1 || pair.RemoteSize() != 1 {
				return fmt.Errorf("%d ranks and %d", pair.Size(), pair.RemoteSize())
			}
			v := []int{-1}
			if _, err := mpi.Sendrecv(pair, []int{w.Rank()}, 0, 0, v, 0, 0); err != nil || v[0] != 1-w.Rank() {
				return fmt.Errorf("rank %d has got %d: %w", w.Rank(), v[0], err)
			}
			if err := errors.Join(pair.Barrier(), pair.Free()); err != nil {
				return err
			}
		}
		back, err := inter.Split(0, -w.Rank()) // all, in the opposite order
		if err != nil {
			return err
		}
		if want := half.Size() - 1 - half.Rank(); back.Rank() != want || back.RemoteSize() != inter.RemoteSize() {
			return fmt.Errorf("rank %d of %d is rank %d", half.Rank(), half.Size(), back.Rank())
		}
		first, err := half.Group().Incl(0)
		if err != nil {
			return err
		}
		made, err := inter.Create(first)
		if err != nil || (made != nil) != (half.Rank() == 0) {
			return fmt.Errorf("rank %d has got one: %v: %w", half.Rank(), made != nil, err)
		}
		if made != nil {
			if err := errors.Join(made.Barrier(), made.Free()); err != nil {
				return err
			}
		}
		return errors.Join(
			wantClass(second(inter.Create(w.Group())), mpi.ErrGroup), wantClass(second(inter.SplitType(mpi.TypeShared, 0)), mpi.ErrComm),
			back.Free(), inter.Free(), half.Free())
	})
}

// What CartMap and GraphMap say is what is made.
func TestTopology_maps(t *testing.T) {
	onRanks(t, []int{7}, func(p *mpi.Proc) error {
		w := p.World()
		at, err := w.CartMap([]int{2, 3}, []bool{false, true})
		if err != nil {
			return err
		}
		grid, err := w.CartCreate([]int{2, 3}, []bool{false, true}, true)
		if err != nil || (grid == nil) != (at == mpi.Undefined) || grid != nil && grid.Rank() != at {
			return fmt.Errorf("place %d in the grid: %w", at, err)
		}
		index, edges := []int{1, 2, 3}, []int{1, 2, 0}
		node, err := w.GraphMap(index, edges)
		if err != nil {
			return err
		}
		ring, err := w.GraphCreate(index, edges, true)
		if err != nil || (ring == nil) != (node == mpi.Undefined) || ring != nil && ring.Rank() != node {
			return fmt.Errorf("node %d of the graph: %w", node, err)
		}
		return errors.Join(wantClass(second(w.CartMap([]int{8}, []bool{false})), mpi.ErrArg), wantClass(second(w.GraphMap([]int{2}, edges)), mpi.ErrTopology))
	})
}

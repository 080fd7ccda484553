package mpi_test

import (
	"errors"
	"fmt"
	"reflect"

	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// Each binding lets the ghosts of a host do what it says, and the hint comes before the
// configuration; accumulates stay with one, but where all ranks bind by segment.
func TestWin_bindings(t *testing.T) {
	put := func(w *mpi.Win, at, n int) error { return mpi.Put(w, make([]int64, n), 0, at) }
	many := func(w *mpi.Win, times, at, n int) (err error) {
		for range times {
			err = errors.Join(err, put(w, at, n))
		}
		return err
	}
	add := func(w *mpi.Win) error {
		var old [3]int64
		return errors.Join(mpi.FetchAndOp(w, 1, &old[0], 0, 59, mpi.OpSum), mpi.FetchAndOp(w, 1, &old[1], 0, 60, mpi.OpSum),
			mpi.CompareAndSwap(w, 2, 1, &old[2], 0, 60), mpi.Accumulate(w, make([]int64, 20), 0, 50, mpi.OpSum),
			mpi.Accumulate(w, []int64{1}, 0, 79, mpi.OpSum))
	}
	for _, c := range []struct {
		binding string
		alone   bool // the ranks before say random
		do      func(w *mpi.Win) error
		want    map[int][2]uint64 // Puts and accumulates; rank 0 is that of ghost 0
	}{
		{"rank", false, func(w *mpi.Win) error { return many(w, 10, 0, 1) }, map[int][2]uint64{0: {10}}},
		{"random", false, func(w *mpi.Win) error { return many(w, 10, 0, 1) }, map[int][2]uint64{0: {5}, 1: {5}}},
		{"operations", false, func(w *mpi.Win) error { return many(w, 10, 0, 1) }, map[int][2]uint64{0: {5}, 1: {5}}},
		{"operations", false, func(w *mpi.Win) error { // what one has to do for accumulates counts
			for range 4 {
				if err := mpi.Accumulate(w, []int64{1}, 0, 9, mpi.OpSum); err != nil {
					return err
				}
			}
			return many(w, 10, 0, 1)
		}, map[int][2]uint64{0: {3, 4}, 1: {7}}},
		{"operations", false, func(w *mpi.Win) error { // but not what is done
			return errors.Join(mpi.Accumulate(w, []int64{1}, 0, 9, mpi.OpSum), w.Flush(0), put(w, 0, 1))
		}, map[int][2]uint64{0: {1, 1}}},
		{"bytes", false, func(w *mpi.Win) error { return errors.Join(put(w, 0, 40), many(w, 10, 0, 1)) }, map[int][2]uint64{0: {1}, 1: {10}}},
		{"segment", false, func(w *mpi.Win) error { // rank 0 has two thirds of the memory of the host
			return errors.Join(many(w, 2, 0, 1), many(w, 3, 79, 1), put(w, 10, 60))
		}, map[int][2]uint64{0: {3}, 1: {4}}},
		{"segment", false, add, map[int][2]uint64{0: {0, 2}, 1: {0, 3}}}, // what is divided counts where it begins
		{"segment", true, add, map[int][2]uint64{0: {0, 5}}},
	} {
		world := newHostedWorld(sim.Config{Seed: 1}, 2, 1, 2)
		world.mpi.Ghosts.Binding = mpi.GhostByTurn
		world.launch(func(_ *sim.Task, p *mpi.Proc) error {
			hints := &mpi.Info{}
			if c.alone && p.World().Rank() == 0 {
				hints = nil
			} else if err := hints.Set("ghost_binding", c.binding); err != nil {
				return err
			}
			w, _, err := mpi.WinAllocate[int64](p.World(), 80>>p.World().Rank(), hints)
			if err != nil {
				return err
			}
			if hints, err = w.Info(); err == nil {
				if is, _ := hints.Get("ghost_binding"); is != c.binding && !(c.alone && p.World().Rank() == 0) {
					err = fmt.Errorf("ghost_binding is %q, want %q", is, c.binding)
				}
			}
			if err == nil && p.World().Rank() == 1 {
				err = errors.Join(w.LockAll(0), c.do(w), w.UnlockAll())
				if got := mpi.ServedBy(w); err == nil && !reflect.DeepEqual(got, c.want) {
					err = fmt.Errorf("%s: Puts and accumulates by ghost: %v, want %v", c.binding, got, c.want)
				}
			}
			return errors.Join(err, w.Free())
		})
		if err := world.Run(); err != nil {
			t.Error(err)
		}
	}
	simulate(t, sim.Config{}, 1, func(p *mpi.Proc) error {
		hints := &mpi.Info{}
		_, _, err := mpi.WinAllocate[int64](p.World(), 1, hints)
		err = errors.Join(err, hints.Set("ghost_binding", "best"))
		_, _, wrong := mpi.WinAllocate[int64](p.World(), 1, hints)
		return errors.Join(err, wantClass(wrong, mpi.ErrInfoValue))
	})
}

package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// In both layouts two ranks with the same ghost can be locked at the same time, and one of them is
// locked but once. Overlapping windows are as many as a host has ranks, where ranks may be locked
// one by one.
func TestWin_layouts(t *testing.T) {
	for _, c := range []struct {
		layout, epochs string
		windows        int
	}{
		{"table", "fence,pscw,lock,lockall", 1}, {"overlapping", "fence,pscw,lock,lockall", 2}, {"overlapping", "lock", 2},
		{"overlapping", "fence,lockall", 1},
	} {
		world := newHostedWorld(sim.Config{Seed: 3}, 3, 2, 1) // the ranks 0 and 2 have one ghost
		world.launch(func(_ *sim.Task, p *mpi.Proc) error {
			hints, err := mpi.NewInfo("window_layout", c.layout, "epochs_used", c.epochs)
			if err != nil {
				return err
			}
			w, memory, err := mpi.WinAllocate[int64](p.World(), 2, hints)
			if err != nil {
				return err
			}
			if got := mpi.Windows(w); got != c.windows {
				err = fmt.Errorf("%s of %s is %d windows, want %d", c.layout, c.epochs, got, c.windows)
			}
			now, bad := w.Info()
			if is, _ := now.Get("window_layout"); is != c.layout {
				err = errors.Join(err, fmt.Errorf("the layout is %q, want %q", is, c.layout))
			}
			if err = errors.Join(err, bad); err == nil && c.epochs != "fence,lockall" {
				err = lockTwo(p.World(), w, memory)
			}
			return errors.Join(err, w.Free())
		})
		if err := world.Run(); err != nil {
			t.Error(err)
		}
	}
}

// lockTwo has rank 1 keep rank 0 locked while it locks rank 2, and all count under the lock of rank 0.
func lockTwo(c *mpi.Comm, w *mpi.Win, memory []int64) error {
	var err error
	if c.Rank() == 1 {
		err = errors.Join(w.Lock(mpi.LockExclusive, 0, 0), w.Lock(mpi.LockExclusive, 2, 0), mpi.Put(w, []int64{7}, 2, 1), w.Unlock(2), w.Unlock(0))
	}
	const rounds = 5
	for range rounds {
		v := []int64{0}
		err = errors.Join(err, w.Lock(mpi.LockExclusive, 0, 0), mpi.Get(w, v, 0, 0), w.Flush(0))
		v[0]++
		err = errors.Join(err, mpi.Put(w, v, 0, 0), w.Unlock(0))
	}
	if err = errors.Join(err, c.Barrier()); err != nil {
		return err
	}
	if c.Rank() == 0 && memory[0] != int64(rounds*c.Size()) || c.Rank() == 2 && memory[1] != 7 {
		err = fmt.Errorf("%w: rank %d has %v", errData, c.Rank(), memory)
	}
	return errors.Join(err, c.Barrier())
}

// Ranks that say different layouts, or what is none, get no window.
func TestWin_layoutsDiffer(t *testing.T) {
	world := newHostedWorld(sim.Config{Seed: 3}, 3, 1, 1)
	world.launch(func(_ *sim.Task, p *mpi.Proc) error {
		c := p.World()
		for _, all := range [][3]string{{"table", "overlapping", "overlapping"}, {"none", "none", "none"}} {
			hints, err := mpi.NewInfo("window_layout", all[c.Rank()])
			if err != nil {
				return err
			}
			if _, _, err = mpi.WinAllocate[int64](c, 2, hints); mpi.ClassOf(err) != mpi.ErrInfoValue {
				return fmt.Errorf("layouts %v: %w", all, err)
			}
		}
		w, _, err := mpi.WinAllocate[int64](c, 2, nil)
		return errors.Join(err, w.Fence(0), w.Free())
	})
	if err := world.Run(); err != nil {
		t.Error(err)
	}
}

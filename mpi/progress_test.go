package mpi_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// With a progress thread an accumulate on a target that computes is done before this calls
// anything, and everything else is as without one. Shared memory is away, for with it the
// origin would do it itself.
func TestProgress(t *testing.T) {
	for _, transport := range []mpi.Transport{mpi.RD, mpi.RC, mpi.UD} {
		cfg := mpi.Config{Asynchrony: mpi.Asynchrony{Progress: mpi.ProgressThread}, NoShared: true, Transport: transport}
		err := mpi.RunWith(2, cfg, func(p *mpi.Proc) error {
			c := p.World()
			w, memory, err := mpi.WinAllocate[int64](c, 1, nil)
			if err != nil {
				return err
			}
			for round := range int64(20) {
				if err := c.Barrier(); err != nil {
					return err
				}
				for c.Rank() == 1 && atomic.LoadInt64(&memory[0]) <= round {
					runtime.Gosched()
				}
				if c.Rank() == 0 {
					err = errors.Join(w.Lock(mpi.LockShared, 1, 0), mpi.Accumulate(w, []int64{1}, 1, 0, mpi.OpSum), w.Unlock(1))
				}
				got := []int64{0}
				err = errors.Join(err, mpi.Allreduce(c, []int64{round}, got, mpi.Sum))
				if err != nil || got[0] != 2*round {
					return errors.Join(err, errData)
				}
			}
			return w.Free()
		})
		if err != nil {
			t.Errorf("%v: %v", transport, err)
		}
	}
}

// A simulation has no threads, and says so.
func TestProgress_simulated(t *testing.T) {
	w := newSimWorld(sim.Config{}, 1)
	w.mpi.Progress = mpi.ProgressThread
	w.launch(func(*sim.Task, *mpi.Proc) error { return nil })
	if err := w.Run(); mpi.ClassOf(err) != mpi.ErrArg {
		t.Errorf("%v, want an error of class ErrArg", err)
	}
}

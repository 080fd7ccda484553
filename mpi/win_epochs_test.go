package mpi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// refused tries epochs of each kind, and returns the kinds that are refused.
func refused(w *mpi.Win) (kinds []string, err error) {
	all := w.Group()
	for _, c := range []struct {
		name       string
		begin, end func() error
	}{
		{"fence", func() error { return w.Fence(0) }, func() error { return w.Fence(mpi.ModeNoSucceed) }},
		{"pscw", func() error { return w.Post(all, 0) }, func() error { return errors.Join(w.Start(all, 0), w.Complete(), w.Wait()) }},
		{"lock", func() error { return w.Lock(mpi.LockShared, 1, 0) }, func() error { return w.Unlock(1) }},
		{"lockall", func() error { return w.LockAll(0) }, w.UnlockAll},
	} {
		switch began := c.begin(); mpi.ClassOf(began) {
		case mpi.ErrRMASync:
			kinds = append(kinds, c.name)
		default:
			err = errors.Join(err, began, c.end())
		}
	}
	return kinds, err
}

// Epochs that a program has said not to use are refused, and stay so.
func TestWin_epochsUsed(t *testing.T) {
	for _, c := range []struct{ used, noLocks, refused string }{
		{"fence,pscw,lock,lockall", "false", ""},
		{"pscw, lockall", "false", "fence lock"},
		{"lock", "false", "fence pscw lockall"},
		{"fence,pscw,lock,lockall", "true", "lock lockall"},
		{"fence", "false", "pscw lock lockall"},
	} {
		simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
			hints, err := mpi.NewInfo("epochs_used", c.used, "no_locks", c.noLocks)
			w, _, made := mpi.WinAllocate[int64](p.World(), 1, hints)
			if err = errors.Join(err, made); err != nil {
				return err
			}
			got, err := refused(w)
			more, bad := mpi.NewInfo("epochs_used", "fence,pscw,lock,lockall", "no_locks", "false")
			err = errors.Join(err, p.World().Barrier(), bad, w.SetInfo(more)) // it was made for the others
			again, failed := refused(w)
			if all := strings.Join(got, " "); all != c.refused || strings.Join(again, " ") != all {
				err = errors.Join(err, fmt.Errorf("%q, no_locks %s: %q are refused, and %q", c.used, c.noLocks, got, again))
			}
			return errors.Join(err, failed, p.World().Barrier(), w.Free())
		})
	}
	simulate(t, sim.Config{}, 1, func(p *mpi.Proc) error {
		_, _, err := mpi.WinAllocate[int64](p.World(), 1, info("epochs_used", "fence,locks"))
		return wantClass(err, mpi.ErrInfoValue)
	})
}

// Without locks of one rank those of all take no message, and no memory. What counts is what any
// rank may do.
func TestWin_lockAllAlone(t *testing.T) {
	for _, c := range []struct {
		used, used0 string // of ranks, and of rank 0
		asks        bool
	}{{"lock,lockall", "lock,lockall", true}, {"lockall", "lockall", false}, {"lockall", "lock,lockall", true}} {
		for ghosts := range 2 {
			w := newHostedWorld(sim.Config{Seed: 1}, 4, 2, ghosts)
			w.launch(func(task *sim.Task, p *mpi.Proc) error {
				used := c.used
				if p.World().Rank() == 0 {
					used = c.used0
				}
				win, memory, err := mpi.WinAllocate[int64](p.World(), 1, info("epochs_used", used))
				if err != nil {
					return err
				}
				began := task.Now()
				err = win.LockAll(0)
				if took := task.Now().Sub(began); (took > mono.Microsecond) != c.asks { // a look at the clock takes some, too
					err = errors.Join(err, fmt.Errorf("LockAll took %v", took))
				}
				if n := mpi.LockMemory(win); (n > 0) != (c.asks && ghosts == 0) {
					err = errors.Join(err, fmt.Errorf("%d bytes of memory for locks", n))
				}
				for rank := range 4 {
					err = errors.Join(err, mpi.Accumulate(win, []int64{1}, rank, 0, mpi.OpSum))
				}
				if err = errors.Join(err, win.UnlockAll(), p.World().Barrier()); err == nil && memory[0] != 4 {
					err = fmt.Errorf("%w: %d", errData, memory[0])
				}
				return errors.Join(err, win.Free())
			})
			if err := w.Run(); err != nil {
				t.Errorf("%+v, ghosts %d: %v", c, ghosts, err)
			}
		}
	}
}

// A window may have memory on one rank of all, and on none, with locks and without.
func TestWin_withoutMemory(t *testing.T) {
	for _, used := range []string{"lock,lockall", "lockall"} {
		for _, owner := range []int{0, 3, 4} {
			w := newHostedWorld(sim.Config{Seed: 1}, 4, 2, 0)
			w.launch(func(task *sim.Task, p *mpi.Proc) error {
				me, n := p.World().Rank(), 0
				if me == owner {
					n = 1
				}
				win, memory, err := mpi.WinAllocate[int64](p.World(), n, info("epochs_used", used))
				if err == nil {
					err = win.LockAll(0)
				}
				if err != nil {
					return err
				}
				if owner < 4 {
					err = mpi.Accumulate(win, []int64{1}, owner, 0, mpi.OpSum)
				}
				if err = errors.Join(err, win.UnlockAll(), p.World().Barrier()); err == nil && n == 1 && memory[0] != 4 {
					err = fmt.Errorf("%w: %d", errData, memory[0])
				}
				return errors.Join(err, win.Free())
			})
			if err := w.Run(); err != nil {
				t.Errorf("%s, memory of rank %d: %v", used, owner, err)
			}
		}
	}
}

// With no_local_load_store a rank does not wait for its own lock, which the ghost keeps, but what
// it does under the lock waits.
func TestWin_noLocalLoadStore(t *testing.T) {
	const rounds, computes = 20, 100 * mono.Microsecond
	took := map[string]mono.Duration{}
	for _, hint := range []string{"false", "true"} {
		w := newHostedWorld(sim.Config{Seed: 1}, 3, 1, 1)
		w.launch(func(task *sim.Task, p *mpi.Proc) error {
			me := p.World().Rank()
			win, memory, err := mpi.WinAllocate[int64](p.World(), 1, info("no_local_load_store", hint))
			for round := range rounds {
				if err != nil {
					return err
				}
				target := me
				if me > 0 { // they are in the way of rank 0
					target = round % 2
				}
				began, v := task.Now(), []int64{0}
				if err = win.Lock(mpi.LockExclusive, target, 0); target == me {
					took[hint] += task.Now().Sub(began)
					task.Sleep(computes)
				}
				err = errors.Join(err, mpi.Get(win, v, target, 0), win.Flush(target))
				v[0]++
				err = errors.Join(err, mpi.Put(win, v, target, 0), win.Unlock(target))
			}
			err = errors.Join(err, p.World().Barrier())
			if want := map[int]int64{0: 2 * rounds, 1: rounds, 2: 0}[me]; memory[0] != want {
				err = errors.Join(err, fmt.Errorf("%w: rank %d: %d, want %d", errData, me, memory[0], want))
			}
			return errors.Join(err, win.Free())
		})
		if err := w.Run(); err != nil {
			t.Errorf("%s: %v", hint, err)
		}
	}
	if took["true"] > took["false"]/10 {
		t.Errorf("own locks took %v", took)
	}
}

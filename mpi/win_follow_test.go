package mpi_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// byGhost does an operation, completes it, and returns whether a ghost has done it.
func byGhost(w *mpi.Win, target int, do func() error) (ghost bool, err error) {
	before := mpi.ServedBy(w)
	if err = errors.Join(do(), w.Flush(target)); err != nil {
		return false, err
	}
	for by, n := range mpi.ServedBy(w) {
		ghost = ghost || by >= 0 && n != before[by]
	}
	return ghost, nil
}

// Puts and Gets follow what the ranks want, without a call of all of them: a rank that is in MPI all the
// time does them itself, and as soon as it computes its ghost does, though it says nothing. All
// else stays where it is. The ghost that tells of it may be lost, on either host.
func TestWin_follows(t *testing.T) {
	oneGoroutine(t)
	const interval = 100 * time.Microsecond
	for _, c := range []struct {
		name string
		lost int  // ghost, or -1
		on   bool // ghosts do accumulates
	}{{"on", -1, true}, {"off", -1, false}, {"the ghost of the target's host that tells is lost", 1, true}, {"that of the origin's host is lost", 0, false}} {
		t.Run(c.name, func(t *testing.T) {
			const origin, target = 2, 3 // whose ghosts are 2 and 3, the second ones of their hosts
			m := mortalsOf(newHostedWorld(sim.Config{Seed: 1, Limit: 20 * mono.Second}, 4, 2, 2))
			m.mpi.Transport, m.mpi.Ghosts.Failure, m.tells = mpi.RD, mpi.GhostFallback, true
			m.mpi.Async, m.mpi.AsyncInterval = mpi.AsyncAutoGhosts, interval
			m.play(t, func(task *sim.Task, p *mpi.Proc) error {
				world, me, word := p.World(), p.World().Rank(), []int64{1}
				w, memory, err := mpi.WinAllocate[int64](world, 2, nil)
				if err = errors.Join(err, w.LockAll(0)); err != nil {
					return err
				}
				for start := task.Now(); !c.on && task.Now().Sub(start) < 3*interval && err == nil; {
					err = errors.Join(mpi.Put(w, word, (me+1)%4, 0), w.Flush((me+1)%4))
				}
				if err = errors.Join(err, wantAsync(w, "auto-ghosts"), w.SetInfo(info("symmetric", "true"))); err != nil || mpi.ServedByGhosts(w)[target] != c.on {
					return errors.Join(err, fmt.Errorf("ghosts do accumulates: %v", !c.on))
				}
				put := func() error { return mpi.Put(w, word, target, 0) }
				for phase := range 2 {
					if err = world.Barrier(); err != nil {
						return err
					}
					if phase == 1 && me == 0 && c.lost >= 0 {
						m.killed[4+c.lost] = task.Now()
					}
					if me == target { // communicates until it is told to compute, and computes until there is a word
						for round := 0; word[0] > 0; round++ {
							for range 20 {
								err = errors.Join(err, mpi.Get(w, make([]int64, 1), origin, 0), w.Flush(origin))
							}
							if _, err1 := mpi.Sendrecv(world, word, origin, 1, word, origin, 1); errors.Join(err, err1) != nil {
								return errors.Join(err, err1)
							}
						}
						for tries := 0; memory[1] != int64(phase+1); tries++ {
							if task.Sleep(interval / 10); tries > 1000 {
								return errors.New("nothing comes while it computes")
							}
						}
						word[0] = 1
						continue
					}
					if me != origin {
						continue
					}
					for ghost, rounds := true, 0; ghost; rounds++ {
						if ghost, err = byGhost(w, target, put); err != nil || rounds > 10000 {
							return errors.Join(err, fmt.Errorf("phase %d: a ghost does Puts after %d rounds", phase, rounds))
						}
						word[0] = 1
						if !ghost {
							word[0] = 0
						}
						if _, err = mpi.Sendrecv(world, word, target, 1, make([]int64, 1), target, 1); err != nil {
							return err
						}
					}
					task.Sleep(4 * interval)
					word[0] = int64(phase + 1)
					ghost, err := byGhost(w, target, func() error { return mpi.Put(w, word, target, 1) })
					if err != nil || !ghost {
						return errors.Join(err, fmt.Errorf("phase %d: no ghost does Puts on a rank that computes", phase))
					}
					word[0] = 1
				}
				return errors.Join(w.UnlockAll(), world.Barrier(), w.Free())
			})
		})
	}
}

// What a window knows of its targets stays where it is when others are added whose Puts and Gets follow the
// ranks: another goroutine may be in the middle of a wait for one of them.
func TestWin_followsWithoutMoving(t *testing.T) {
	world := newHostedWorld(sim.Config{Seed: 1}, 5, 2, 2)
	world.mpi.Async, world.mpi.Ghosts.Binding = mpi.AsyncAuto, mpi.GhostByTurn
	world.launch(func(_ *sim.Task, p *mpi.Proc) error {
		w, _, err := mpi.WinAllocate[int64](p.World(), 2, nil)
		if err != nil {
			return err
		}
		before, few := mpi.Targets(w)
		follow, bad := mpi.NewInfo("async_config", "auto-ghosts", "symmetric", "true")
		err = errors.Join(bad, w.SetInfo(follow))
		if after, many := mpi.Targets(w); err == nil && (after != before || many != few+w.Size()-1) {
			err = fmt.Errorf("%d targets at %#x, and behind it %d at %#x", few, before, many, after)
		}
		return errors.Join(err, w.Free())
	})
	if err := world.Run(); err != nil {
		t.Fatal(err)
	}
}

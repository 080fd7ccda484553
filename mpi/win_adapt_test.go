package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// changeUntilLost changes who serves the ranks of a window, again and again, until a rank is lost
// in the middle of that, and returns after how many changes that was. Rank 0 calls kill.
func changeUntilLost(p *mpi.Proc, w *mpi.Win, rnd *rand.Rand, kill func()) (changes int, err error) {
	for ; err == nil; changes++ {
		mode := []string{"on", "off"}[rnd.IntN(2)]
		info, bad := mpi.NewInfo("async_config", mode, "symmetric", "true")
		if err = errors.Join(bad, w.SetInfo(info)); err == nil && mpi.ServedByGhosts(w)[p.World().Rank()] != (mode == "on") {
			err = fmt.Errorf("it was to be %s", mode)
		}
		if changes == 0 && p.World().Rank() == 0 {
			kill()
		}
	}
	if class := mpi.ClassOf(err); class != mpi.ErrProcFailed {
		return 0, fmt.Errorf("SetInfo: %w", err)
	}
	return changes, nil
}

// addAmong has all ranks of c, which are in the group of w, add to the memory of each other, and
// looks at what comes of it.
func addAmong(c *mpi.Comm, w *mpi.Win, memory []int64) error {
	const times = 20
	var to []int
	for rank := range c.Size() {
		there, err := c.Group().TranslateRank(rank, w.Group())
		if err != nil {
			return err
		}
		to = append(to, there)
	}
	err := w.LockAll(0)
	for range times {
		for _, rank := range to {
			err = errors.Join(err, mpi.Accumulate(w, []int64{1}, rank, 0, mpi.OpSum))
		}
	}
	for _, rank := range to {
		err = errors.Join(err, w.Flush(rank))
	}
	if err = errors.Join(err, w.UnlockAll(), c.Barrier()); err == nil && memory[0] != int64(times*c.Size()) {
		err = fmt.Errorf("%w: %d was added, want %d", errData, memory[0], times*c.Size())
	}
	return err
}

// A rank that is lost while who serves changes leaves no two others that ask different ones, and
// these go on.
func TestWin_lossInExchange(t *testing.T) {
	for seed := range seeds(t, 300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 12))
			ranks, hosts := 3+rnd.IntN(4), 1+rnd.IntN(2)
			m := mortalsOf(newHostedWorld(sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.02, Reorder: 0.05, Dup: 0.02}}}, ranks, hosts, 1))
			m.mpi.Transport = mpi.Transport(seed % 3)
			m.tells = m.mpi.Transport != mpi.RD || rnd.IntN(2) == 0
			dying := rnd.Perm(ranks)[:1+rnd.IntN(2)]
			asked, changes := map[int][]bool{}, map[int]int{}
			m.play(t, func(task *sim.Task, p *mpi.Proc) error {
				me := p.World().Rank()
				w, memory, err := mpi.WinAllocate[int64](p.World(), 1, nil)
				if err != nil {
					return err
				}
				n, err := changeUntilLost(p, w, rand.New(rand.NewPCG(uint64(seed), uint64(100+me))), func() {
					for _, rank := range dying {
						m.killed[rank] = task.Now().Add(mono.Duration(rnd.IntN(2000)) * mono.Microsecond)
					}
				})
				if err != nil {
					return err
				}
				asked[me], changes[me] = mpi.ServedByGhosts(w), n
				if err = p.World().Revoke(); err != nil {
					return err
				}
				left, err := p.World().Shrink()
				if err == nil {
					err = addAmong(left, w, memory)
				}
				if class := mpi.ClassOf(err); class == mpi.ErrProcFailed || class == mpi.ErrRevoked { // another one is lost: that is looked at elsewhere
					return w.Free()
				}
				return errors.Join(err, left.Free(), w.Free())
			})
			for a, theirs := range asked {
				for b, others := range asked {
					if m.killed[a] == mono.Never && m.killed[b] == mono.Never && !slices.Equal(theirs, others) {
						t.Fatalf("ghosts serve %v as rank %d has it, after %d changes, and %v as rank %d has it, after %d", theirs, a, changes[a], others, b, changes[b])
					}
				}
			}
		})
	}
}

// TestWin_randomAdapts is TestWin_randomOverBadNetwork where it changes, as ranks like it and by
// itself, who does the operations.
func TestWin_randomAdapts(t *testing.T) {
	for seed := range seeds(t, 120) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 10))
			ranks := 2 + seed%4
			config := sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.1, Corrupt: 0.005}}, Limit: 20 * mono.Second}
			w := newHostedWorld(config, ranks, 1+rnd.IntN(2), 1+rnd.IntN(2))
			w.fallApart(rnd, rnd.IntN(3), 20*mono.Millisecond)
			w.mpi.Transport = []mpi.Transport{mpi.RD, mpi.UD, mpi.RD, mpi.RC, mpi.Hybrid}[seed%5]
			follow := rnd.IntN(2)
			w.mpi.Async, w.mpi.AsyncInterval = mpi.AsyncAuto+mpi.Async(follow), 50*time.Microsecond
			w.mpi.Ghosts.Binding = mpi.GhostBinding(rnd.IntN(5))
			x := winTraffic{seed: uint64(seed), rounds: 10, ops: 10, block: 40, flavor: mpi.FlavorAllocate, adapts: true, follow: follow == 1}
			if seed%4 == 1 {
				x.block, x.ops = 5000, 6
			}
			w.launch(func(task *sim.Task, p *mpi.Proc) error {
				mine, own := x, rand.New(rand.NewPCG(uint64(seed), uint64(p.World().Rank())))
				mine.compute = func() { task.Sleep(mono.Duration(own.IntN(300)) * mono.Microsecond) }
				return mine.run(p)
			})
			if err := w.Run(); err != nil {
				t.Fatalf("%+v, %d ghosts: %v", w.mpi, w.ghosts, err)
			}
		})
	}
}

// An interval that is none is refused where it is configured, and a rank that asks its ghosts for their boards
// with one goes on without them.
func TestWin_intervalThatIsNone(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		world := newHostedWorld(sim.Config{Seed: 1, Limit: mono.Second}, 2, 1, 1)
		if wrong {
			world.mpi.AsyncInterval = -time.Second
		}
		world.mpi.Async = mpi.AsyncAutoGhosts
		world.launch(func(_ *sim.Task, p *mpi.Proc) error {
			mpi.SetAsyncInterval(p, -time.Second)
			w, _, err := mpi.WinAllocate[int64](p.World(), 1, nil)
			if err != nil {
				return err
			}
			return errors.Join(wantAsync(w, "auto"), w.Fence(0), mpi.Put(w, []int64{1}, 0, 0), w.Fence(mpi.ModeNoSucceed), w.Free())
		})
		err := world.Run()
		if wrong {
			err = wantClass(err, mpi.ErrArg)
		}
		if err != nil {
			t.Errorf("in the configuration: %v: %v", wrong, err)
		}
	}
}

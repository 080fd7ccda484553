package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// outlasting is epochs of ranks whose ghost is lost at some time, and who go on without.
type outlasting struct {
	w      *mpi.Win
	memory []int64
	wrote  int64   // what this rank has put last, everywhere
	sure   []int64 // by target: additions of this rank that no error was about
	doubt  []int64 // and those of which one has said that they may be done or not
	lost   bool    // there was an error because of the ghost
}

// outlast goes on until rounds have ended behind the loss; kill is called once a round.
func outlast(p *mpi.Proc, rounds int, kill func(round int) error) error {
	c := p.World()
	w, memory, err := mpi.WinAllocate[int64](c, c.Size()+2, nil)
	if err != nil {
		return err
	}
	x := &outlasting{w: w, memory: memory, sure: make([]int64, c.Size()), doubt: make([]int64, c.Size())}
	for round, after := 0, 0; after < rounds && err == nil; round++ {
		if err = kill(round); err == nil {
			err = x.round(c, round)
		}
		hints, _ := w.Info()
		gone := []int64{0}
		if is, _ := hints.Get("async_config"); is == "off" {
			gone[0] = 1
		}
		if err = errors.Join(err, mpi.Allreduce(c, nil, gone, mpi.Max)); gone[0] > 0 {
			after++
		}
	}
	other, _, made := mpi.WinAllocate[int64](c, 1, nil) // some are not served any more, and no worse for it
	if err = errors.Join(err, made); err != nil {
		return err
	}
	return errors.Join(other.Fence(0), mpi.Put(other, []int64{1}, 0, 0), other.Fence(mpi.ModeNoSucceed), other.Free(), w.Free())
}

// doubtful is nil for an error that says that a ghost is lost.
func (x *outlasting) doubtful(err error) error {
	if mpi.ClassOf(err) == mpi.ErrGhostFailed {
		x.lost = true
		return nil
	}
	return err
}

// round writes a word to all ranks, and adds to one of theirs, between fences or under locks.
// What is in doubt is written again, and counted.
func (x *outlasting) round(c *mpi.Comm, round int) error {
	x.wrote++
	failed := []int64{1}
	for failed[0] > 0 {
		err := x.doubtful(x.w.Fence(0))
		if err != nil {
			return err
		}
		x.lost = false
		for to := range c.Size() {
			err = errors.Join(err, x.doubtful(mpi.Put(x.w, []int64{x.wrote}, to, c.Rank())))
			add := x.doubtful(mpi.Accumulate(x.w, []int64{1}, to, c.Size(), mpi.OpSum))
			err = errors.Join(err, add)
		}
		err = errors.Join(err, x.doubtful(x.w.Fence(mpi.ModeNoSucceed)))
		for to := range c.Size() {
			if x.lost {
				x.doubt[to]++
			} else {
				x.sure[to]++
			}
		}
		failed[0] = 0
		if x.lost {
			failed[0] = 1
		}
		if err = errors.Join(err, mpi.Allreduce(c, nil, failed, mpi.Max)); err != nil {
			return err
		}
	}
	for from := range c.Size() {
		if x.memory[from] != x.wrote {
			return fmt.Errorf("%w: round %d: rank %d has written %d, and %d is there", errData, round, from, x.wrote, x.memory[from])
		}
	}
	if err := x.added(c); err != nil {
		return fmt.Errorf("round %d: %w", round, err)
	}
	return x.underLock(c)
}

// added checks that no addition was lost or done twice.
func (x *outlasting) added(c *mpi.Comm) error {
	n := c.Size()
	sure, doubt := append([]int64(nil), x.sure...), append([]int64(nil), x.doubt...)
	if err := errors.Join(mpi.Allreduce(c, nil, sure, mpi.Sum), mpi.Allreduce(c, nil, doubt, mpi.Sum)); err != nil {
		return err
	}
	if is, me := x.memory[n], c.Rank(); is < sure[me] || is > sure[me]+doubt[me] {
		return fmt.Errorf("%w: added %d times, and %d times perhaps: %d is there", errData, sure[me], doubt[me], is)
	}
	return c.Barrier()
}

// underLock reads a word and writes it back, one more, under an exclusive lock.
func (x *outlasting) underLock(c *mpi.Comm) error {
	n := c.Size()
	target := 0
	x.lost = false
	err := x.doubtful(x.w.Lock(mpi.LockExclusive, target, 0))
	var done []int64
	if err == nil && !x.lost {
		v := []int64{0}
		err = errors.Join(x.doubtful(mpi.Get(x.w, v, target, n+1)), x.doubtful(x.w.Flush(target)))
		if err == nil && !x.lost {
			v[0]++
			err = x.doubtful(mpi.Put(x.w, v, target, n+1))
		}
		err = errors.Join(err, x.doubtful(x.w.Unlock(target)))
	}
	done = []int64{1, 0}
	if x.lost {
		done = []int64{0, 1}
	}
	if err != nil {
		return err
	}
	if err = errors.Join(c.Barrier(), mpi.Allreduce(c, nil, done, mpi.Sum)); err != nil {
		return err
	}
	if is := x.memory[n+1]; c.Rank() == target {
		if x.memory[n+1] = 0; is < done[0] || is > done[0]+done[1] {
			return fmt.Errorf("%w: counted %d times under a lock, and %d times perhaps: %d is there", errData, done[0], done[1], is)
		}
	}
	return c.Barrier()
}

// A ghost is lost at any time: nothing is lost or done twice without an error that says so, and
// the ranks go on.
func TestWin_outlastsGhost(t *testing.T) {
	for seed := range seeds(t, 40) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 3))
		ranks, hosts := 2+rnd.IntN(3), 1+rnd.IntN(2)
		m := mortalsOf(newHostedWorld(sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.02, Reorder: 0.05, Dup: 0.02}}}, ranks, hosts, 1))
		m.mpi.Transport, m.mpi.Ghosts.Failure = mpi.Transport(seed%3), mpi.GhostFallback
		m.tells = m.mpi.Transport != mpi.RD || rnd.IntN(2) == 0 // over the others nobody asks whether the one is there who owes an answer
		at := mono.Time(0).Add(mono.Duration(2+rnd.IntN(20)) * mono.Millisecond)
		m.killed[ranks+rnd.IntN(hosts)] = at
		m.play(t, func(task *sim.Task, p *mpi.Proc) error {
			err := outlast(p, 3, func(int) error { return nil })
			if err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
			return nil
		})
	}
}

// asOutlasting is the argument that makes the test binary a rank of TestWin_outlastsKilledGhost.
const asOutlasting = "as-outlasting"

func outlastingRank(p *mpi.Proc) error {
	err := outlast(p, 20, func(round int) error {
		if p.World().Rank() == 0 && round == 10 {
			return killGhosts()
		}
		return nil
	})
	if err == nil {
		fmt.Println("outlasted")
	}
	return err
}

// Real processes, on each network.
func TestWin_outlastsKilledGhost(t *testing.T) {
	networks(t, func(t *testing.T, on launch.Config) {
		on.Ghosts, on.Env = 1, []string{mpi.EnvGhostFailure + "=fallback"}
		job := launch.Config{
			Program: "/proc/self/exe", Args: []string{asOutlasting}, Ranks: 4,
			Agent: []string{"/proc/self/exe", launch.AgentArg},
		}
		stdout, stderr, err := launchJob(t, job, on)
		if err != nil || stdout != strings.Repeat("outlasted\n", 4) || !strings.Contains(stderr, "ghost 0") || !strings.Contains(stderr, "signal 9") {
			t.Errorf("%v\n%s%s", err, stdout, stderr)
		}
	})
}

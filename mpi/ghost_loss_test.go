package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// outlasting is a job whose ranks go on when ghosts are lost: words that each rank writes to all,
// and additions that it makes to all, are there, or an error has said of them that they may not be.
type outlasting struct {
	losses int                   // how many ranks have no ghost in the end
	rounds int                   // behind that
	block  int                   // words that each rank writes
	adapts bool                  // who serves changes meanwhile
	async  mpi.Async             // as it is at first
	kill   func(round int) error // is called once a round

	w      *mpi.Win
	memory []int64
	common *rand.Rand // is the same on all ranks
	own    *rand.Rand
	wrote  int64   // what this rank has put last, everywhere
	sure   []int64 // by target: additions of this rank that no error was about
	doubt  []int64 // and those of which one has said that they may be done or not
	lost   bool    // there was an error because of a ghost
}

// run goes on until so many rounds have ended behind the losses.
func (x *outlasting) run(p *mpi.Proc, seed uint64) error {
	c := p.World()
	x.common, x.own = rand.New(rand.NewPCG(seed, 1<<40)), rand.New(rand.NewPCG(seed, uint64(c.Rank())))
	x.sure, x.doubt = make([]int64, c.Size()), make([]int64, c.Size())
	var err error
	if x.w, x.memory, err = mpi.WinAllocate[int64](c, c.Size()*x.block+2, nil); err != nil {
		return err
	}
	if err = wantAsync(x.w, x.async.String()); err != nil {
		return err
	}
	for round, after := 0, 0; after < x.rounds && err == nil; round++ {
		if err = x.kill(round); err == nil {
			err = x.round(c, round)
		}
		if err == nil && round == 0 {
			err = x.wantServed()
		}
		gone := []int64{0}
		if !mpi.HasGhost(x.w) {
			gone[0] = 1
		}
		if err = errors.Join(err, mpi.Allreduce(c, nil, gone, mpi.Sum)); gone[0] >= int64(x.losses) {
			after++
		}
	}
	other, _, made := mpi.WinAllocate[int64](c, 1, nil) // some are not served any more, and no worse for it
	if err = errors.Join(err, made); err != nil {
		return err
	}
	return errors.Join(other.Fence(0), mpi.Put(other, []int64{1}, 0, 0), other.Fence(mpi.ModeNoSucceed), other.Free(), x.w.Free())
}

// wantServed fails unless ghosts have done Puts of this rank, and, unless it may have changed since,
// nobody else.
func (x *outlasting) wantServed() error {
	done, ghosts := mpi.ServedBy(x.w), uint64(0)
	for by, n := range done {
		if by >= 0 {
			ghosts += n[0]
		} else if n[0] > 0 && !x.adapts {
			return fmt.Errorf("not only ghosts have done Puts: %v", done)
		}
	}
	if ghosts == 0 {
		return errors.New("no ghost has done a Put")
	}
	return nil
}

// doubtful is nil for an error that says that a ghost is lost.
func (x *outlasting) doubtful(err error) error {
	if mpi.ClassOf(err) == mpi.ErrGhostFailed {
		x.lost = true
		return nil
	}
	return err
}

// round writes words to all ranks, and adds to one of theirs, between fences or under locks. What
// is in doubt is written again, and counted.
func (x *outlasting) round(c *mpi.Comm, round int) error {
	x.wrote++
	failed := []int64{1}
	for failed[0] > 0 {
		err := x.doubtful(x.w.Fence(0))
		if err != nil {
			return err
		}
		x.lost = false
		if x.common.IntN(2) == 0 || round == 0 {
			err = errors.Join(x.operate(c, round), x.doubtful(x.w.Fence(mpi.ModeNoSucceed)))
		} else {
			err = x.doubtful(x.w.LockAll(0))
			err = errors.Join(err, x.operate(c, round), x.doubtful(x.w.UnlockAll()))
		}
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
	for i, is := range x.memory[:c.Size()*x.block] {
		if is != x.wrote {
			return fmt.Errorf("%w: round %d: rank %d has written %d, and %d is there", errData, round, i/x.block, x.wrote, is)
		}
	}
	if err := x.added(c); err != nil {
		return fmt.Errorf("round %d: %w", round, err)
	}
	return x.underLock(c)
}

// operate writes and adds, and may change in the middle of that who serves.
func (x *outlasting) operate(c *mpi.Comm, round int) (err error) {
	words := slices.Repeat([]int64{x.wrote}, x.block)
	change := -1
	if x.adapts && round > 0 && x.common.IntN(2) == 0 {
		change = x.common.IntN(c.Size())
	}
	for to := range c.Size() {
		if to == change {
			mode := []string{"on", "off", "auto"}[x.own.IntN(3)]
			if x.async == mpi.AsyncAutoGhosts {
				mode = x.async.String()
			}
			info, bad := mpi.NewInfo("async_config", mode, "symmetric", "true")
			err = errors.Join(err, bad, x.doubtful(x.w.SetInfo(info)))
		}
		err = errors.Join(err, x.doubtful(mpi.Put(x.w, words, to, c.Rank()*x.block)))
		err = errors.Join(err, x.doubtful(mpi.Accumulate(x.w, []int64{1}, to, c.Size()*x.block, mpi.OpSum)))
	}
	return err
}

// added checks that no addition was lost or done twice.
func (x *outlasting) added(c *mpi.Comm) error {
	sure, doubt := slices.Clone(x.sure), slices.Clone(x.doubt)
	if err := errors.Join(mpi.Allreduce(c, nil, sure, mpi.Sum), mpi.Allreduce(c, nil, doubt, mpi.Sum)); err != nil {
		return err
	}
	if is, me := x.memory[c.Size()*x.block], c.Rank(); is < sure[me] || is > sure[me]+doubt[me] {
		return fmt.Errorf("%w: added %d times, and %d times perhaps: %d is there", errData, sure[me], doubt[me], is)
	}
	return c.Barrier()
}

// underLock reads a word and writes it back, one more, under an exclusive lock.
func (x *outlasting) underLock(c *mpi.Comm) error {
	target, at := 0, c.Size()*x.block+1
	x.lost = false
	err := x.doubtful(x.w.Lock(mpi.LockExclusive, target, 0))
	var done []int64
	if err == nil && !x.lost {
		v := []int64{0}
		err = errors.Join(x.doubtful(mpi.Get(x.w, v, target, at)), x.doubtful(x.w.Flush(target)))
		if err == nil && !x.lost {
			v[0]++
			err = x.doubtful(mpi.Put(x.w, v, target, at))
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
	if is := x.memory[at]; c.Rank() == target {
		if x.memory[at] = 0; is < done[0] || is > done[0]+done[1] {
			return fmt.Errorf("%w: counted %d times under a lock, and %d times perhaps: %d is there", errData, done[0], done[1], is)
		}
	}
	return c.Barrier()
}

// Ghosts are lost at any time, with each binding, while ranks adapt and while they do not: nothing
// is lost or done twice without an error that says so, and the ranks go on.
func TestWin_outlastsGhost(t *testing.T) {
	for seed := range seeds(t, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 3))
			ranks, hosts, ghosts := 2+rnd.IntN(3), 1+rnd.IntN(2), 1+rnd.IntN(2)
			m := mortalsOf(newHostedWorld(sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.02, Reorder: 0.05, Dup: 0.02}}, Limit: 20 * mono.Second}, ranks, hosts, ghosts))
			m.mpi.Transport, m.mpi.Ghosts.Failure = mpi.Transport(seed%3), mpi.GhostFallback
			m.mpi.Ghosts.Binding = mpi.GhostBinding(rnd.IntN(5))
			m.tells = m.mpi.Transport != mpi.RD || rnd.IntN(2) == 0 // over the others nobody asks whether the one is there who owes an answer
			x := outlasting{rounds: 3, block: []int{1, 200}[rnd.IntN(2)], adapts: rnd.IntN(2) == 0}
			if x.adapts {
				x.async = mpi.AsyncAuto + mpi.Async(rnd.IntN(2))
				m.mpi.Async, m.mpi.AsyncInterval = x.async, 50*time.Microsecond
			}
			dying := rnd.Perm(hosts * ghosts)[:min(1+rnd.IntN(2), hosts*ghosts)]
			of := rma.NewGhosts(m.hosts[:ranks], m.hosts[ranks:]).Of
			for _, ghost := range of {
				if slices.Contains(dying, int(ghost)-ranks) {
					x.losses++
				}
			}
			first, between := mono.Duration(rnd.IntN(int(20*mono.Millisecond))), mono.Duration(rnd.IntN(int(20*mono.Millisecond)))
			m.play(t, func(task *sim.Task, p *mpi.Proc) error {
				mine := x
				mine.kill = func(round int) error {
					if round == 1 && p.World().Rank() == 0 { // the ghosts have served the one before
						for i, ghost := range dying {
							m.killed[ranks+ghost] = task.Now().Add(first + mono.Duration(i)*between)
						}
					}
					return nil
				}
				if err := mine.run(p, uint64(seed)); err != nil {
					return fmt.Errorf("%+v, %d ranks, %d hosts, ghosts %v of %d: %w", m.mpi, ranks, hosts, dying, hosts*ghosts, err)
				}
				return nil
			})
		})
	}
}

// Who locks all ranks has no lock of those whose ghost is lost, so it can do nothing with their
// memory until the next Fence, though they do themselves what others want.
func TestWin_lockAllWithoutGhost(t *testing.T) {
	m := mortalsOf(newHostedWorld(sim.Config{Seed: 1}, 3, 1, 1))
	m.mpi.Ghosts.Failure, m.tells = mpi.GhostFallback, true
	m.play(t, func(task *sim.Task, p *mpi.Proc) error {
		w, _, err := mpi.WinAllocate[int64](p.World(), 3, nil)
		off, bad := mpi.NewInfo("async_config", "off", "symmetric", "true")
		if err = errors.Join(err, bad, w.SetInfo(off)); err != nil {
			return err
		}
		me := p.World().Rank()
		put := func() error { return mpi.Put(w, []int64{1}, 0, me) }
		if err = errors.Join(w.LockAll(0), put(), w.UnlockAll(), p.World().Barrier()); err != nil {
			return err
		}
		m.killed[3] = task.Now()
		if err = wantClass(w.Lock(mpi.LockShared, 1, 0), mpi.ErrGhostFailed); err != nil {
			return err
		}
		err = errors.Join(w.LockAll(0), wantClass(put(), mpi.ErrGhostFailed), w.UnlockAll())
		return errors.Join(err, w.Fence(0), w.LockAll(0), put(), w.UnlockAll(), w.Free())
	})
}

// asOutlasting is the argument that makes the test binary a rank of TestWin_outlastsKilledGhost.
const asOutlasting = "as-outlasting"

// outlastingRank has rank 0 kill the ghosts of its host; or rank 1 one of two, which both have a
// part of what others put to its memory.
func outlastingRank(p *mpi.Proc) error {
	x := outlasting{losses: 1, rounds: 20, block: 1}
	killer, only := 0, []int(nil)
	if which := os.Getenv(envDoes); which != "" {
		x.losses, x.block, killer, only = 0, 2000, 1, []int{envInt(envDoes)}
	}
	stopped := make(chan struct{})
	x.kill = func(round int) error {
		switch {
		case p.World().Rank() != killer || round != 10:
		case os.Getenv(envStands) != "":
			return standGhosts(stopped)
		default:
			return killGhosts(only...)
		}
		return nil
	}
	if os.Getenv(mpi.EnvAsync) != "" {
		x.adapts, x.async = true, mpi.AsyncAutoGhosts
	}
	err := x.run(p, 1)
	if p.World().Rank() == killer && os.Getenv(envStands) != "" {
		<-stopped
	}
	if err == nil {
		fmt.Println("outlasted")
	}
	return err
}

// envStands has ranks of TestWin_outlastsKilledGhost stop ghosts for a while in place of killing them.
const envStands = "XWARP_TEST_STANDS"

// standGhosts stops the ghosts of this host for longer than a peer may be silent, and closes the
// channel when they may go on.
func standGhosts(goOn chan struct{}) error {
	ghosts, err := ghostsHere()
	for _, pid := range ghosts {
		err = errors.Join(err, unix.Kill(pid, unix.SIGSTOP))
	}
	go func() {
		time.Sleep(2 * standsLost)
		for _, pid := range ghosts {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
		close(goOn)
	}()
	return err
}

// standsLost is for how long a peer may be silent there.
const standsLost = time.Second

// A ghost stands still, as one that a debugger stops or whose machine sleeps, and goes on when others have taken it
// for lost, or wait for it: it does nothing any more.
func TestWin_outlastsStoppedGhost(t *testing.T) {
	ghostNetworks(t, func(t *testing.T, on launch.Config) {
		on.Ghosts = 1
		on.Env = []string{envStands + "=1", mpi.EnvGhostFailure + "=fallback", mpi.EnvPeerLost + "=" + standsLost.String()}
		job := launch.Config{
			Program: "/proc/self/exe", Args: []string{asOutlasting}, Ranks: 4,
			Agent: []string{"/proc/self/exe", launch.AgentArg},
		}
		stdout, stderr, err := launchJob(t, job, on)
		if err != nil || stdout != strings.Repeat("outlasted\n", job.Ranks) || !strings.Contains(stderr, "ghost ") {
			t.Errorf("%v\n%s%s", err, stdout, stderr)
		}
	})
}

// Real processes, on each network. Puts that two ghosts have to do are among what is in doubt.
func TestWin_outlastsKilledGhost(t *testing.T) {
	turn := 0
	ghostNetworks(t, func(t *testing.T, on launch.Config) {
		for i, how := range []way{{1, nil}, {2, []string{envDoes + "=0"}}, {2, []string{envDoes + "=1", mpi.EnvAsync + "=auto-ghosts", mpi.EnvAsyncTime + "=10ms"}}} {
			if i > 0 && i != 1+turn%2 && os.Getenv("XWARP_LONG") != "1" {
				continue
			}
			on.Ghosts = how.ghosts
			on.Env = append(how.env, mpi.EnvGhostFailure+"=fallback", mpi.EnvGhostBinding+"=segment")
			job := launch.Config{
				Program: "/proc/self/exe", Args: []string{asOutlasting}, Ranks: 5 - how.ghosts,
				Agent: []string{"/proc/self/exe", launch.AgentArg},
			}
			stdout, stderr, err := launchJob(t, job, on)
			if err != nil || stdout != strings.Repeat("outlasted\n", job.Ranks) || !strings.Contains(stderr, "ghost ") || !strings.Contains(stderr, "signal 9") {
				t.Errorf("%v: %v\n%s%s", on.Env, err, stdout, stderr)
			}
		}
		turn++
	})
}

package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/mpi"
)

// asLocked is the argument that makes the test binary a rank of TestWin_killedWithLock.
const asLocked = "as-locked"

// outliveLocks has rank 1 die in an epoch, and the others use what it has locked.
func outliveLocks(p *mpi.Proc) error {
	c, epoch := p.World(), os.Getenv(envDoes)
	w, memory, err := mpi.WinAllocate[int64](c, 4, nil)
	if err == nil && envInt("XWARP_GHOSTS") > 0 {
		err = wantAsync(w, "on")
	}
	if err != nil {
		return err
	}
	if epoch == "ghost" {
		return outliveNoGhost(w)
	}
	if epoch == "fence" || epoch == "start" || epoch == "post" {
		return outliveActive(c, w, epoch)
	}
	word := make([]int64, 1)
	if c.Rank() == 1 {
		switch epoch {
		case "exclusive":
			err = w.Lock(mpi.LockExclusive, 0, 0)
		case "shared":
			err = w.Lock(mpi.LockShared, 0, 0)
		default:
			err = w.LockAll(0)
		}
		err = errors.Join(err, mpi.Put(w, []int64{5}, 0, 0), w.Flush(0), mpi.Send(c, word, 2, 0), mpi.Send(c, word, 3, 0))
		if err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // the others wait by then, as a rule
		kill(os.Getpid())
	}
	if c.Rank() != 0 {
		if _, err := mpi.Recv(c, word, 1, 0); err != nil {
			return fmt.Errorf("rank 1 was to say that it has the lock: %w", err)
		}
		got := new(int64)
		err = errors.Join(
			w.Lock(mpi.LockExclusive, 0, 0), mpi.Get(w, word, 0, 1), w.Flush(0), mpi.Put(w, []int64{word[0] + 1}, 0, 1), w.Unlock(0),
			w.Lock(mpi.LockShared, 0, 0), mpi.FetchAndOp(w, 0, got, 0, 0, mpi.OpNoOp), w.Unlock(0),
		)
		if *got != 5 && err == nil {
			err = fmt.Errorf("what the dead rank has flushed is %d", *got)
		}
		dead := w.Lock(mpi.LockShared, 1, 0)
		for dead == nil { // somebody else may have freed what it had locked: this rank has not heard yet
			dead = errors.Join(w.Unlock(1), w.Lock(mpi.LockShared, 1, 0))
		}
		err = errors.Join(err, wantClass(dead, mpi.ErrProcFailed), w.LockAll(0))
		_ = mpi.Put(w, word, 1, 0)
		err = errors.Join(err, wantClass(w.Flush(1), mpi.ErrProcFailed))
		_ = w.UnlockAll() // it may say that rank 1 is lost
		err = errors.Join(err, mpi.Send(c, word, 0, 1))
	} else {
		for _, from := range []int{2, 3} {
			_, one := mpi.Recv(c, word, from, 1)
			err = errors.Join(err, one)
		}
		if memory[1] != 2 && err == nil {
			err = fmt.Errorf("the others have counted to %d", memory[1])
		}
	}
	err = errors.Join(err, wantClass(w.Fence(0), mpi.ErrProcFailed))
	if err == nil {
		fmt.Println("outlived")
	}
	return err
}

// outliveActive has rank 1 die in an epoch of active targets, and the others end theirs.
func outliveActive(c *mpi.Comm, w *mpi.Win, epoch string) error {
	lost := mpi.ErrProcFailed
	group := func(rank int) *mpi.Group {
		g, err := w.Group().Incl(rank)
		if err != nil {
			panic(err)
		}
		return g
	}
	inside := func() error { return mpi.Send(c, []byte{1}, 1, 0) } // rank 1 may die
	var err error
	switch me := c.Rank(); {
	case epoch == "fence":
		err = errors.Join(w.Fence(0), mpi.Put(w, []int64{1}, (me+1)%c.Size(), 0))
	case epoch == "start" && me == 1:
		err = errors.Join(w.Start(group(0), 0), mpi.Put(w, []int64{1}, 0, 0))
	case epoch == "start" && me == 0: // it waits for the end of the dead one
		err = errors.Join(w.Post(group(1), 0), inside(), wantClass(w.Wait(), lost))
	case epoch == "post" && me == 1:
		err = w.Post(group(0), 0)
	case epoch == "post" && me == 0: // it may start, and what becomes of the Put nobody can say
		if err = inside(); w.Start(group(1), 0) == nil {
			_ = mpi.Put(w, []int64{1}, 1, 0)
			_ = w.Complete()
		}
	}
	switch me := c.Rank(); {
	case me == 1:
		for from := range c.Size() {
			if from != 1 && err == nil {
				_, err = mpi.Recv(c, []byte{0}, from, 0)
			}
		}
		if err == nil {
			kill(os.Getpid())
		}
	case me != 0 || epoch == "fence":
		err = errors.Join(err, inside())
	}
	if err = errors.Join(err, wantClass(w.Fence(0), lost)); err == nil {
		fmt.Println("outlived")
	}
	return err
}

// outliveNoGhost has rank 0 kill the ghost of its host, while all count. It does not return
// before something fails.
func outliveNoGhost(w *mpi.Win) error {
	for round := 0; ; round++ {
		if w.Rank() == 0 && round == 20 {
			if err := killGhosts(); err != nil {
				return err
			}
		}
		got := new(int64)
		to := round % w.Size()
		if err := errors.Join(w.Lock(mpi.LockExclusive, to, 0), mpi.FetchAndOp(w, 1, got, to, 0, mpi.OpSum), w.Unlock(to)); err != nil {
			return err
		}
	}
}

// killGhosts kills the ghosts of this host, or one of them, which have numbers from 0 on.
func killGhosts(only ...int) error {
	ghosts, err := ghostsHere()
	for i, pid := range ghosts {
		if len(only) == 0 || slices.Contains(only, i) {
			kill(pid)
		}
	}
	return err
}

// ghostsHere returns the ghosts of this host, as they were started.
func ghostsHere() ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	var ghosts []int
	for _, name := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if args, _ := os.ReadFile(name); strings.Contains(string(args), launch.GhostArg) && parentOf(pid) == os.Getppid() {
			ghosts = append(ghosts, pid)
		}
	}
	slices.Sort(ghosts)
	return ghosts, err
}

// The end of a ghost is that of the job, also where the others would go on without a rank: its
// cause is told, and nothing is left.
func TestWin_killedGhost(t *testing.T) {
	ghostNetworks(t, func(t *testing.T, on launch.Config) {
		for _, keepGoing := range []bool{false, true} {
			on.Ghosts = 1
			job := launch.Config{
				Program: "/proc/self/exe", Args: []string{asLocked}, Ranks: 4, KeepGoing: keepGoing,
				Agent: []string{"/proc/self/exe", launch.AgentArg}, Env: []string{envDoes + "=ghost"},
			}
			_, stderr, err := launchJob(t, job, on)
			if text := fmt.Sprint(err); !strings.Contains(text, "ghost 0") || !strings.Contains(text, "was killed by signal 9") || strings.Contains(stderr, "rank 4") {
				t.Errorf("keep going %v: %v\n%s", keepGoing, err, stderr)
			}
		}
	})
}

// A process that is killed in an epoch does not keep its locks, and who operates on it, or
// waits for it, gets the error of its class; through shared memory and through the network.
func TestWin_killedWithLock(t *testing.T) {
	networks(t, func(t *testing.T, on launch.Config) {
		for i, epoch := range []string{"exclusive", "shared", "all", "fence", "start", "post"} {
			for j, how := range []launch.Config{{}, {Env: []string{mpi.EnvShared + "=0"}}, {Ghosts: 1}} {
				if slow && i%3 != j {
					continue
				}
				on.Env, on.Ghosts = how.Env, how.Ghosts
				job := launch.Config{
					Program: "/proc/self/exe", Args: []string{asLocked}, Ranks: 4, KeepGoing: true,
					Agent: []string{"/proc/self/exe", launch.AgentArg}, Env: []string{envDoes + "=" + epoch},
				}
				stdout, stderr, _ := launchJob(t, job, on) // that a rank was killed is an error
				if n := strings.Count(stdout, "outlived"); n != 3 {
					t.Errorf("%s, %v, %d ghosts: %d ranks are left as they should be, want 3:\n%s%s", epoch, on.Env, on.Ghosts, n, stdout, stderr)
				}
			}
		}
	})
}

package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/mpi"
)

// Ranks with ghosts as real processes.

// asGhosted is the argument that makes the test binary a rank of a job with ghosts that does what envDoes says.
const asGhosted = "as-ghosted"

func ghostedMain() int {
	if os.Getenv(envDoes) == "decide" { // else xrun would have the calls watched from the beginning
		_ = os.Unsetenv(config.EnvRecordFD)
	}
	return onProc(ghostedRank)()
}

func ghostedRank(p *mpi.Proc) error {
	does := map[string]func(*mpi.Proc) error{"decide": decideInThreads, "allocs": allocsWithGhosts}
	err := does[os.Getenv(envDoes)](p)
	if err == nil {
		fmt.Println("done")
	}
	return err
}

// ghosted starts a job in which ranks do one of that, and fails the test unless all say that they have.
func ghosted(t *testing.T, on launch.Config, does string, ranks int, env ...string) (stderr string) {
	t.Helper()
	on.Ghosts = 1
	job := launch.Config{
		Program: "/proc/self/exe", Args: []string{asGhosted}, Ranks: ranks,
		Agent: []string{"/proc/self/exe", launch.AgentArg}, Env: append(env, envDoes+"="+does),
	}
	stdout, stderr, err := launchJob(t, job, on)
	if err != nil || stdout != strings.Repeat("done\n", ranks) {
		t.Errorf("%s %v: %v\n%s%s", does, env, err, stdout, stderr)
	}
	return stderr
}

// decideInThreads makes windows for which the rank is to decide in several goroutines, and uses them.
func decideInThreads(p *mpi.Proc) error {
	const workers = 3
	var group sync.WaitGroup
	errs := make([]error, workers)
	comms := make([]*mpi.Comm, workers)
	for i := range comms {
		var err error
		if comms[i], err = p.World().Dup(); err != nil {
			return err
		}
	}
	if len(p.Stats().Calls) == 0 {
		return errors.New("calls are not watched from the beginning")
	}
	var made atomic.Bool
	var looks error
	var looker sync.WaitGroup
	looker.Go(func() { // it takes no lock of the endpoint
		for !made.Load() && looks == nil {
			looks = mpi.Send(p.World(), []byte{1}, mpi.ProcNull, 0)
		}
	})
	for i, c := range comms {
		mode := []string{"auto", "auto-ghosts"}[i%2]
		group.Go(func() {
			w, _, err := mpi.WinAllocate[int64](c, 1, info("async_config", mode))
			for range 20 {
				if err == nil {
					err = errors.Join(w.Fence(0), mpi.Put(w, []int64{1}, (c.Rank()+1)%c.Size(), 0), w.Fence(mpi.ModeNoSucceed))
				}
			}
			if err == nil {
				err = errors.Join(wantAsync(w, mode), w.Free())
			}
			errs[i] = err
		})
	}
	group.Wait()
	made.Store(true)
	looker.Wait()
	return errors.Join(append(errs, looks)...)
}

// Goroutines make windows for which their rank decides whether ghosts do the operations, at the same time. It is
// for the race detector.
func TestWin_threadsDecide(t *testing.T) {
	ghosted(t, launch.Config{Fabric: "udp"}, "decide", 2, mpi.EnvThreads+"=multiple")
}

// allocsWithGhosts has rank 0 operate on memory that ghosts serve, or ghosts and the rank itself.
func allocsWithGhosts(p *mpi.Proc) (err error) {
	for _, mode := range []string{"on", "auto-ghosts"} {
		w, _, failed := mpi.WinAllocate[int64](p.World(), 20_000, info("async_config", mode))
		if err = errors.Join(err, failed, w.LockAll(0), p.World().Barrier()); err != nil {
			return err
		}
		if p.World().Rank() == 0 {
			err = warmAllocs(w, func(o string, n int, got float64) {
				failed = errors.Join(failed, fmt.Errorf("%s, %s of %d: %v allocations, want none", mode, o, n, got))
			})
		}
		err = errors.Join(err, failed, p.World().Barrier(), w.UnlockAll(), w.Free())
	}
	return err
}

// Operations that ghosts do allocate nothing in the rank that starts them.
func TestAllocs_ghosts(t *testing.T) {
	if slow {
		t.Skip("the race detector allocates")
	}
	ghostNetworks(t, func(t *testing.T, on launch.Config) { ghosted(t, on, "allocs", 2) })
}

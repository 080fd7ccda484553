package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/mpi"
)

// asInviting is the argument that makes the test binary a rank of a job whose rank 0 receives a message of rank 1
// into a window, or into memory of Alloc, and meanwhile does what envDoes says.
const asInviting = "as-inviting"

func invitingRank(p *mpi.Proc) error {
	memory, free, err := memoryOf(p, os.Getenv(envAllocates) != "", delegatingSize)
	c := p.World()
	if err = errors.Join(err, c.Barrier()); err != nil {
		return err
	}
	if c.Rank() == 0 {
		err = invitingReceiver(c, memory)
	} else {
		own := make([]byte, delegatingSize)
		pattern(own, 9)
		if err = mpi.Send(c, own, 0, 1); err == nil && os.Getenv(envDoes) == "waits" && p.Stats().Invited != 1 {
			err = errors.New("it is there, but by whom?")
		}
	}
	if err = errors.Join(err, free()); err == nil {
		fmt.Println("done")
	}
	return err
}

func invitingReceiver(c *mpi.Comm, memory []byte) error {
	does := os.Getenv(envDoes)
	if does == "stops" { // it takes nothing in before it dies
		if err := signalGhosts(unix.SIGSTOP); err != nil {
			return err
		}
	}
	r, err := mpi.Irecv(c, memory, 1, 1)
	if err != nil {
		return err
	}
	switch does {
	case "waits": // without a call of MPI: in vain, if the message needs this rank
		for checkPattern(memory, 9) != nil {
			runtime.Gosched()
		}
	case "stops":
		time.Sleep(5 * time.Millisecond) // it has begun
		fallthrough
	default:
		err = signalGhosts(unix.SIGKILL)
	}
	if _, waited := r.Wait(); err == nil {
		err = errors.Join(waited, checkPattern(memory, 9))
	}
	if err == nil && does != "waits" && os.Getenv(mpi.EnvGhostFailure) == "" {
		_, err = mpi.Recv(c, memory, 1, 3) // in vain: the job ends
	}
	return err
}

// inviting runs such a job.
func inviting(t *testing.T, on launch.Config, does string, env ...string) (stdout, stderr string, err error) {
	t.Helper()
	return withGhosts(t, on, asInviting, does, 1, env)
}

// A rank that receives a large message and computes is not needed if it has a ghost.
func TestInvite_processes(t *testing.T) {
	ghostNetworks(t, func(t *testing.T, on launch.Config) {
		if on.Testbed == 0 {
			t.Skip("on one host the receiver copies the message")
		}
		for _, env := range []string{envAllocates + "=", envAllocates + "=1", mpi.EnvTransport + "=ud", mpi.EnvTransport + "=rc", mpi.EnvThreads + "=multiple"} {
			if stdout, stderr, err := inviting(t, on, "waits", env); err != nil || stdout != "done\ndone\n" {
				t.Errorf("%s: %v\n%s%s", env, err, stdout, stderr)
			}
		}
	})
}

// The ghost that has the memory dies, before it has taken in anything, or at any time behind that: the message comes
// all the same, or the job ends and says why, as it was asked for.
func TestInvite_killedGhost(t *testing.T) {
	ghostNetworks(t, func(t *testing.T, on launch.Config) {
		for _, does := range []string{"stops", "kills"} {
			for _, where := range []string{"", "1"} {
				stdout, stderr, err := inviting(t, on, does, mpi.EnvGhostFailure+"=fallback", envAllocates+"="+where)
				if err != nil || stdout != "done\ndone\n" {
					t.Errorf("%s, %q: %v\n%s%s", does, where, err, stdout, stderr)
				}
			}
			_, stderr, err := inviting(t, on, does)
			if text := fmt.Sprint(err); !strings.Contains(text, "ghost 0") || !strings.Contains(text, "signal 9") {
				t.Errorf("%s, and the job is to end: %v\n%s", does, err, stderr)
			}
		}
	})
}

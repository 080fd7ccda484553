package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/mpi"
)

// Messages that ghosts send, between real processes.

// asDelegating is the argument that makes the test binary a rank of a job whose rank 0 sends rank 1 a
// message that lies in a window, or in memory of Alloc, and then does what envDoes says.
const asDelegating = "as-delegating"

// delegatingSize is the length of the message.
const delegatingSize = 1 << 20

// envAllocates has the message lie in memory of Alloc.
const envAllocates = "XWARP_TEST_ALLOCATES"

func delegatingRank(p *mpi.Proc) error {
	w, memory, err := mpi.WinAllocate[byte](p.World(), 64+delegatingSize, nil)
	if err = errors.Join(err, w.Fence(mpi.ModeNoSucceed)); err != nil {
		return err
	}
	if p.World().Rank() == 0 {
		err = delegatingSender(p, w, memory)
	} else {
		err = delegatingReceiver(p, w, memory)
	}
	if err = errors.Join(err, w.Free()); err == nil {
		fmt.Println("done")
	}
	return err
}

// delegatingReceiver receives the message, and tells when it was there: by a word in the window of the
// sender, which that reads without a call of MPI, and by the clock of the machine.
func delegatingReceiver(p *mpi.Proc, w *mpi.Win, memory []byte) error {
	c, does := p.World(), os.Getenv(envDoes)
	data := make([]byte, delegatingSize)
	var err error
	if does == "meets" { // it calls MPI as seldom
		var r mpi.Request
		data = memory[64:]
		for r, err = mpi.Irecv(c, data, 0, 1); err == nil && checkPattern(data, 9) != nil; {
			runtime.Gosched()
		}
		if err == nil {
			_, err = r.Wait()
		}
	} else {
		_, err = mpi.Recv(c, data, 0, 1)
	}
	ended := machineClock()
	if err = errors.Join(err, checkPattern(data, 9)); err == nil && (does == "waits" || does == "meets") {
		err = errors.Join(w.Lock(mpi.LockShared, 0, 0), mpi.Put(w, []byte{1, 0, 0, 0}, 0, 0), w.Unlock(0))
	}
	return errors.Join(err, mpi.Send(c, []int64{ended}, 0, 2))
}

// delegatingSender sends the message, and computes.
func delegatingSender(p *mpi.Proc, w *mpi.Win, memory []byte) (failed error) {
	c, does := p.World(), os.Getenv(envDoes)
	data := memory[64:]
	if os.Getenv(envAllocates) != "" {
		own, err := mpi.Alloc[byte](p, delegatingSize)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, mpi.Free(p, own)) }()
		data = own
	}
	pattern(data, 9)
	if does == "stops" { // it has heard of nothing when it dies
		if err := signalGhosts(unix.SIGSTOP); err != nil {
			return err
		}
	}
	r, err := mpi.Isend(c, data, 1, 1)
	if err != nil {
		return err
	}
	switch does {
	case "waits", "meets": // for the word of the receiver, in vain if the message needs this rank
		for word := &mem.ScalarsOf[uint32](memory[:4])[0]; atomic.LoadUint32(word) == 0; {
			runtime.Gosched()
		}
	case "computes":
		for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
			runtime.Gosched()
		}
	default:
		err = signalGhosts(unix.SIGKILL)
	}
	called := machineClock()
	_, waited := r.Wait()
	clear(data)
	ended := []int64{0}
	_, word := mpi.Recv(c, ended, 1, 2)
	if err = errors.Join(err, waited, word); err == nil && does != "waits" && does != "meets" && does != "computes" && os.Getenv(mpi.EnvGhostFailure) == "" {
		_, err = mpi.Recv(c, ended, 1, 3) // in vain: the job ends
	}
	if does == "computes" && err == nil && ended[0] < called {
		err = fmt.Errorf("the message was there at %d, before its sender called MPI at %d: by whom?", ended[0], called)
	}
	return err
}

// machineClock is a clock that all processes of the machine have in common.
func machineClock() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		panic(err)
	}
	return at.Nano()
}

// signalGhosts sends a signal to the ghosts of this host.
func signalGhosts(s unix.Signal) error {
	ghosts, err := ghostsHere()
	if err == nil && len(ghosts) == 0 {
		err = errors.New("there is no ghost on this host")
	}
	for _, pid := range ghosts {
		err = errors.Join(err, unix.Kill(pid, s))
	}
	return err
}

// delegating runs such a job.
func delegating(t *testing.T, on launch.Config, does string, ghosts int, env ...string) (stdout, stderr string, err error) {
	t.Helper()
	return withGhosts(t, on, asDelegating, does, ghosts, env)
}

// withGhosts runs a job of two ranks of this program, as something that does something.
func withGhosts(t *testing.T, on launch.Config, as, does string, ghosts int, env []string) (stdout, stderr string, err error) {
	t.Helper()
	on.Ghosts, on.Env = ghosts, append(env, envDoes+"="+does)
	job := launch.Config{
		Program: "/proc/self/exe", Args: []string{as}, Ranks: 2,
		Agent: []string{"/proc/self/exe", launch.AgentArg},
	}
	return launchJob(t, job, on)
}

// A rank that has sent a large message and computes is not needed if it has a ghost, nor if the receiver is on its
// host and copies the message by itself. Else the message comes when the sender calls MPI.
func TestDelegate_processes(t *testing.T) {
	ghostNetworks(t, func(t *testing.T, on launch.Config) {
		ways := []way{{1, nil}, {2, []string{mpi.EnvGhostBinding + "=segment"}}, {1, []string{mpi.EnvThreads + "=multiple"}}}
		if on.Testbed == 0 {
			ways = append(ways, way{0, nil})
		} else {
			ways = append(ways, way{1, []string{mpi.EnvTransport + "=ud"}}, way{1, []string{mpi.EnvRendezvous + "=read"}}, way{1, []string{envAllocates + "=1"}})
			if stdout, stderr, err := delegating(t, on, "computes", 0); err != nil || stdout != "done\ndone\n" {
				t.Errorf("without ghosts: %v\n%s%s", err, stdout, stderr)
			}
		}
		for _, how := range ways {
			if stdout, stderr, err := delegating(t, on, "waits", how.ghosts, how.env...); err != nil || stdout != "done\ndone\n" {
				t.Errorf("%+v: %v\n%s%s", how, err, stdout, stderr)
			}
		}
	})
}

// The ghost that is to send dies: before it has heard of the message, or at any time behind that. The receiver
// gets it from the rank, or the job ends and says why, as it was asked for.
func TestDelegate_killedGhost(t *testing.T) {
	ghostNetworks(t, func(t *testing.T, on launch.Config) {
		for _, does := range []string{"stops", "kills"} {
			for _, where := range []string{"", "1"} {
				stdout, stderr, err := delegating(t, on, does, 1, mpi.EnvGhostFailure+"=fallback", envAllocates+"="+where)
				if err != nil || stdout != "done\ndone\n" {
					t.Errorf("%s, %q: %v\n%s%s", does, where, err, stdout, stderr)
				}
			}
			_, stderr, err := delegating(t, on, does, 1)
			if text := fmt.Sprint(err); !strings.Contains(text, "ghost 0") || !strings.Contains(text, "signal 9") {
				t.Errorf("%s, and the job is to end: %v\n%s", does, err, stderr)
			}
		}
	})
}

// Neither of two ranks that compute is needed if both have a ghost, and the message goes from memory of one to that of the other.
func TestMeet_processes(t *testing.T) {
	ghostNetworks(t, func(t *testing.T, on launch.Config) {
		if on.Testbed == 0 {
			t.Skip("on one host the receiver copies the message")
		}
		for _, env := range []string{envAllocates + "=", envAllocates + "=1", mpi.EnvTransport + "=ud", mpi.EnvThreads + "=multiple"} {
			if stdout, stderr, err := delegating(t, on, "meets", 1, env); err != nil || stdout != "done\ndone\n" {
				t.Errorf("%s: %v\n%s%s", env, err, stdout, stderr)
			}
		}
	})
}

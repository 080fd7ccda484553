package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/mpi"
)

// asSlots is the argument that makes the test binary a rank that does many short
// collectives.
const asSlots = "as-slots"

// envMapped is "1" where ranks are to have slots.
const envMapped = "XWARP_TEST_MAPPED"

// slotsRank is such a rank. One that has lost another does not wait for it in Finalize.
func slotsRank() error {
	p, err := mpi.Init()
	switch {
	case err != nil:
		return err
	case os.Getenv(envDoes) == "die":
		err = outliveCollectives(p.World())
	default:
		err = errors.Join(shortCollectives(p.World()), p.Finalize())
	}
	if err == nil {
		fmt.Println("done")
	}
	return err
}

// segments returns how many segments the process has mapped.
func segments() (int, error) {
	text, err := os.ReadFile("/proc/self/maps")
	return bytes.Count(text, []byte("xwarp-segment")), err
}

// shortCollectives does collectives of all lengths on communicators, which have slots for
// the short ones where their ranks share a host, mixed with others.
func shortCollectives(w *mpi.Comm) error {
	half, err := w.Split(w.Rank()%2, -w.Rank())
	if err != nil {
		return err
	}
	twin, err := w.Dup()
	if err != nil {
		return err
	}
	for round := range 60 {
		for _, c := range []*mpi.Comm{w, half, twin} {
			if err := shortRound(c, round); err != nil {
				return fmt.Errorf("round %d on %d ranks: %w", round, c.Size(), err)
			}
		}
	}
	return slotsOfFreed(w, twin, half)
}

// slotsOfFreed frees communicators, the slots of which those have that come next: four at most are kept, and
// none of one that was revoked.
func slotsOfFreed(w, twin, half *mpi.Comm) error {
	before, err := segments()
	if err = errors.Join(err, twin.Free(), half.Free()); err != nil {
		return err
	}
	fresh, err := freshComms(w, 1)
	again, failed := segments()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	more, err := freshComms(w, 6)
	if err != nil {
		return err
	}
	if err := errors.Join(fresh[0].Revoke(), fresh[0].Free()); err != nil {
		return err
	}
	revoked, err := segments()
	for _, c := range more {
		err = errors.Join(err, c.Free())
	}
	after, failed := segments()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	have, want := []int{again, revoked, after}, []int{0, 0, 0}
	if os.Getenv(envMapped) == "1" {
		want = []int{before, before - 1 + 6, 1 + 4}
	}
	if !slices.Equal(have, want) {
		return fmt.Errorf("%d segments are mapped, and then %v, want %v", before, have, want)
	}
	last, err := freshComms(w, 1)
	if err != nil {
		return err
	}
	return last[0].Free()
}

// freshComms makes communicators of all ranks, and does short collectives on them.
func freshComms(w *mpi.Comm, n int) (all []*mpi.Comm, err error) {
	for i := range n {
		c, err := w.Dup()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		for round := range 2 { // it has slots from the first one on
			if err := shortRound(c, round); err != nil {
				return nil, fmt.Errorf("round %d on communicator %d that is new: %w", round, i, err)
			}
		}
	}
	return all, nil
}

// shortRound compares collectives with what they are to yield.
func shortRound(c *mpi.Comm, round int) error {
	n, me := c.Size(), c.Rank()
	for _, length := range []int{1, 5, 1024, 1025} {
		in, sum, list := make([]int32, length), make([]int32, length), make([]int32, length)
		for i := range in {
			in[i] = int32(me*length + i + round)
		}
		late, err := mpi.Iallreduce(c, in, list, mpi.Sum[int32])
		if err = errors.Join(err, mpi.Allreduce(c, in, sum, mpi.Sum[int32])); err != nil {
			return err
		}
		root := (round + length) % n
		told, top, all := make([]int32, length), make([]int32, length), make([]int32, n*length)
		told[length-1] = int32(me)
		if err := errors.Join(c.Barrier(), mpi.Bcast(c, told, root), mpi.Reduce(c, in, top, mpi.Sum[int32], root), mpi.Allgather(c, in, all)); err != nil {
			return err
		}
		if _, err := late.Wait(); err != nil {
			return err
		}
		for i, v := range all {
			if v != int32(i+round) {
				return fmt.Errorf("element %d of %d gathered is %d, want %d", i, len(all), v, i+round)
			}
		}
		if me == root && !slices.Equal(top, sum) {
			return fmt.Errorf("reduced to root %d: %v, want %v", root, top, sum)
		}
		for i := range sum {
			want := int32(n*(n-1)/2*length + n*(i+round))
			if sum[i] != want || list[i] != want || told[length-1] != int32(root) {
				return fmt.Errorf("element %d of %d is %d and %d, want %d; %d from root %d", i, length, sum[i], list[i], want, told[length-1], root)
			}
		}
	}
	return nil
}

// outliveCollectives has rank 1 die in the middle of collectives that it has done many of.
func outliveCollectives(w *mpi.Comm) error {
	v := []int32{1}
	for i := range 100 {
		if w.Rank() == 1 && i == 60 {
			kill(os.Getpid())
		}
		err := mpi.Allreduce(w, nil, v, mpi.Max[int32])
		if err == nil {
			err = w.Barrier()
		}
		switch {
		case err == nil && i < 61:
		case mpi.ClassOf(err) == mpi.ErrProcFailed && i >= 60:
			return wantClass(w.Barrier(), mpi.ErrProcFailed)
		default:
			return fmt.Errorf("collective %d: %w, want class %v from 60 on", i, err, mpi.ErrProcFailed)
		}
	}
	return errors.New("nobody has noticed that rank 1 is dead")
}

func slotsJob(ranks int, env ...string) launch.Config {
	return launch.Config{
		Program: "/proc/self/exe", Args: []string{asSlots}, Ranks: ranks, KeepGoing: true,
		Agent: []string{"/proc/self/exe", launch.AgentArg}, Env: env,
	}
}

// Short collectives of processes that share one host, or two hosts.
func TestProcess_shortCollectives(t *testing.T) {
	for _, ranks := range []int{2, 3, 5, 8, 16} {
		for _, env := range []string{"XWARP_SHARED=1", "XWARP_SHARED=0", "XWARP_THREADS=multiple"} {
			if ranks != 5 && (slow || env != "XWARP_SHARED=1") {
				continue
			}
			mapped := envMapped + "=0"
			if env == "XWARP_SHARED=1" {
				mapped = envMapped + "=1"
			}
			stdout, stderr, err := launchJob(t, slotsJob(ranks, env, mapped), launch.Config{Device: "lo", Fabric: "udp"})
			if n := strings.Count(stdout, "done"); err != nil || n != ranks {
				t.Errorf("%d of %d ranks, %s: %v\n%s%s", n, ranks, env, err, stdout, stderr)
			}
		}
	}
}

// Those of ranks on two hosts have slots on each.
func TestProcess_shortCollectivesOfHosts(t *testing.T) {
	networks(t, func(t *testing.T, on launch.Config) {
		mapped := envMapped + "=1"
		if on.Fabric == "xdp" && on.Queues != launch.QueuesShared { // each rank is in a network namespace of its own
			mapped = envMapped + "=0"
		}
		stdout, stderr, err := launchJob(t, slotsJob(6, mapped), on)
		if n := strings.Count(stdout, "done"); err != nil || n != 6 {
			t.Errorf("%d of 6 ranks: %v\n%s%s", n, err, stdout, stderr)
		}
	})
}

// A rank that dies makes short collectives fail with the error of its class, on all others.
func TestProcess_killedInShortCollectives(t *testing.T) {
	networks(t, func(t *testing.T, on launch.Config) {
		stdout, stderr, _ := launchJob(t, slotsJob(5, envDoes+"=die"), on) // that a rank was killed is an error
		if n := strings.Count(stdout, "done"); n != 4 {
			t.Errorf("%d ranks are left as they should be, want 4:\n%s%s", n, stdout, stderr)
		}
	})
}

// Ranks that are goroutines have slots, too.
func TestRun_shortCollectives(t *testing.T) {
	err := mpi.Run(4, func(p *mpi.Proc) error {
		for round := range 30 {
			if err := shortRound(p.World(), round); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// withSlots runs ranks that are goroutines, with communicators that have slots.
func withSlots(t *testing.T, ranks int, f func(c *mpi.Comm) error) {
	t.Helper()
	err := mpi.Run(ranks, func(p *mpi.Proc) error {
		c, err := p.World().Dup()
		for i := 0; i < 10 && err == nil; i++ {
			err = c.Barrier()
		}
		if err != nil {
			return err
		}
		return f(c)
	})
	if err != nil {
		t.Error(err)
	}
}

// A collective of a revoked communicator fails where it would wait for nobody, too.
func TestRun_slotsRevoked(t *testing.T) {
	withSlots(t, 3, func(c *mpi.Comm) error {
		if err := c.Revoke(); err != nil {
			return err
		}
		v := []int32{1}
		return errors.Join(
			wantClass(mpi.Bcast(c, v, c.Rank()), mpi.ErrRevoked),
			wantClass(mpi.Reduce(c, v, v, mpi.Sum[int32], (c.Rank()+1)%c.Size()), mpi.ErrRevoked),
			wantClass(c.Barrier(), mpi.ErrRevoked))
	})
}

// Ranks that call a collective with different lengths get an error.
func TestRun_slotsOfDifferentLengths(t *testing.T) {
	withSlots(t, 2, func(c *mpi.Comm) error {
		err := mpi.Bcast(c, make([]byte, 100*(c.Rank()+1)), 0)
		if c.Rank() == 0 {
			return err // it looks at nobody
		}
		return wantClass(err, mpi.ErrTruncate)
	})
}

// A rank that comes last to all collectives makes progress with its messages nevertheless.
func TestRun_slotsLastRankProgresses(t *testing.T) {
	withSlots(t, 2, func(c *mpi.Comm) error {
		column, err := mpi.TypeVector(1<<16, 1, 2, mpi.TypeDouble)
		if err == nil {
			err = column.Commit()
		}
		if err != nil {
			return err
		}
		memory := make([]float64, 2<<16)
		var r mpi.Request
		if c.Rank() == 0 {
			r, err = c.Isend(mpi.Typed(memory, 1, column), 1, 0)
		} else {
			r, err = c.Irecv(mpi.Typed(memory, 1, column), 0, 0)
		}
		if err != nil {
			return err
		}
		for done := []int32{0}; done[0] == 0; {
			if c.Rank() == 0 {
				for begin := time.Now(); time.Since(begin) < 50*time.Microsecond; {
				}
				done[0] = 1
			} else if _, ended, err := r.Test(); err != nil {
				return err
			} else if ended {
				done[0] = 1
			}
			if err := mpi.Allreduce(c, nil, done, mpi.Min[int32]); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			_, err = r.Wait()
		}
		return err
	})
}

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// Ranks and ghosts that are killed.

// rankDies ends a rank in an epoch.
func rankDies(w *mpi.Comm) error {
	win, _, err := mpi.WinAllocate[int64](w, 10, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(win.Lock(mpi.LockExclusive, 0, 0), mpi.Put(win, []int64{1}, 0, 0)); err != nil {
		return err
	}
	return unix.Kill(os.Getpid(), unix.SIGKILL)
}

// outliveHolder lets rank 1 die with the lock of rank 0, which takes it then.
func outliveHolder(w *mpi.Comm) error {
	win, mem, err := mpi.WinAllocate[int64](w, 10, nil)
	if err != nil {
		return err
	}
	const made = 1 // a rank that dies earlier would be one that WinAllocate waits for
	if w.Rank() == 0 {
		err = mpi.Send(w, []byte(nil), 1, made)
	} else {
		_, err = mpi.Recv(w, []byte(nil), 0, made)
	}
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		err := errors.Join(win.Lock(mpi.LockExclusive, 0, 0), mpi.Put(win, []int64{1}, 0, 0), win.Flush(0))
		return errors.Join(err, unix.Kill(os.Getpid(), unix.SIGKILL))
	}
	for w.Rank() == 0 && atomic.LoadInt64(&mem[0]) == 0 {
		runtime.Gosched()
	}
	if err := win.Lock(mpi.LockExclusive, 0, 0); err != nil {
		return err
	}
	fmt.Println("locked")
	return win.Unlock(0)
}

// stayForever kills the ghosts of the job, and goes on with its epochs.
func stayForever(w *mpi.Comm) error {
	win, _, err := mpi.WinAllocate[int64](w, 10, nil)
	if err != nil {
		return err
	}
	return errors.Join(killGhosts(w), lockForever(win))
}

// goOn is stayForever of ranks that serve themselves when the ghosts are lost.
func goOn(w *mpi.Comm) error {
	const n = 3000
	win, mem, err := mpi.WinAllocate[int64](w, n, nil)
	if err != nil {
		return err
	}
	right, v := (w.Rank()+1)%w.Size(), slices.Repeat([]int64{7}, n-1)
	err = errors.Join(win.Lock(mpi.LockShared, right, 0), mpi.Put(win, v, right, 0), win.Unlock(right), w.Barrier(), killGhosts(w))
	if err == nil {
		err = lockForever(win)
	}
	if mpi.ClassOf(err) != mpi.ErrGhostFailed {
		return err
	}
	for left := []int64{1}; left[0] > 0; { // until all have been told that their own is lost, too
		if err = win.Fence(0); err != nil && mpi.ClassOf(err) != mpi.ErrGhostFailed {
			return err
		}
		left[0] = 0
		if asyncNow(win, "off") != nil {
			left[0] = 1
		}
		if err = mpi.Allreduce(w, nil, left, mpi.Max); err != nil {
			return err
		}
	}
	if !slices.Equal(mem[:n-1], v) {
		err = errors.Join(err, errors.New("what was put before is not there any more"))
	}
	err = errors.Join(err, win.Fence(0)) // until all have looked
	err = errors.Join(err, mpi.Put(win, []int64{8}, right, 0), mpi.Accumulate(win, []int64{9}, right, n-1, mpi.OpSum), win.Fence(0))
	if err == nil && (mem[0] != 8 || mem[n-1] != 9) {
		err = fmt.Errorf("ranks that serve themselves have put %d and added %d", mem[0], mem[n-1])
	}
	if err = errors.Join(err, win.Fence(mpi.ModeNoSucceed), win.Free()); err == nil {
		fmt.Println("done")
	}
	return err
}

// killGhosts kills the ghosts of the job, if this is rank 0.
func killGhosts(w *mpi.Comm) error {
	if w.Rank() == 0 {
		job := "XWARP_JOB=" + os.Getenv("XWARP_JOB") + "\x00"
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
			args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			if pid, err := strconv.Atoi(e.Name()); err == nil && strings.Contains(string(env), job) && strings.Contains(string(args), "--ghost") {
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					return err
				}
				for unix.Kill(pid, 0) == nil { // until its agent knows
					runtime.Gosched()
				}
			}
		}
	}
	return nil
}

// lockForever goes on until something fails.
func lockForever(win *mpi.Win) error {
	for {
		if err := errors.Join(win.Lock(mpi.LockShared, 0, 0), win.Unlock(0)); err != nil {
			return err
		}
	}
}

// Where the others go on, a rank that dies keeps no lock.
func TestXrun_ghostsFreeLocks(t *testing.T) {
	testenv.NeedRoot(t)
	for _, hosts := range []string{"1", "2"} {
		out, errOut, status := xrun(t, "-n", "2", "--ghosts", "1", "--testbed", hosts, "--disable-auto-cleanup", self, asServed, "outlive")
		if status != 137 || out != "locked\n" {
			t.Errorf("%s hosts: status %d, %q, %s", hosts, status, out, errOut)
		}
	}
}

// The end of a rank, or of a ghost, is that of the job: on each network and within a host, and
// that of a ghost also where the others would go on without a rank.
func TestXrun_ghostsEnd(t *testing.T) {
	testenv.NeedRoot(t)
	for _, fabric := range append(ghostFabrics, nil) {
		for _, c := range []struct{ what, says, option string }{
			{"die", "rank ", "--quiet"}, {"stay", "ghost ", "--quiet"}, {"stay", "ghost ", "--disable-auto-cleanup"},
		} {
			args := slices.Concat([]string{"-n", "2", "--ghosts", "1", "--wdir", "/", c.option}, fabric, []string{self, asServed, c.what})
			_, errOut, status := xrun(t, args...)
			if status != 137 || !strings.Contains(errOut, "xrun: "+c.says) || !strings.Contains(errOut, "was killed by signal 9 (SIGKILL)") {
				t.Errorf("%v: status %d, %s", args, status, errOut)
			}
		}
	}
}

// With --ghost-failure fallback the job goes on without its ghosts, and xrun says which are lost.
func TestXrun_ghostsFallBack(t *testing.T) {
	testenv.NeedRoot(t)
	for _, fabric := range [][]string{nil, ghostFabrics[0], ghostFabrics[2]} {
		args := slices.Concat([]string{"-n", "2", "--ghosts", "2", "--ghost-failure", "fallback", "--ghost-binding", "segment"}, fabric, []string{self, asServed, "go on"})
		out, errOut, status := xrun(t, args...)
		if status != 0 || out != "done\ndone\n" || !strings.Contains(errOut, "xrun: ghost 0 ") || !strings.Contains(errOut, "signal 9 (SIGKILL)") {
			t.Errorf("%v: status %d, %q, %s", fabric, status, out, errOut)
		}
	}
}

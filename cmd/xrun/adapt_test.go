package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// serversChange has all ranks draw tickets of each other, while it changes within epochs who gives
// them.
func serversChange(w *mpi.Comm) error {
	n, me := w.Size(), w.Rank()
	win, mem, err := mpi.WinAllocate[int64](w, 2, nil)
	if err != nil {
		return err
	}
	const rounds, draws = 20, 10
	drawn := make([]int64, n*rounds*2*draws)
	err = win.LockAll(0)
	for round := range rounds {
		for part := range 2 {
			for i := range draws {
				to := (me + i) % n
				got := int64(-1)
				err = errors.Join(err, mpi.FetchAndOp(win, int64(1), &got, to, 0, mpi.OpSum), mpi.Accumulate(win, []int64{3}, to, 1, mpi.OpSum), win.Flush(to))
				if err != nil || got < 0 {
					return errors.Join(err, fmt.Errorf("ticket %d", got))
				}
				if to == 0 {
					drawn[got]++
				}
			}
			want := []string{"on", "off"}[(round+part+me)%2]
			info, err1 := mpi.NewInfo("async_config", want, "symmetric", "true")
			err = errors.Join(err, err1, win.SetInfo(info), asyncNow(win, want))
		}
		if round%5 == 4 {
			err = errors.Join(err, win.UnlockAll(), win.Fence(0), win.Fence(mpi.ModeNoSucceed), win.LockAll(0))
		}
	}
	if err = errors.Join(err, win.UnlockAll(), mpi.Allreduce(w, nil, drawn, mpi.Sum)); err != nil {
		return err
	}
	if mem[1] != 3*mem[0] {
		return fmt.Errorf("%d tickets were drawn, and %d added", mem[0], mem[1])
	}
	total := []int64{mem[0]}
	if err := mpi.Allreduce(w, nil, total, mpi.Sum); err != nil || total[0] != int64(n*rounds*2*draws) {
		return errors.Join(err, fmt.Errorf("%d tickets were drawn of all", total[0]))
	}
	for i, times := range drawn {
		if me == 0 && (times == 1) != (int64(i) < mem[0]) {
			return fmt.Errorf("ticket %d was drawn %d times", i, times)
		}
	}
	fmt.Println("done")
	return win.Free()
}

// asyncNow fails unless a ghost serves the memory of this rank, or does not.
func asyncNow(win *mpi.Win, want string) error {
	hints, err := win.Info()
	if err != nil {
		return err
	}
	if is, _ := hints.Get("async_now"); is != want {
		return fmt.Errorf("async_now is %q, want %q", is, want)
	}
	return nil
}

// phasesAdapt is in MPI all the time until the ranks serve themselves, and computes until ghosts
// do. It takes windows as the environment makes them.
func phasesAdapt(w *mpi.Comm) error {
	win, mem, err := mpi.WinAllocate[int64](w, 1, nil)
	if err != nil {
		return err
	}
	const operations = 100 // in an epoch: they keep a ghost busy, and take less than an interval
	epochs := int64(0)
	for _, want := range []string{"off", "on", "off", "on"} {
		for there, tries := []int64{0}, 1; there[0] < int64(w.Size()); tries++ {
			if want == "on" { // longer and longer, for the operations may take long on few cores
				for end := time.Now().Add(time.Duration(tries) * 15 * time.Millisecond); time.Now().Before(end); {
				}
			}
			err := win.Fence(0)
			for range operations {
				err = errors.Join(err, mpi.Accumulate(win, []int64{1}, (w.Rank()+1)%w.Size(), 0, mpi.OpSum))
			}
			epochs++
			if err = errors.Join(err, win.Fence(0)); err == nil && mem[0] != operations*epochs {
				err = fmt.Errorf("behind %d epochs there are %d", epochs, mem[0])
			}
			if err != nil {
				return err
			}
			there[0] = 0
			if asyncNow(win, want) == nil {
				there[0] = 1
			}
			if err := mpi.Allreduce(w, nil, there, mpi.Sum); err != nil {
				return err
			}
		}
	}
	fmt.Println("done")
	return win.Free()
}

// putsFollow has rank 0 put to rank 1 without any call of all ranks of the window: while both are in MPI all
// the time, and while rank 1 computes until it sees that.
func putsFollow(w *mpi.Comm) error {
	win, mem, err := mpi.WinAllocate[int64](w, 2, nil)
	if err = errors.Join(err, win.LockAll(0)); err != nil {
		return err
	}
	word := []int64{0}
	const operations = 200 // until a flush, however long it takes: they keep a ghost busy
	to := (w.Rank() + 1) % w.Size()
	for phase := int64(1); phase <= 3; phase++ {
		for start, flushes := time.Now(), 0; flushes < 20 || time.Since(start) < 100*time.Millisecond; flushes++ { // many intervals
			for range operations / 2 {
				err = errors.Join(err, mpi.Put(win, word, to, 0), mpi.Get(win, word, to, 0))
			}
			if err = errors.Join(err, win.Flush(to)); err != nil {
				return err
			}
		}
		for seen, pause, mark := []int64{0}, 20*time.Millisecond, 100*phase; seen[0] == 0; pause += 20 * time.Millisecond { // longer and longer
			if err := w.Barrier(); err != nil {
				return err
			}
			mark++
			switch w.Rank() {
			case 0:
				time.Sleep(pause)
				err = errors.Join(mpi.Put(win, []int64{mark}, 1, 1), win.Flush(1))
			case 1:
				for start := time.Now(); time.Since(start) < 2*pause && seen[0] == 0; {
					if atomic.LoadInt64(&mem[1]) == mark {
						seen[0] = 1
					}
				}
			}
			if err = errors.Join(err, mpi.Bcast(w, seen, 1)); err != nil {
				return err
			}
		}
	}
	fmt.Println("done")
	return errors.Join(win.UnlockAll(), win.Free())
}

// Puts follow what ranks do, and are done by both the ranks and the ghosts.
func TestXrun_ghostsFollow(t *testing.T) {
	testenv.NeedRoot(t)
	for _, fabric := range append(ghostFabrics, []string{}) {
		t.Run(strings.Join(append(fabric, "follow"), "_"), func(t *testing.T) {
			args := append([]string{"-n", "3", "--ghosts", "1", "--wdir", "/", "--async", "auto-ghosts", "--stats", "-x", "XWARP_ASYNC_INTERVAL=10ms"}, fabric...)
			out, errOut, status := xrun(t, append(args, self, asServed, "follow")...)
			if status != 0 || out != strings.Repeat("done\n", 3) {
				t.Errorf("status %d, %q, %s", status, out, errOut)
			}
			for _, who := range []string{"target", `ghost \d`} {
				if !regexp.MustCompile(`context \d+ +` + who + ` +[1-9]`).MatchString(errOut) {
					t.Errorf("no Puts by %s: %s", who, errOut)
				}
			}
		})
	}
}

// A progress thread does what a ghost does: what others do to a rank that computes is done before
// the rank calls anything.
func TestXrun_progress(t *testing.T) {
	testenv.NeedRoot(t)
	for i, fabric := range append(ghostFabrics, []string{}) {
		for _, who := range []string{"thread", "thread-core"} {
			for _, what := range []string{"busy", "epochs"} {
				if i > 0 && (what == "epochs" || who == "thread-core") {
					continue
				}
				t.Run(strings.Join(append(fabric, who, what), "_"), func(t *testing.T) {
					args := append([]string{"-n", "3", "--progress", who, "--wdir", "/"}, fabric...)
					out, errOut, status := xrun(t, append(args, self, asServed, what)...)
					switch {
					case who == "thread-core" && runtime.NumCPU() < 2:
						if status == 0 || !strings.Contains(errOut, "--bind-to") {
							t.Errorf("with one processor: status %d, %s", status, errOut)
						}
					case status != 0 || out != strings.Repeat("done\n", 3):
						t.Errorf("status %d, %q, %s", status, out, errOut)
					}
				})
			}
		}
	}
	_, errOut, status := xrun(t, "-n", "2", "--progress", "thread-core", "--bind-to", "core", self, asServed, "who")
	if status == 0 || !strings.Contains(errOut, "--bind-to core:2") {
		t.Errorf("no processor for the thread: status %d, %s", status, errOut)
	}
}

// It may change who serves a window, at calls of all its ranks, as they say or by itself, with each
// binding: each on one network, half of them on the others, and all on all with XWARP_LONG=1.
func TestXrun_ghostsAdapt(t *testing.T) {
	testenv.NeedRoot(t)
	long := os.Getenv("XWARP_LONG") == "1"
	for i, fabric := range append(ghostFabrics, []string{}) {
		for j, c := range [][2]string{{"flips", "on"}, {"phases", "auto"}, {"epochs", "auto"}, {"flips", "auto-ghosts"}, {"phases", "auto-ghosts"}, {"epochs", "auto-ghosts"}} {
			if i > 0 && (c[0] == "epochs" || (i+j)%2 != 0) && !long {
				continue
			}
			for k, binding := range config.GhostBindings {
				if k != (i+j)%len(config.GhostBindings) && !long {
					continue
				}
				t.Run(strings.Join(append(fabric, c[0], binding.Name), "_"), func(t *testing.T) {
					args := append([]string{"-n", "3", "--ghosts", strconv.Itoa(1 + min(k, 1)), "--wdir", "/", "--async", c[1], "--ghost-binding", binding.Name, "-x", "XWARP_ASYNC_INTERVAL=10ms"}, fabric...)
					out, errOut, status := xrun(t, append(args, self, asServed, c[0])...)
					if status != 0 || out != strings.Repeat("done\n", 3) {
						t.Errorf("status %d, %q, %s", status, out, errOut)
					}
				})
			}
		}
	}
}

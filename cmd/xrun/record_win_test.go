package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// computes is for how long the last rank but one calls nothing.
const computes = 500 * time.Millisecond

// windowsMain is a rank that does one of everything to all ranks, itself included, and goes
// through epochs of all kinds. Then rank 0 waits for rank 2.
func windowsMain() error {
	p, err := mpi.Init()
	if err != nil {
		return err
	}
	c := p.World()
	win, _, err := mpi.WinAllocate[complex128](c, 10, nil)
	if err != nil {
		return err
	}
	win.SetName("table")
	words, wide := []complex128{1}, mpi.Slice([]complex128{2})
	err = win.LockAll(0)
	for to := range c.Size() {
		count := make([]int64, 1)
		err = errors.Join(err, mpi.Put(win, words, to, 0), win.Put(wide, mpi.At{Rank: to, Disp: 1}), mpi.Get(win, words, to, 2),
			mpi.Accumulate(win, []int64{1}, to, 3, mpi.OpSum), mpi.FetchAndOp(win, int64(1), &count[0], to, 4, mpi.OpSum),
			mpi.CompareAndSwap(win, int64(1), int64(0), &count[0], to, 5), win.Accumulate(wide, mpi.At{Rank: to, Disp: 6}, mpi.OpSum))
	}
	err = errors.Join(err, win.UnlockAll(), win.Fence(0), win.Fence(mpi.ModeNoSucceed),
		win.Post(c.Group(), 0), win.Start(c.Group(), 0), win.Complete(), win.Wait())
	if err = errors.Join(err, c.Barrier()); err != nil {
		return err
	}
	switch c.Rank() {
	case 0:
		err = errors.Join(win.Lock(mpi.LockShared, 2, 0), mpi.Put(win, words, 2, 0), win.Unlock(2))
	case 2:
		for end := time.Now().Add(computes); time.Now().Before(end); {
		}
	}
	return errors.Join(err, win.Free(), p.Finalize())
}

// The counters and the time line say what was done with a window, and by whom.
func TestXrun_traceOfWindows(t *testing.T) {
	testenv.NeedRoot(t)
	const itself, own, target = "loads and stores", "own rank", "target"
	for _, x := range []struct {
		name   string
		args   []string
		served []trace.Done // of rank 0, but for what it does at the end
		last   string       // who does that
		waits  bool         // for rank 2, then
	}{
		// An element of 16 bytes is accumulated by a message.
		{"here", nil, []trace.Done{{By: itself, Puts: 8, Gets: 4, Accumulates: 12}, {By: own, Accumulates: 1}, {By: target, Accumulates: 3}}, itself, false},
		{"hosts", []string{"--testbed", "2", "--queues", "shared"}, []trace.Done{{By: itself, Puts: 4, Gets: 2, Accumulates: 6}, {By: own, Accumulates: 1}, {By: target, Puts: 4, Gets: 2, Accumulates: 9}}, target, true},
		{"messages", []string{"--testbed", "2", "-x", mpi.EnvShared + "=0"}, []trace.Done{{By: own, Puts: 2, Gets: 1, Accumulates: 4}, {By: target, Puts: 6, Gets: 3, Accumulates: 12}}, target, true},
		{"ghosts", []string{"--testbed", "2", "--ghosts", "1"}, []trace.Done{{By: "ghost 0", Puts: 4, Gets: 2, Accumulates: 8}, {By: "ghost 1", Puts: 4, Gets: 2, Accumulates: 8}}, "ghost 1", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			events, sum, errOut, status := recorded(t, "windows", x.args...)
			if status != 0 || len(sum.Windows) != 1 || len(sum.Ranks) != 4 || len(sum.Ranks[0].Windows) != 1 {
				t.Fatalf("status %d, %+v, %s", status, sum.Windows, errOut)
			}
			if w := sum.Windows[0]; w.Name != "table" || w.Ranks != 4 || w.Fences != 8 || w.Starts != 4 || w.Posts != 4 || w.LockAlls != 4 || w.Locks != 1 {
				t.Errorf("of all ranks %+v", w)
			}
			w := sum.Ranks[0].Windows[0]
			for i, want := range x.served {
				if want.By == x.last {
					want.Puts++
				}
				if len(w.Served) != len(x.served) || w.Served[i] != want {
					t.Fatalf("served are %+v, want %+v, and a Put by %s", w.Served, x.served, x.last)
				}
				if !strings.Contains(errOut, want.By) {
					t.Errorf("%s is not in\n%s", want.By, errOut)
				}
			}
			if took := time.Duration(w.WaitedMost); x.waits && (w.WaitedFor != 2 || took < computes/2 || w.WaitedNanoseconds < w.WaitedMost || !strings.Contains(errOut, " for its rank 2\n")) {
				t.Errorf("rank 0 has waited %v for rank %d, want %v for rank 2:\n%s", took, w.WaitedFor, computes, errOut)
			}
			checkEpochs(t, events, x.last)
		})
	}
}

// checkEpochs finds the epochs of each rank in the time line, and who has done the last Put of
// rank 0.
func checkEpochs(t *testing.T, events []traceEvent, last string) {
	t.Helper()
	begun, ended, server := map[string]int{}, 0, any(nil)
	for _, e := range events {
		kind, _, _ := strings.Cut(strings.TrimPrefix(e.Name, "epoch of "), ",")
		switch {
		case e.Ph == "b":
			begun[kind]++
		case e.Ph == "e":
			ended++
		case e.Ph == "X" && e.Pid == 0 && e.Name == "Put":
			server = e.Args["served"]
		}
	}
	want := map[string]int{"lock_all": 4, "fence": 4, "post": 4, "start": 4, "lock": 1}
	for kind, n := range want {
		if begun[kind] != n {
			t.Errorf("%d epochs of %s, want %d", begun[kind], kind, n)
		}
	}
	if ended != 17 || server != last {
		t.Errorf("%d epochs have ended, want 17; the last Put of rank 0 was done by %v, want %s", ended, server, last)
	}
}

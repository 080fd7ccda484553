package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// holdings is what this process has that windows take. Keys of registrations, contexts and what
// else there is of a window lie on the heap.
type holdings struct {
	files, segments, goroutines int
	heap                        int64 // bytes
}

// holdingsNow is for one rank of a process at a time: the text that it reads is garbage, and in
// a process with thousands of mappings it is as long as what is looked for.
func holdingsNow() (h holdings, err error) {
	files, err1 := os.ReadDir("/proc/self/fd")
	text, err2 := os.ReadFile("/proc/self/maps")
	h = holdings{files: len(files), segments: bytes.Count(text, []byte("xwarp-segment")), goroutines: runtime.NumGoroutine()}
	runtime.GC()
	runtime.GC() // what finalizers have held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.heap = int64(m.HeapAlloc)
	return h, errors.Join(err1, err2)
}

// useWindow makes a window of a flavor, uses it and frees it.
func useWindow(c *mpi.Comm, flavor mpi.WinFlavor, served bool, hints *mpi.Info) error {
	r := &winRank{n: c.Size(), me: c.Rank(), hints: hints}
	memory, err := r.make(c, flavor, 1000)
	if err != nil {
		return err
	}
	if served && flavor == mpi.FlavorAllocate {
		err = wantAsync(r.w, "on")
	}
	if memory[0] != 0 || memory[999] != 0 {
		err = errors.Join(err, errors.New("the memory of a new window is not empty"))
	}
	to, sum := (c.Rank()+1)%c.Size(), new(int64)
	memory[0] = 1
	err = errors.Join(err, c.Barrier(), r.w.LockAll(0),
		mpi.Put(r.w, []int64{2}, to, r.disp(to, 999)), mpi.Put(r.w, make([]int64, 500), to, r.disp(to, 1)),
		mpi.FetchAndOp(r.w, 1, sum, to, r.disp(to, 998), mpi.OpSum), r.w.UnlockAll(), c.Barrier())
	if err == nil && (memory[999] != 2 || memory[998] != 1) {
		err = fmt.Errorf("others have left %d", memory[998:])
	}
	if flavor == mpi.FlavorDynamic {
		err = errors.Join(err, mpi.Detach(r.w, memory))
	}
	return errors.Join(err, r.w.Free())
}

// errGrown is the error of leaves. A leak shows each time; what jobs of other tests have left,
// whose ranks were killed, may grow once.
var errGrown = errors.New("something was left behind")

// leaves makes many windows, and fails when they leave something behind.
func leaves(p *mpi.Proc, many int, flavors []mpi.WinFlavor, served bool) error {
	const warm = 20 // windows: what is kept for later is there then
	c := p.World()
	var before holdings
	for i := range many {
		hints, err := mpi.NewInfo("window_layout", []string{"table", "overlapping"}[i%5/4])
		if err != nil {
			return err
		}
		if err := useWindow(c, flavors[i%len(flavors)], served, hints); err != nil {
			return fmt.Errorf("window %d, %v: %w", i, flavors[i%len(flavors)], err)
		}
		if i != warm && i != many-1 {
			continue
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		var h holdings
		if c.Rank() == 0 {
			h, err = holdingsNow()
		}
		if i == warm {
			before = h
		}
		if err := errors.Join(err, c.Barrier()); err != nil {
			return err
		}
		grown := h.heap - before.heap
		if h.files > before.files+8 || h.segments > before.segments || h.goroutines > before.goroutines+8 || grown > 256<<10+int64(many)*16 {
			return fmt.Errorf("%w: after %d windows there are %+v, and were %+v", errGrown, i, h, before)
		}
	}
	return nil
}

// manyWindows is 10,000 for those who can wait (XWARP_LONG=1).
func manyWindows(n int) int {
	switch {
	case os.Getenv("XWARP_LONG") == "1":
		return 10_000
	case slow:
		return n / 10
	}
	return n
}

// Windows that come and go leave nothing behind: no descriptor, mapping or goroutine, and no
// memory, on the heap or in the arena.
func TestWin_leaveNothing(t *testing.T) {
	flavors := []mpi.WinFlavor{mpi.FlavorAllocate, mpi.FlavorShared, mpi.FlavorCreate, mpi.FlavorDynamic}
	for _, cfg := range []mpi.Config{{}, {NoShared: true}, {NoShared: true, Transport: mpi.UD}} {
		some := flavors
		if cfg.NoShared {
			some = []mpi.WinFlavor{mpi.FlavorAllocate, mpi.FlavorCreate, mpi.FlavorDynamic}
		}
		many := func(p *mpi.Proc) error { return leaves(p, manyWindows(240), some, false) }
		err := mpi.RunWith(2, cfg, many)
		for tries := 0; errors.Is(err, errGrown) && tries < 2; tries++ {
			t.Log(err)
			err = mpi.RunWith(2, cfg, many)
		}
		if err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// The same of windows that ghosts serve, which map and register their memory.
func TestWin_leaveNothingWithGhosts(t *testing.T) {
	w := newHostedWorld(sim.Config{Seed: 6}, 3, 2, 1)
	w.launch(func(_ *sim.Task, p *mpi.Proc) error {
		return leaves(p, manyWindows(3000), []mpi.WinFlavor{mpi.FlavorAllocate, mpi.FlavorCreate}, true)
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

// What a window takes of each rank besides its memory is bounded, as docs/MPI.md says: so much,
// and so much for each of its ranks.
func TestWin_memory(t *testing.T) {
	const base, each, windows = 14 << 10, 512, 50
	sizes := []int{2, 12}
	if slow {
		sizes = sizes[:1]
	}
	for _, ranks := range sizes {
		for _, flavor := range []mpi.WinFlavor{mpi.FlavorAllocate, mpi.FlavorCreate, mpi.FlavorDynamic} {
			simulate(t, sim.Config{Seed: 1}, ranks, func(p *mpi.Proc) error {
				c := p.World()
				if err := useWindow(c, flavor, false, nil); err != nil {
					return err
				}
				before, err := heapOfAll(c)
				var all []*winRank
				for range windows {
					r := &winRank{n: c.Size(), me: c.Rank()}
					memory, made := r.make(c, flavor, 10)
					if err = errors.Join(err, made); err != nil {
						return err
					}
					all = append(all, r)
					err = errors.Join(r.w.LockAll(0), mpi.Put(r.w, memory[:1], 0, r.disp(0, 0)), mpi.FetchAndOp(r.w, 1, &memory[1], 0, r.disp(0, 2), mpi.OpSum), r.w.UnlockAll())
				}
				after, failed := heapOfAll(c)
				if took := (after - before) / windows / int64(ranks); c.Rank() == 0 && took > base+each*int64(ranks) {
					err = errors.Join(err, fmt.Errorf("%v, %d ranks: each takes %d bytes for a window, want %d and %d for each of the ranks at most", flavor, ranks, took, base, each))
				}
				err = errors.Join(err, failed)
				for _, r := range all {
					err = errors.Join(err, r.w.Free())
				}
				return err
			})
		}
	}
}

// heapOfAll has rank 0 say what all ranks of the simulation have on the heap.
func heapOfAll(c *mpi.Comm) (int64, error) {
	err := c.Barrier()
	var h holdings
	if c.Rank() == 0 && err == nil {
		h, err = holdingsNow()
	}
	return h.heap, errors.Join(err, c.Barrier())
}

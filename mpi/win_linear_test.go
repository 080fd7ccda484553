package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// Atomic operations are linearizable: whatever all ranks see of a cell is what they would see
// if each operation happened at one moment between its call and the end of its flush. Ranks
// note both times, and porcupine looks for such an order of what all have noted.

// deed is an operation of a history, in words that messages carry.
type deed struct {
	what, rank, cell int64 // the cell: which one of which target
	value, compare   int64
	got              int64
	began, ended     int64
	result           []int64 // of a long deedSum, which got is in
}

const deedWords = 8

// What deeds are.
const (
	deedSum     = iota // FetchAndOp, or a long GetAccumulate
	deedReplace        // FetchAndOp
	deedNoOp           // FetchAndOp
	deedSwap           // CompareAndSwap
	deedGet
	deedAdd // Accumulate, of one or of many
	deeds_
)

// step is what a deed does to its cell, and whether what it has brought can be.
func (d *deed) step(is int64) (possible bool, then int64) {
	switch d.what {
	case deedSum:
		return d.got == is, is + d.value
	case deedReplace:
		return d.got == is, d.value
	case deedSwap:
		if is == d.compare {
			return d.got == is, d.value
		}
		return d.got == is, is
	case deedAdd:
		return true, is + d.value
	}
	return d.got == is, is
}

// linearizable reports whether a history has an order. All cells are 0 in the beginning.
func linearizable(all []deed) error {
	cells := map[int64][]porcupine.Operation{}
	for _, d := range all {
		cells[d.cell] = append(cells[d.cell], porcupine.Operation{ClientId: int(d.rank), Input: d, Call: d.began, Return: d.ended})
	}
	model := porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, _ any) (bool, any) {
			d := input.(deed)
			possible, then := d.step(state.(int64))
			return possible, then
		},
	}
	for cell, history := range cells {
		if !porcupine.CheckOperations(model, history) {
			return fmt.Errorf("%w: cell %d: %d operations have no order in which they could have brought what they have", errData, cell, len(history))
		}
	}
	return nil
}

// linearTraffic makes histories.
type linearTraffic struct {
	seed    uint64
	flushes int // of a goroutine
	workers int // goroutines of a rank
	flavor  mpi.WinFlavor
	now     func() int64 // grows, for all ranks
	broken  bool         // FetchAndOp is a Get and a Put
	async   string       // who serves windows that ghosts can serve, if there are some
}

const (
	linearCells = 2  // of each rank
	linearWords = 40 // of its memory: more than what is done by elements on one host
)

// machineTime is a clock that all processes of this machine have in common.
func machineTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// run makes a history, and rank 0 checks it.
func (x linearTraffic) run(p *mpi.Proc) error {
	c := p.World()
	var w *mpi.Win
	var err error
	if x.flavor == mpi.FlavorCreate {
		w, err = mpi.WinCreate(c, make([]int64, linearWords), nil)
	} else {
		if w, _, err = mpi.WinAllocate[int64](c, linearWords, nil); err == nil && x.async != "" {
			err = wantAsync(w, x.async)
		}
	}
	if err == nil {
		err = w.LockAll(0)
	}
	if err != nil {
		return err
	}
	histories, errs := make([][]deed, x.workers), make([]error, x.workers)
	if x.workers == 1 {
		histories[0], err = x.work(w, 0)
	} else {
		var group sync.WaitGroup
		for k := range x.workers {
			group.Go(func() { histories[k], errs[k] = x.work(w, k) })
		}
		group.Wait()
		err = errors.Join(errs...)
	}
	if err = errors.Join(err, w.UnlockAll()); err != nil {
		return err
	}
	var mine []int64
	for _, h := range histories {
		for _, d := range h {
			mine = append(mine, d.what, d.rank, d.cell, d.value, d.compare, d.got, d.began, d.ended)
		}
	}
	if err := errors.Join(x.judge(c, mine), w.Free()); err != nil {
		return fmt.Errorf("seed %d: %w", x.seed, err)
	}
	return nil
}

// work does operations, one to three under way at a time.
func (x linearTraffic) work(w *mpi.Win, worker int) (history []deed, err error) {
	rnd := rand.New(rand.NewPCG(x.seed, uint64(w.Rank()*100+worker)))
	var last [16]int64 // that was seen of each cell
	for range x.flushes {
		target := rnd.IntN(w.Size())
		some := make([]deed, 1+rnd.IntN(3))
		for i := range some {
			cell := target*linearCells + rnd.IntN(linearCells)
			d := &some[i]
			*d = deed{what: rnd.Int64N(deeds_), rank: int64(w.Rank()), cell: int64(cell), value: rnd.Int64N(1000), compare: last[cell]}
			d.began = x.now()
			if err := x.start(w, d, target); err != nil {
				return nil, err
			}
		}
		if err := w.Flush(target); err != nil {
			return nil, err
		}
		ended := x.now()
		for i := range some {
			some[i].ended = ended
			if some[i].result != nil {
				some[i].got = some[i].result[some[i].cell%linearCells]
			}
			if some[i].what != deedAdd {
				last[some[i].cell] = some[i].got
			}
		}
		history = append(history, some...)
	}
	return history, nil
}

// start starts an operation.
func (x linearTraffic) start(w *mpi.Win, d *deed, target int) error {
	at := int(d.cell) % linearCells
	var many []int64
	if d.value%2 != 0 {
		many = make([]int64, linearWords)
		many[at] = d.value
	}
	switch d.what {
	case deedSum:
		if x.broken {
			err := errors.Join(mpi.Get(w, mem.SliceOf(&d.got), target, at), w.Flush(target))
			return errors.Join(err, mpi.Put(w, []int64{d.got + d.value}, target, at))
		}
		if many != nil {
			d.result = make([]int64, linearWords)
			return mpi.GetAccumulate(w, many, d.result, target, 0, mpi.OpSum)
		}
		return mpi.FetchAndOp(w, d.value, &d.got, target, at, mpi.OpSum)
	case deedReplace:
		return mpi.FetchAndOp(w, d.value, &d.got, target, at, mpi.OpReplace)
	case deedNoOp:
		return mpi.FetchAndOp(w, 0, &d.got, target, at, mpi.OpNoOp)
	case deedSwap:
		return mpi.CompareAndSwap(w, d.value, d.compare, &d.got, target, at)
	case deedAdd:
		if many != nil {
			return mpi.Accumulate(w, many, target, 0, mpi.OpSum)
		}
		return mpi.Accumulate(w, []int64{d.value}, target, at, mpi.OpSum)
	}
	return mpi.Get(w, mem.SliceOf(&d.got), target, at)
}

// judge has rank 0 check what all have noted.
func (x linearTraffic) judge(c *mpi.Comm, mine []int64) error {
	if c.Rank() != 0 {
		return mpi.Send(c, mine, 0, 0)
	}
	all := mine
	for from := 1; from < c.Size(); from++ {
		st, err := c.Probe(from, 0)
		if err != nil {
			return err
		}
		theirs := make([]int64, st.Bytes()/8)
		if _, err := mpi.Recv(c, theirs, from, 0); err != nil {
			return err
		}
		all = append(all, theirs...)
	}
	var history []deed
	for v := all; len(v) > 0; v = v[deedWords:] {
		history = append(history, deed{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], nil})
	}
	return linearizable(history)
}

// simulated runs it in a simulation whose network is as bad as the seed says.
func (x linearTraffic) simulated() error {
	rnd := rand.New(rand.NewPCG(x.seed, 5))
	w := badWorld(x.seed, rnd, 2+rnd.IntN(3))
	w.mpi.Transport = mpi.Transport(x.seed % 4)
	w.mpi.PromoteMessages = 20
	x.workers, x.flavor = 1, []mpi.WinFlavor{mpi.FlavorAllocate, mpi.FlavorCreate}[rnd.IntN(2)]
	w.mpi.Ghosts.Binding = mpi.GhostBinding(rnd.IntN(5))
	if w.ghosts > 0 {
		w.mpi.Async, w.mpi.AsyncInterval = []mpi.Async{mpi.AsyncOn, mpi.AsyncAutoGhosts}[rnd.IntN(2)], 50*time.Microsecond
		x.async = w.mpi.Async.String()
	}
	stamp := int64(0)
	x.now = func() int64 { stamp++; return stamp }
	w.launch(func(_ *sim.Task, p *mpi.Proc) error { return x.run(p) })
	return w.Run()
}

// Over networks that lose, double, reorder and spoil frames, and for a while carry none.
func TestWin_linearizable(t *testing.T) {
	for seed := range seeds(t, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if err := (linearTraffic{seed: uint64(seed), flushes: 60}).simulated(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The check finds out a FetchAndOp that is a Get and a Put.
func TestWin_linearizableFindsOut(t *testing.T) {
	found := 0
	for seed := range 8 {
		switch err := (linearTraffic{seed: uint64(seed), flushes: 60, broken: true}).simulated(); {
		case errors.Is(err, errData):
			found++
		case err != nil:
			t.Fatal(err)
		}
	}
	if found < 6 {
		t.Errorf("of 8 histories with updates that are lost %d were found out", found)
	}
}

// Histories that no memory could have are refused, and those next to them are not.
func TestLinearizable_histories(t *testing.T) {
	sum := func(began, ended, value, got int64) deed {
		return deed{what: deedSum, value: value, got: got, began: began, ended: ended}
	}
	swap := func(began, ended, compare, value, got int64) deed {
		return deed{what: deedSwap, compare: compare, value: value, got: got, began: began, ended: ended}
	}
	get := func(began, ended, got int64) deed { return deed{what: deedGet, got: got, began: began, ended: ended} }
	add := deed{what: deedAdd, value: 5, began: 1, ended: 4}
	replace := deed{what: deedReplace, value: 9, got: 5, began: 5, ended: 6}
	for _, c := range []struct {
		name    string
		history []deed
		right   bool
	}{
		{"both orders are possible", []deed{sum(1, 4, 1, 2), sum(2, 3, 2, 0)}, true},
		{"an update is lost", []deed{sum(1, 4, 1, 0), sum(2, 3, 2, 0)}, false},
		{"a ticket is drawn twice", []deed{sum(1, 2, 1, 0), sum(3, 4, 1, 0)}, false},
		{"read while it is added", []deed{add, get(2, 3, 0)}, true},
		{"read before it was there", []deed{get(1, 2, 5), sum(3, 4, 5, 0)}, false},
		{"read after it was there", []deed{add, get(5, 6, 0)}, false},
		{"two swap the same", []deed{swap(1, 4, 0, 1, 0), swap(2, 3, 0, 2, 0)}, false},
		{"one swaps, the other one sees it", []deed{swap(1, 4, 0, 1, 0), swap(2, 3, 0, 2, 1)}, true},
		{"replaced", []deed{add, replace, get(7, 8, 9)}, true},
		{"not replaced", []deed{add, replace, get(7, 8, 5)}, false},
		{"back in time", []deed{add, get(1, 2, 5), get(3, 4, 0)}, false},
	} {
		if err := linearizable(c.history); (err == nil) != c.right {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Several goroutines of each rank, in shared memory and over the kernel's sockets.
func TestWin_linearizableThreads(t *testing.T) {
	var stamps atomic.Int64
	for _, cfg := range []mpi.Config{{}, {NoShared: true}, {NoShared: true, Sends: 1, Receives: 4}} {
		for _, flavor := range []mpi.WinFlavor{mpi.FlavorAllocate, mpi.FlavorCreate} {
			x := linearTraffic{seed: 3, flushes: 100, workers: 3, flavor: flavor, now: func() int64 { return stamps.Add(1) }}
			cfg.Threads = mpi.ThreadMultiple
			if err := mpi.RunWith(3, cfg, x.run); err != nil {
				t.Fatalf("%+v, %v: %v", cfg, flavor, err)
			}
		}
	}
}

// linearProcesses makes histories of real processes: see TestWin_processes.
func linearProcesses(p *mpi.Proc, async string) error {
	for seed, flavor := range []mpi.WinFlavor{mpi.FlavorAllocate, mpi.FlavorCreate} {
		x := linearTraffic{seed: uint64(seed), flushes: 500, workers: 1, flavor: flavor, now: machineTime, async: async}
		if err := x.run(p); err != nil {
			return err
		}
	}
	return nil
}

package mpi_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// Goroutines that mix operations on one target, which takes nothing in for a while, so that
// there is no room for what they have gathered: each operation is done once, as what it is and
// where it belongs, before its flush returns.
func TestWin_threadsWithoutRoom(t *testing.T) {
	const workers, rounds, n = 4, 40, 60 // elements, so many that each message takes a buffer
	var begun atomic.Int64               // workers of all rounds
	cfg := mpi.Config{Threads: mpi.ThreadMultiple, NoShared: true, Sends: 1, Receives: 4}
	err := mpi.RunWith(2, cfg, func(p *mpi.Proc) error {
		c := p.World()
		w, memory, err := winOf(p, 3*workers*n)
		if err != nil {
			return err
		}
		for round := range int64(rounds) {
			if err := c.Barrier(); err != nil {
				return err
			}
			if c.Rank() == 1 {
				for begun.Load() < (round+1)*workers { // in no call: it answers nothing
					runtime.Gosched()
				}
				continue
			}
			errs := make([]error, workers)
			var group sync.WaitGroup
			err := w.LockAll(mpi.ModeNoCheck)
			for k := range workers {
				group.Go(func() { errs[k] = mixKinds(w, k, workers, n, round, &begun) })
			}
			group.Wait()
			if err := errors.Join(errors.Join(errs...), err, w.UnlockAll()); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		err = c.Barrier()
		for i := 0; i < len(memory) && c.Rank() == 1 && err == nil; i += n {
			part, k := i/n%3, int64(i/n/3)
			want := []int64{1000*(rounds-1) + k, rounds * (k + 1), 0}[part] // an even number of times exclusive or
			if !slices.Equal(memory[i:i+n], slices.Repeat([]int64{want}, n)) {
				err = fmt.Errorf("part %d of worker %d is %d, want %d everywhere", part, k, memory[i:i+n], want)
			}
		}
		return errors.Join(err, w.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// mixKinds does operations of three kinds on rank 1, which no message can hold together.
func mixKinds(w *mpi.Win, k, workers, n int, round int64, begun *atomic.Int64) error {
	base := 3 * k * n
	fill := func(v int64) []int64 { return slices.Repeat([]int64{v}, n) }
	put := fill(1000*round + int64(k))
	ops := []func() error{
		func() error { return mpi.Put(w, put, 1, base) },
		func() error { return mpi.Accumulate(w, fill(int64(k+1)), 1, base+n, mpi.OpSum) },
		func() error { return mpi.Accumulate(w, fill(5), 1, base+2*n, mpi.OpBXor) },
	}
	begun.Add(1)
	var err error
	for i := range ops { // each begins with another one
		err = errors.Join(err, ops[(i+k)%len(ops)]())
	}
	got := make([]int64, n)
	err = errors.Join(err, w.Flush(1), mpi.Get(w, got, 1, base), w.Flush(1))
	if err == nil && !slices.Equal(got, put) {
		err = fmt.Errorf("worker %d of %d: behind the flush there are %d, not what it has put", k, workers, got)
	}
	return err
}

// A FlushAll waits for all targets, though another goroutine flushes at the same time and takes
// those out of the list that have answered.
func TestWin_threadsFlushAll(t *testing.T) {
	const rounds = 30
	var released [4]atomic.Int64 // up to which round a rank may take part
	var away atomic.Int64        // ranks of all rounds that have come out of the barrier
	err := mpi.RunWith(4, mpi.Config{Threads: mpi.ThreadMultiple, NoShared: true}, func(p *mpi.Proc) error {
		c, me := p.World(), p.World().Rank()
		w, _, err := winOf(p, 2)
		if err != nil {
			return err
		}
		for round := range int64(rounds) {
			if err := c.Barrier(); err != nil {
				return err
			}
			if me >= 2 {
				away.Add(1)
				for released[me].Load() <= round { // in no call: it answers nothing
					runtime.Gosched()
				}
			}
			if me > 0 {
				continue
			}
			for err == nil && away.Load() < 2*(round+1) { // they may still need this rank
				_, _, err = c.Iprobe(mpi.AnySource, mpi.AnyTag)
			}
			var flushed atomic.Bool
			var early error
			var group sync.WaitGroup
			err = errors.Join(err, w.LockAll(mpi.ModeNoCheck))
			for to := 1; to < 4; to++ {
				err = errors.Join(err, mpi.Put(w, []int64{round}, to, 0))
			}
			group.Go(func() {
				early = w.FlushAll()
				if released[3].Load() <= round {
					early = errors.Join(early, errors.New("FlushAll has returned before rank 3 has done anything"))
				}
				flushed.Store(true)
			})
			others := func(with int) { // take out of the list who has answered
				for i := 0; i < 20 && !flushed.Load(); i++ {
					err = errors.Join(err, mpi.Put(w, []int64{round}, with, 1), w.Flush(with), w.FlushLocalAll())
				}
			}
			others(1)
			released[2].Store(round + 1)
			others(2)
			released[3].Store(round + 1)
			group.Wait()
			if err := errors.Join(err, early, w.UnlockAll()); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return errors.Join(c.Barrier(), w.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// All that is on the list, with two goroutines of each rank that make windows at a time, where the
// race detector sees what they have in common.
func TestWin_acceptedThreads(t *testing.T) {
	for seed := range uint64(4) {
		multiple(t, 4, func(p *mpi.Proc) error { return (&trial{rounds: 12, both: bothAtATime}).run(p, seed) })
	}
}

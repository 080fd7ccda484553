package mpi_test

import (
	"errors"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

var everySecond, errEverySecond = mpi.TypeResized(mpi.TypeInt64, 0, 16)

// winOps are operations with the synchronization that completes them.
var winOps = []struct {
	name string
	op   func(w *mpi.Win, b []int64, result *int64) error
}{
	{"put", func(w *mpi.Win, b []int64, _ *int64) error { return errors.Join(mpi.Put(w, b, 1, 0), w.Flush(1)) }},
	{"get", func(w *mpi.Win, b []int64, _ *int64) error { return errors.Join(mpi.Get(w, b, 1, 0), w.Flush(1)) }},
	{"accumulate", func(w *mpi.Win, b []int64, _ *int64) error {
		return errors.Join(mpi.Accumulate(w, b, 1, 0, mpi.OpSum), w.FlushAll())
	}},
	{"accumulateApart", func(w *mpi.Win, b []int64, _ *int64) error { // to each second word
		at := mpi.At{Rank: 1, Count: len(b) / 2, Type: everySecond}
		return errors.Join(w.Accumulate(mpi.Slice(b[:len(b)/2]), at, mpi.OpSum), w.FlushAll())
	}},
	{"getAccumulate", func(w *mpi.Win, b []int64, _ *int64) error {
		return errors.Join(mpi.GetAccumulate(w, b, b, 1, 0, mpi.OpSum), w.FlushLocal(1))
	}},
	{"fetchAndOp", func(w *mpi.Win, _ []int64, result *int64) error {
		return errors.Join(mpi.FetchAndOp(w, 1, result, 1, 0, mpi.OpSum), w.Flush(1))
	}},
	{"compareAndSwap", func(w *mpi.Win, _ []int64, result *int64) error {
		return errors.Join(mpi.CompareAndSwap(w, 1, 0, result, 1, 0), w.Flush(1))
	}},
}

// onWindow has rank 0 do something with the memory of rank 1, which waits meanwhile.
func onWindow(t testing.TB, cfg mpi.Config, n int, f func(w *mpi.Win) error) {
	t.Helper()
	err := mpi.RunWith(2, cfg, func(p *mpi.Proc) error {
		w, _, err := mpi.WinAllocate[int64](p.World(), n, nil)
		if err == nil {
			err = w.LockAll(0)
		}
		if err == nil && p.World().Rank() == 0 {
			err = f(w)
		}
		if err != nil {
			return err
		}
		return errors.Join(w.UnlockAll(), w.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAllocs_window(t *testing.T) {
	if slow {
		t.Skip("the race detector allocates")
	}
	for _, way := range []struct {
		name string
		cfg  mpi.Config
	}{{"channel", mpi.Config{}}, {"network", mpi.Config{NoShared: true}}, {"ud", mpi.Config{NoShared: true, Transport: mpi.UD}},
		{"beside", mpi.Config{NoShared: true, Transport: mpi.Hybrid, PromoteMessages: 1}}} {
		onWindow(t, way.cfg, 20_000, func(w *mpi.Win) error {
			return warmAllocs(w, func(o string, n int, got float64) {
				t.Errorf("%s, %s of %d: %v allocations, want none", way.name, o, n, got)
			})
		})
	}
}

// warmAllocs tells of the operations on rank 1 of a window of 20,000 words that allocate.
func warmAllocs(w *mpi.Win, tell func(op string, n int, got float64)) (err error) {
	err = errors.Join(errEverySecond, everySecond.Commit())
	for range 50 { // there may be a connection beside datagrams then
		err = errors.Join(err, winOps[0].op(w, make([]int64, 20_000), nil))
	}
	for _, o := range winOps {
		for _, n := range []int{1, 500, 20_000} {
			b, result := make([]int64, n), new(int64)
			if got := testing.AllocsPerRun(20, func() { err = errors.Join(err, o.op(w, b, result)) }); got != 0 {
				tell(o.name, n, got)
			}
		}
	}
	return err
}

func BenchmarkWin(b *testing.B) {
	for _, o := range winOps {
		b.Run(o.name, func(b *testing.B) {
			onWindow(b, mpi.Config{}, 1, func(w *mpi.Win) error {
				buf, result := make([]int64, 1), new(int64)
				b.ReportAllocs()
				for b.Loop() {
					if err := o.op(w, buf, result); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

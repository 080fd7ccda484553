package mpi_test

import (
	"iter"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/mpi"
)

// turn is a parker that lets the other rank go on.
type turn struct{ over func() }

func (t *turn) Park(mono.Time, mono.Duration) bool {
	t.over()
	return false
}

// turnPair is two ranks joined by a pipe that take turns in one thread: one goes on
// when the other has to wait. Nothing but our own code takes time.
type turnPair struct {
	procs [2]*mpi.Proc
	turns [2]turn
}

func newTurnPair(t testing.TB) *turnPair {
	d := &turnPair{}
	nothing := func() {}
	d.turns = [2]turn{{nothing}, {nothing}}
	d.procs = parkedPair(t, mpi.Config{Receives: 24, Sends: 8}, [2]progress.Parker{&d.turns[0], &d.turns[1]})
	return d
}

// play calls f on both ranks, n times each.
func (d *turnPair) play(t testing.TB, n int, f func(c *mpi.Comm) error) {
	both := func(rank int) {
		for range n {
			if err := f(d.procs[rank].World()); err != nil {
				t.Error(err)
				return
			}
		}
	}
	next, stop := iter.Pull(func(yield func(int) bool) {
		d.turns[1].over = func() { yield(0) }
		both(1)
	})
	defer stop()
	d.turns[0].over = func() {
		if _, more := next(); !more {
			d.procs[1].Engine().Step() // as below, the other way round
		}
	}
	both(0)
	for _, more := next(); more; _, more = next() {
		d.procs[0].Engine().Step() // it may wait for our last word
	}
}

// collectives are what is measured.
func collectives() map[string]func(c *mpi.Comm) error {
	long := [2][]float64{make([]float64, 1000), make([]float64, 1000)}
	one := [2][]float64{{1}, {2}}
	outs, ins := [2][][]float64{{{1}, {2}}, {{3}, {4}}}, [2][][]float64{{{0}, {0}}, {{0}, {0}}}
	return map[string]func(c *mpi.Comm) error{
		"Barrier":       func(c *mpi.Comm) error { return c.Barrier() },
		"Bcast8":        func(c *mpi.Comm) error { return mpi.Bcast(c, one[c.Rank()], 0) },
		"Allreduce8":    func(c *mpi.Comm) error { return mpi.Allreduce(c, nil, one[c.Rank()], mpi.Max) },
		"Allreduce8to":  func(c *mpi.Comm) error { return mpi.Allreduce(c, one[c.Rank()], long[c.Rank()][:1], mpi.Max) },
		"Iallreduce8":   func(c *mpi.Comm) error { return wait(mpi.Iallreduce(c, nil, one[c.Rank()], mpi.Max)) },
		"Alltoall64":    func(c *mpi.Comm) error { return mpi.Alltoall(c, long[c.Rank()][:8], long[c.Rank()][8:16]) },
		"Alltoallw8":    func(c *mpi.Comm) error { return mpi.Alltoallw(c, outs[c.Rank()], ins[c.Rank()]) },
		"Scan8":         func(c *mpi.Comm) error { return mpi.Scan(c, nil, one[c.Rank()], mpi.Max) },
		"Allreduce8000": func(c *mpi.Comm) error { return mpi.Allreduce(c, nil, long[c.Rank()], mpi.Max) },
	}
}

func TestAllocs_collectives(t *testing.T) {
	for name, f := range collectives() {
		d := newTurnPair(t)
		d.play(t, 200, f) // pools fill
		few := testing.AllocsPerRun(5, func() { d.play(t, 10, f) })
		many := testing.AllocsPerRun(5, func() { d.play(t, 210, f) })
		if many > few {
			t.Errorf("%s: %v allocations by 10, %v by 210", name, few, many)
		}
	}
}

// BenchmarkCollective tells what collectives of two ranks cost that take turns:
// the messages, and what is around them.
func BenchmarkCollective(b *testing.B) {
	for name, f := range collectives() {
		b.Run(name, func(b *testing.B) {
			d := newTurnPair(b)
			b.ReportAllocs()
			b.ResetTimer()
			d.play(b, b.N, f)
		})
	}
}

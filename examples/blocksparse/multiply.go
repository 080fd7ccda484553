package main

import (
	"errors"
	"time"

	"github.com/xwarp/xwarp/mpi"
)

// task is a product of two blocks, by their numbers, and where it is added to.
type task struct{ a, b, c int }

// multiplier does tasks until there are none left.
type multiplier struct {
	a, b, c   *matrix
	tasks     []task
	counter   *mpi.Win // of rank 0: the next task
	left      []float64
	right     []float64
	product   []float64
	computing time.Duration
	waiting   time.Duration // for other ranks
}

func newMultiplier(comm *mpi.Comm, a, b, c *matrix) (*multiplier, error) {
	n := a.size * a.size
	m := &multiplier{a: a, b: b, c: c, left: make([]float64, n), right: make([]float64, n), product: make([]float64, n)}
	for i := range a.blocks {
		for j := range a.blocks {
			for k := range a.blocks {
				if t := (task{a.at(i, k), b.at(k, j), c.at(i, j)}); t.a >= 0 && t.b >= 0 {
					m.tasks = append(m.tasks, t)
				}
			}
		}
	}
	var err error
	if m.counter, _, err = mpi.WinAllocate[int64](comm, 1, nil); err != nil {
		return nil, err
	}
	return m, m.counter.LockAll(mpi.ModeNoCheck)
}

func (m *multiplier) close() error {
	return errors.Join(m.counter.UnlockAll(), m.counter.Free(), m.a.close(), m.b.close(), m.c.close())
}

// run does tasks until the counter is at the end of the list.
func (m *multiplier) run() error {
	for {
		start := time.Now()
		var next int64
		if err := errors.Join(mpi.FetchAndOp(m.counter, 1, &next, 0, 0, mpi.OpSum), m.counter.Flush(0)); err != nil {
			return err
		}
		if next >= int64(len(m.tasks)) {
			m.waiting += time.Since(start)
			return nil
		}
		if err := m.do(m.tasks[next], start); err != nil {
			return err
		}
	}
}

// do gets, multiplies and accumulates. The wait began at start.
func (m *multiplier) do(t task, start time.Time) error {
	if err := errors.Join(get(m.a, t.a, m.left), get(m.b, t.b, m.right), m.a.w.FlushLocalAll(), m.b.w.FlushLocalAll()); err != nil {
		return err
	}
	got := time.Now()
	multiply(m.product, m.left, m.right, m.a.size)
	done := time.Now()
	rank, disp := m.c.place(t.c)
	// The product is to be there before the memory it is in is written to again.
	err := errors.Join(mpi.Accumulate(m.c.w, m.product, rank, disp, mpi.OpSum), m.c.w.Flush(rank))
	m.waiting += got.Sub(start) + time.Since(done)
	m.computing += done.Sub(got)
	return err
}

func get(m *matrix, number int, block []float64) error {
	rank, disp := m.place(number)
	return mpi.Get(m.w, block, rank, disp)
}

// multiply makes c the product of a and b, which have n rows and columns.
func multiply(c, a, b []float64, n int) {
	clear(c)
	for i := range n {
		out := c[i*n:][:n]
		for k, v := range a[i*n:][:n] {
			for j, w := range b[k*n:][:n] {
				out[j] += v * w
			}
		}
	}
}

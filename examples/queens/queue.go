package main

import (
	"errors"

	"github.com/xwarp/xwarp/mpi"
)

// The window of rank 0: the next task, the sum of all results, and how often each task
// was done.
const (
	nextTask = iota
	sum
	doneOnce
)

// queue hands tasks to ranks that are free.
type queue struct {
	comm    *mpi.Comm
	w       *mpi.Win
	state   []int64 // of rank 0
	tasks   int
	static  bool
	taken   int64 // by this rank
	one     []int64
	results []int64 // of this rank, one by one: each lasts until its Accumulate is complete
}

// newQueue makes a queue of the tasks 0 to tasks-1. A static one gives each rank as many,
// whatever they take.
func newQueue(comm *mpi.Comm, tasks int, static bool) (q *queue, err error) {
	q = &queue{comm: comm, tasks: tasks, static: static, one: []int64{1}, results: make([]int64, 0, tasks)}
	n := 0
	if comm.Rank() == 0 {
		n = doneOnce + tasks
	}
	if q.w, q.state, err = mpi.WinAllocate[int64](comm, n, nil); err != nil {
		return nil, err
	}
	return q, q.w.LockAll(mpi.ModeNoCheck)
}

// next takes a task, -1 when all are taken.
func (q *queue) next() (task int, err error) {
	at := q.taken*int64(q.comm.Size()) + int64(q.comm.Rank())
	q.taken++
	if !q.static {
		err = errors.Join(mpi.FetchAndOp(q.w, 1, &at, 0, nextTask, mpi.OpSum), q.w.Flush(0))
	}
	if err != nil || at >= int64(q.tasks) {
		return -1, err
	}
	return int(at), nil
}

// done adds the result of a task to the sum. Nothing waits for it here.
func (q *queue) done(task int, result int64) error {
	q.results = append(q.results, result)
	return errors.Join(
		mpi.Accumulate(q.w, q.results[len(q.results)-1:], 0, sum, mpi.OpSum),
		mpi.Accumulate(q.w, q.one, 0, doneOnce+task, mpi.OpSum))
}

// close waits until all ranks are done. Rank 0 gets the sum, and whether each task was
// done once.
func (q *queue) close() (total int64, once bool, err error) {
	if err := errors.Join(q.w.UnlockAll(), q.comm.Barrier()); err != nil {
		return 0, false, err
	}
	if once = true; q.comm.Rank() == 0 {
		total = q.state[sum]
		for _, n := range q.state[doneOnce:] {
			once = once && n == 1
		}
	}
	return total, once, q.w.Free()
}

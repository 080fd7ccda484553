package main

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

// The equations are 3 x[i] - x[i-1] - x[i+1] = b[i], with x[i] = sin i as the
// answer. Jacobi's iteration comes nearer to it by a factor of 2/3 in each step at
// least, from wherever it begins: so what a lost rank knew need not be known. Its
// rows begin at zero again.
const (
	diagonal  = 3
	tolerance = 1e-12
)

func answer(i int) float64 { return math.Sin(float64(i)) }

// solver is a part of the rows: x[1] to x[len-2] are the rows from..to-1, and on
// either side is a row of a neighbour, or 0 at the ends.
type solver struct {
	comm     *mpi.Comm
	rows     int
	from, to int
	x, next  []float64
	steps    int // in all
	since    int // since the last loss
	met      int // losses
}

func newSolver(comm *mpi.Comm, rows int) *solver {
	s := &solver{rows: rows}
	s.share(comm, make([]float64, rows))
	return s
}

// share gives out the rows to the ranks of a communicator. Each of them has all.
func (s *solver) share(comm *mpi.Comm, all []float64) {
	s.comm, s.since = comm, 0
	s.from, s.to = job.Part(s.rows, comm.Size(), comm.Rank())
	s.x = make([]float64, s.to-s.from+2)
	s.next = make([]float64, len(s.x))
	copy(s.x[1:], all[s.from:s.to])
}

// step makes a step, and reports whether the answer is near enough: on all ranks or
// on none.
func (s *solver) step() (done bool, err error) {
	if err := s.halo(); err != nil {
		return false, err
	}
	var change float64
	for i := s.from; i < s.to; i++ {
		at := i - s.from + 1
		s.next[at] = (s.right(i) + s.x[at-1] + s.x[at+1]) / diagonal
		change = max(change, math.Abs(s.next[at]-s.x[at]))
	}
	s.x, s.next = s.next, s.x
	s.steps++
	s.since++
	most := []float64{change}
	err = mpi.Allreduce(s.comm, nil, most, mpi.Max)
	return most[0] < tolerance, err
}

// right is the right side of equation i.
func (s *solver) right(i int) float64 {
	b := diagonal * answer(i)
	if i > 0 {
		b -= answer(i - 1)
	}
	if i < s.rows-1 {
		b -= answer(i + 1)
	}
	return b
}

// halo exchanges rows with the neighbours. At the ends ProcNull changes nothing.
func (s *solver) halo() error {
	left, right, last := s.comm.Rank()-1, s.comm.Rank()+1, len(s.x)-1
	if left < 0 {
		left = mpi.ProcNull
	}
	if right == s.comm.Size() {
		right = mpi.ProcNull
	}
	if _, err := mpi.Sendrecv(s.comm, s.x[1:2], left, 0, s.x[last:], right, 0); err != nil {
		return err
	}
	_, err := mpi.Sendrecv(s.comm, s.x[last-1:last], right, 1, s.x[:1], left, 1)
	return err
}

// meet is where ranks go after each step, with its error. A rank that has one calls
// the others, which may wait for messages that will never come. Then all know whether
// all have made the step; if not, those that are left go on together.
func (s *solver) meet(failed error) (whole bool, err error) {
	switch class := mpi.ClassOf(failed); class {
	case mpi.Success:
	case mpi.ErrProcFailed, mpi.ErrRevoked:
		if err := s.comm.Revoke(); err != nil {
			return false, err
		}
	default:
		return false, failed
	}
	fine := uint64(1)
	if failed != nil {
		fine = 0
	}
	all, err := s.comm.Agree(fine)
	switch {
	case err == nil && all == 1:
		return true, nil
	case err != nil && mpi.ClassOf(err) != mpi.ErrProcFailed:
		return false, err
	}
	return false, s.recover()
}

// recover goes on with those that are left. They may die meanwhile, too.
func (s *solver) recover() error {
	for {
		s.met++
		comm, err := s.comm.Shrink()
		if err != nil {
			return err
		}
		// All rows to all ranks: zero where no rank has them any more.
		all := make([]float64, s.rows)
		copy(all[s.from:s.to], s.x[1:len(s.x)-1])
		steps := []int64{int64(s.steps)}
		err = errors.Join(mpi.Allreduce(comm, nil, all, mpi.Sum), mpi.Allreduce(comm, nil, steps, mpi.Max))
		if err != nil {
			if err := comm.Revoke(); err != nil {
				return err
			}
		}
		fine := uint64(1)
		if err != nil {
			fine = 0
		}
		agreed, err := comm.Agree(fine)
		if err == nil && agreed == 1 {
			s.steps = int(steps[0])
			s.share(comm, all)
			return nil
		}
		s.comm = comm
	}
}

// report checks the answer, and tells about it on rank 0 of those that are left.
func (s *solver) report(out io.Writer, ranks int) error {
	off := []float64{0}
	for i := s.from; i < s.to; i++ {
		off[0] = max(off[0], math.Abs(s.x[i-s.from+1]-answer(i)))
	}
	if err := mpi.Allreduce(s.comm, nil, off, mpi.Max); err != nil {
		return err
	}
	if off[0] > 10*tolerance {
		return fmt.Errorf("wrong: a row is off by %.3g", off[0])
	}
	if s.comm.Rank() == 0 {
		fmt.Fprintf(out, "ulfm: %d rows, %d of %d ranks left, %d steps, %d of them after the last loss; no row is off by more than %.1g\n",
			s.rows, s.comm.Size(), ranks, s.steps, s.since, off[0])
	}
	return nil
}

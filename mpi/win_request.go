package mpi

import "github.com/xwarp/xwarp/mpi/internal/rma"

// Operations with requests (MPI 4.1, section 12.3.5). They are for the epochs of Lock and
// LockAll. The request of an RPut or RAccumulate is complete when the slice is the
// program's again, that of the others when the result is there.

// RPut is [Put] with a request (MPI_Rput).
func RPut[T Scalar](w *Win, src []T, target, disp int) (Request, error) {
	return w.RPut(Slice(src), At{Rank: target, Disp: disp})
}

// RGet is [Get] with a request (MPI_Rget).
func RGet[T Scalar](w *Win, dst []T, target, disp int) (Request, error) {
	return w.RGet(Slice(dst), At{Rank: target, Disp: disp})
}

// RAccumulate is [Accumulate] with a request (MPI_Raccumulate).
func RAccumulate[T Scalar](w *Win, src []T, target, disp int, op Operation) (Request, error) {
	return w.RAccumulate(Slice(src), At{Rank: target, Disp: disp}, op)
}

// RGetAccumulate is [GetAccumulate] with a request (MPI_Rget_accumulate).
func RGetAccumulate[T Scalar](w *Win, src, result []T, target, disp int, op Operation) (Request, error) {
	return w.RGetAccumulate(Slice(src), Slice(result), At{Rank: target, Disp: disp}, op)
}

// RPut is [Win.Put] with a request.
func (w *Win) RPut(d Data, at At) (Request, error) {
	return w.requested("Win.RPut", at.Rank, func(op string, tally *rma.Tally) error {
		return w.transfer(op, &d, at, false, tally)
	})
}

// RGet is [Win.Get] with a request.
func (w *Win) RGet(d Data, at At) (Request, error) {
	return w.requested("Win.RGet", at.Rank, func(op string, tally *rma.Tally) error {
		return w.transfer(op, &d, at, true, tally)
	})
}

// RAccumulate is [Win.Accumulate] with a request.
func (w *Win) RAccumulate(d Data, at At, op Operation) (Request, error) {
	return w.requested("Win.RAccumulate", at.Rank, func(name string, tally *rma.Tally) error {
		return w.combine(name, &d, at, op, nil, tally)
	})
}

// RGetAccumulate is [Win.GetAccumulate] with a request.
func (w *Win) RGetAccumulate(d, result Data, at At, op Operation) (Request, error) {
	return w.requested("Win.RGetAccumulate", at.Rank, func(name string, tally *rma.Tally) error {
		return w.combine(name, &d, at, op, &result, tally)
	})
}

// operation is an operation with a request under way: a task.
type operation struct {
	w      *Win
	target int
	tally  rma.Tally
}

// requested starts an operation that has a request.
func (w *Win) requested(op string, target int, start func(string, *rma.Tally) error) (Request, error) {
	err := w.live(op)
	if err == nil {
		err = w.rank(op, target)
	}
	if err != nil {
		return Request{}, w.report(err)
	}
	if target != ProcNull {
		w.c.ep.Enter()
		err = w.w.Passive(int32(target))
		w.c.ep.Leave()
	}
	if err != nil {
		return Request{}, w.failed(op, err)
	}
	o := &operation{w: w, target: target}
	if err := start(op, &o.tally); err != nil {
		return Request{}, err
	}
	return w.c.begin(op, o)
}

func (o *operation) begin(*call) {}

func (o *operation) advance(k *call) (done bool) {
	if o.target != ProcNull && !o.w.w.Ended(int32(o.target), &o.tally) {
		return false
	}
	if k.err == nil && o.tally.Err != nil {
		k.err = o.w.wrap(k.op, o.tally.Err)
	}
	return true
}

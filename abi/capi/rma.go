package capi

import "github.com/xwarp/xwarp/mpi"

// A transfer is what calls with an origin and a target have: elements here, and where those at
// the target are.
type transfer struct {
	w    *win
	data mpi.Data
	at   mpi.At
}

// set reads the arguments of an operation on a window.
func (t *transfer) set(l *Lib, buf Addr, count int, datatype Handle, rank, disp, atCount int, atType, win Handle) (err error) {
	if err = t.target(l, rank, disp, atCount, atType, win); err == nil {
		t.data, err = l.data(buf, count, datatype)
	}
	return err
}

// target is set without elements here.
func (t *transfer) target(l *Lib, rank, disp, count int, datatype, win Handle) (err error) {
	if t.w, err = l.win(win); err != nil {
		return err
	}
	if count < 0 {
		return fail(mpi.ErrCount, "%d elements at the target", count)
	}
	if disp < 0 {
		return fail(mpi.ErrDisp, "the displacement %d", disp)
	}
	t.at.Rank, t.at.Disp, t.at.Count = rankFrom(rank), disp, count
	t.at.Type, err = l.datatype(datatype)
	return err
}

// requested gives the program the request of an operation.
func (l *Lib) requested(r mpi.Request, err error, to Handles) error {
	return l.start(r, err, MPI_COMM_SELF, to)
}

// Put is MPI_Put.
func Put(l *Lib, buf Addr, count int, datatype Handle, rank, disp, atCount int, atType, win Handle) error {
	var t transfer
	if err := t.set(l, buf, count, datatype, rank, disp, atCount, atType, win); err != nil {
		return err
	}
	return t.w.Put(t.data, t.at)
}

// Rput is MPI_Rput.
func Rput(l *Lib, buf Addr, count int, datatype Handle, rank, disp, atCount int, atType, win Handle, request Handles) error {
	var t transfer
	if err := t.set(l, buf, count, datatype, rank, disp, atCount, atType, win); err != nil {
		return err
	}
	r, err := t.w.RPut(t.data, t.at)
	return l.requested(r, err, request)
}

// Get is MPI_Get.
func Get(l *Lib, buf Addr, count int, datatype Handle, rank, disp, atCount int, atType, win Handle) error {
	var t transfer
	if err := t.set(l, buf, count, datatype, rank, disp, atCount, atType, win); err != nil {
		return err
	}
	return t.w.Get(t.data, t.at)
}

// Rget is MPI_Rget.
func Rget(l *Lib, buf Addr, count int, datatype Handle, rank, disp, atCount int, atType, win Handle, request Handles) error {
	var t transfer
	if err := t.set(l, buf, count, datatype, rank, disp, atCount, atType, win); err != nil {
		return err
	}
	r, err := t.w.RGet(t.data, t.at)
	return l.requested(r, err, request)
}

// Accumulate is MPI_Accumulate.
func Accumulate(l *Lib, buf Addr, count int, datatype Handle, rank, disp, atCount int, atType, op, win Handle) error {
	var t transfer
	o, err := t.combination(l, buf, count, datatype, rank, disp, atCount, atType, op, win)
	if err == nil && op == MPI_NO_OP {
		err = fail(mpi.ErrOp, "MPI_NO_OP is for calls that get what was there")
	}
	if err != nil {
		return err
	}
	return t.w.Accumulate(t.data, t.at, o)
}

// Raccumulate is MPI_Raccumulate.
func Raccumulate(l *Lib, buf Addr, count int, datatype Handle, rank, disp, atCount int, atType, op, win Handle, request Handles) error {
	var t transfer
	o, err := t.combination(l, buf, count, datatype, rank, disp, atCount, atType, op, win)
	if err == nil && op == MPI_NO_OP {
		err = fail(mpi.ErrOp, "MPI_NO_OP is for calls that get what was there")
	}
	if err != nil {
		return err
	}
	r, err := t.w.RAccumulate(t.data, t.at, o)
	return l.requested(r, err, request)
}

// combination is set with an operation. What the origin of MPI_NO_OP is does not count.
func (t *transfer) combination(l *Lib, buf Addr, count int, datatype Handle, rank, disp, atCount int, atType, op, win Handle) (o mpi.Operation, err error) {
	if err = t.target(l, rank, disp, atCount, atType, win); err != nil {
		return o, err
	}
	if o, err = l.op(op); err == nil && op != MPI_NO_OP {
		t.data, err = l.data(buf, count, datatype)
	}
	return o, err
}

// GetAccumulate is MPI_Get_accumulate.
func GetAccumulate(l *Lib, buf Addr, count int, datatype Handle, result Addr, resultCount int, resultType Handle, rank, disp, atCount int, atType, op, win Handle) error {
	var t transfer
	o, err := t.combination(l, buf, count, datatype, rank, disp, atCount, atType, op, win)
	if err != nil {
		return err
	}
	to, err := l.data(result, resultCount, resultType)
	if err != nil {
		return err
	}
	return t.w.GetAccumulate(t.data, to, t.at, o)
}

// RgetAccumulate is MPI_Rget_accumulate.
func RgetAccumulate(l *Lib, buf Addr, count int, datatype Handle, result Addr, resultCount int, resultType Handle, rank, disp, atCount int, atType, op, win Handle, request Handles) error {
	var t transfer
	o, err := t.combination(l, buf, count, datatype, rank, disp, atCount, atType, op, win)
	if err != nil {
		return err
	}
	to, err := l.data(result, resultCount, resultType)
	if err != nil {
		return err
	}
	r, err := t.w.RGetAccumulate(t.data, to, t.at, o)
	return l.requested(r, err, request)
}

// FetchAndOp is MPI_Fetch_and_op.
func FetchAndOp(l *Lib, buf, result Addr, datatype Handle, rank, disp int, op, win Handle) error {
	var t transfer
	o, err := t.combination(l, buf, 1, datatype, rank, disp, 1, datatype, op, win)
	if err != nil {
		return err
	}
	to, err := l.data(result, 1, datatype)
	if err != nil {
		return err
	}
	return t.w.FetchAndOp(t.data, to, t.at, o)
}

// CompareAndSwap is MPI_Compare_and_swap.
func CompareAndSwap(l *Lib, buf, compare, result Addr, datatype Handle, rank, disp int, win Handle) error {
	var t transfer
	if err := t.set(l, buf, 1, datatype, rank, disp, 1, datatype, win); err != nil {
		return err
	}
	with, err := l.data(compare, 1, datatype)
	if err != nil {
		return err
	}
	to, err := l.data(result, 1, datatype)
	if err != nil {
		return err
	}
	return t.w.CompareAndSwap(t.data, with, to, t.at)
}

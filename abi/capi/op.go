package capi

import (
	"runtime"

	"github.com/xwarp/xwarp/mpi"
)

// predefinedOps are the operations that need not be made.
var predefinedOps = map[Handle]mpi.Operation{
	MPI_SUM: mpi.OpSum, MPI_PROD: mpi.OpProd, MPI_MAX: mpi.OpMax, MPI_MIN: mpi.OpMin,
	MPI_LAND: mpi.OpLAnd, MPI_LOR: mpi.OpLOr, MPI_LXOR: mpi.OpLXor,
	MPI_BAND: mpi.OpBAnd, MPI_BOR: mpi.OpBOr, MPI_BXOR: mpi.OpBXor,
	MPI_MINLOC: mpi.OpMinloc, MPI_MAXLOC: mpi.OpMaxloc, MPI_REPLACE: mpi.OpReplace, MPI_NO_OP: mpi.OpNoOp,
}

// operations are those that the program has handles for.
type operations struct {
	predefined [64]struct { // by the lowest bits of their handles, in which they differ
		handle Handle
		op     mpi.Operation
	}
	made table[mpi.Operation]
}

func (o *operations) init() {
	o.made.kind = kindOp
	for h, op := range predefinedOps {
		o.predefined[h&63].handle, o.predefined[h&63].op = h, op
	}
}

// op returns an operation, or says what is wrong.
func (l *Lib) op(h Handle) (mpi.Operation, error) {
	if p := &l.ops.predefined[h&63]; p.handle == h && !p.op.IsNull() {
		return p.op, nil
	}
	if op := l.ops.made.get(h); op != nil {
		return *op, nil
	}
	if h == MPI_OP_NULL {
		return mpi.Operation{}, fail(mpi.ErrOp, "MPI_OP_NULL")
	}
	return mpi.Operation{}, fail(mpi.ErrOp, "%#x is no operation, or was freed", uintptr(h))
}

// reduceOp is op for a reduction, which those for accumulates alone are not. The predefined
// ones are for predefined datatypes, and those of Fortran with a precision or a range.
func (l *Lib) reduceOp(h, datatype Handle) (mpi.Operation, error) {
	if h == MPI_REPLACE || h == MPI_NO_OP {
		return mpi.Operation{}, fail(mpi.ErrOp, "MPI_REPLACE and MPI_NO_OP are for one-sided communication")
	}
	op, err := l.op(h)
	if err == nil && l.ops.made.get(h) == nil {
		if m := l.types.made.get(datatype); m != nil && m.f90 == nil {
			err = fail(mpi.ErrOp, "a predefined operation is not for a datatype that was made")
		}
	}
	return op, err
}

// OpCreate is MPI_Op_create.
func OpCreate(l *Lib, function Addr, large bool, commute int, to Handles) error {
	if err := l.up(); err != nil {
		return err
	}
	if !function.memory() {
		return fail(mpi.ErrArg, "there is no function at address %#x", uintptr(function))
	}
	op, err := mpi.NewOperation(func(in, inout []byte, n int, t mpi.Datatype) {
		l.reduce(function, large, in, inout, n, t)
	}, commute != 0)
	if err == nil {
		to.set(0, l.ops.made.add(op))
	}
	return err
}

// reduce calls a function of the program that reduces n elements. The slices begin where the
// first byte of the first element is, and the addresses that the function gets are what
// displacements count from.
func (l *Lib) reduce(function Addr, large bool, in, inout []byte, n int, t mpi.Datatype) {
	low, _ := t.TrueExtent()
	_, extent := t.Extent()
	a, b := addressOf(in)-Addr(low), addressOf(inout)-Addr(low)
	h := l.types.handle(t, false) // of one that was freed meanwhile too
	for n > 0 {
		k := n
		if !large {
			k = min(n, 1<<30) // its count is an int
		}
		l.calls.Reduce(function, a, b, k, h, large)
		a, b, n = a+Addr(k*extent), b+Addr(k*extent), n-k
	}
	l.types.drop(h)
	runtime.KeepAlive(in)
	runtime.KeepAlive(inout)
}

// OpFree is MPI_Op_free.
func OpFree(l *Lib, op Handles) error {
	h := op.get(0)
	if _, err := l.op(h); err != nil {
		return err
	}
	if l.ops.made.get(h) == nil {
		return fail(mpi.ErrOp, "a predefined operation cannot be freed")
	}
	l.ops.made.remove(h)
	op.set(0, MPI_OP_NULL)
	return nil
}

// OpCommutative is MPI_Op_commutative.
func OpCommutative(l *Lib, op Handle, commute Ints) error {
	o, err := l.op(op)
	if err == nil {
		commute.setFlag(o.Commutes())
	}
	return err
}

// ReduceLocal is MPI_Reduce_local.
func ReduceLocal(l *Lib, inbuf, inoutbuf Addr, count int, datatype, op Handle) error {
	in, err := l.data(inbuf, count, datatype)
	if err != nil {
		return err
	}
	inout, err := l.data(inoutbuf, count, datatype)
	if err != nil {
		return err
	}
	o, err := l.reduceOp(op, datatype)
	if err != nil {
		return err
	}
	return mpi.ReduceLocal(in, inout, o)
}

package capi

import "github.com/xwarp/xwarp/mpi"

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

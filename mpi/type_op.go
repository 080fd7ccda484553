package mpi

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Operation is a reduction of elements of datatypes (MPI_Op): a predefined one, or
// one that [NewOperation] has made. It is a handle of one word; the zero value is
// none (MPI_OP_NULL). The functions over slices, [Sum] and so on, are for the
// collectives over slices.
type Operation struct{ op *dtype.Op }

// The predefined operations (MPI 4.1, sections 6.9.2 and 6.9.4). They reduce
// elements of the predefined datatypes that MPI names for each, and of datatypes
// that were made of one of these only: the columns of a matrix, say. OpMaxloc and
// OpMinloc are for pairs of a value and an index, as [Pair] is.
var (
	OpSum    = Operation{dtype.Sum}    // MPI_SUM
	OpProd   = Operation{dtype.Prod}   // MPI_PROD
	OpMax    = Operation{dtype.Max}    // MPI_MAX; of a NaN and anything it is NaN
	OpMin    = Operation{dtype.Min}    // MPI_MIN; of a NaN and anything it is NaN
	OpLAnd   = Operation{dtype.Land}   // MPI_LAND
	OpLOr    = Operation{dtype.Lor}    // MPI_LOR
	OpLXor   = Operation{dtype.Lxor}   // MPI_LXOR
	OpBAnd   = Operation{dtype.Band}   // MPI_BAND
	OpBOr    = Operation{dtype.Bor}    // MPI_BOR
	OpBXor   = Operation{dtype.Bxor}   // MPI_BXOR
	OpMaxloc = Operation{dtype.Maxloc} // MPI_MAXLOC
	OpMinloc = Operation{dtype.Minloc} // MPI_MINLOC
)

// UserFunction sets inout[i] to in[i] op inout[i] for n elements of datatype t
// (MPI_User_function). Both slices begin at the first byte of the first element,
// and elements are an extent apart. It must be associative, and must not keep the
// slices nor call this package.
type UserFunction func(in, inout []byte, n int, t Datatype)

// NewOperation makes an operation of a function (MPI_Op_create). If it does not
// commute, the result is that of rank 0 op rank 1 op ... See [Plain.Operation] for
// structures of Go.
func NewOperation(fn UserFunction, commutes bool) (Operation, error) {
	if fn == nil {
		return Operation{}, fail(ErrOp, "NewOperation", "there is no function")
	}
	op, err := dtype.NewOp(func(in, inout []byte, n int, t *dtype.Type) { fn(in, inout, n, Datatype{t}) }, commutes)
	return Operation{op}, wrapType("NewOperation", err)
}

// Operation makes an operation on vectors of T, and of nothing else, of a function
// that sets inout[i] to in[i] op inout[i]. See [NewOperation].
func (p Plain[T]) Operation(fn func(in, inout []T), commutes bool) (Operation, error) {
	const op = "Plain.Operation"
	if p.t == nil || fn == nil {
		return Operation{}, fail(ErrOp, op, "there is no function, or TypeOf has not made the type")
	}
	if lb, _ := p.t.TrueExtent(); lb != 0 {
		return Operation{}, fail(ErrOp, op, "the first field of the structure is blank: put it elsewhere")
	}
	_, extent := p.t.Extent()
	made, err := dtype.NewOpFor(p.t, func(in, inout []byte, n int, _ *dtype.Type) {
		fn(mem.PlainOf[T](in[:n*extent]), mem.PlainOf[T](inout[:n*extent]))
	}, commutes)
	return Operation{made}, wrapType(op, err)
}

// IsNull reports whether there is no operation.
func (o Operation) IsNull() bool { return o.op == nil }

// Commutes reports whether operands may change places (MPI_Op_commutative).
func (o Operation) Commutes() bool { return o.op != nil && o.op.Commutative() }

// String returns MPI's name of a predefined operation.
func (o Operation) String() string {
	if o.op == nil {
		return "MPI_OP_NULL"
	}
	return o.op.String()
}

// ReduceLocal sets inout to in op inout, element by element (MPI_Reduce_local). They
// must not overlap.
func ReduceLocal(in, inout Data, op Operation) error {
	if in.t == inout.t && in.count == inout.count && in.t.Flat(in.count) > 0 {
		from, flat := in.flat()
		to, room := inout.flat()
		if on, err := op.op.On(in.t); err == nil && flat && room && !overlap(from, to) {
			on.Apply(from, to, in.count)
			return nil
		}
	}
	k := &call{op: "ReduceLocal"} // it has gaps, or something is wrong with it
	r := with(op)
	if k.reduces(&r, inout, in) && k.sameLength(in, inout) && k.disjoint(in, inout) {
		coll.Combine(&k.s, k.operand(in), k.inout(inout, inout))
	}
	if k.ok() {
		k.seal()
		k.s.Advance(nil) // there are no messages
	}
	return k.err
}

package mpi

import (
	"errors"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Datatype says where in memory the elements of a message lie (MPI_Datatype). It
// is a handle of one word: equal handles name the same datatype. The zero value
// is none (MPI_DATATYPE_NULL).
//
// Datatypes do not change, and have no owner: all ranks and goroutines of a
// process may use one, and the garbage collector frees it. What a program adds to
// one, a name and attributes, belongs to a [Proc].
type Datatype struct{ t *dtype.Type }

// IsNull reports whether there is no datatype.
func (t Datatype) IsNull() bool { return t.t == nil }

// Commit makes the datatype ready for communication (MPI_Type_commit). Those that
// the constructors return are not.
func (t Datatype) Commit() error {
	if t.t == nil {
		return fail(ErrType, "Datatype.Commit", "there is no datatype")
	}
	t.t.Commit()
	return nil
}

// Committed reports whether the datatype may be used in communication.
func (t Datatype) Committed() bool { return t.t != nil && t.t.Committed() }

// Predefined reports whether the datatype is one of those that this package
// defines, and not made of others.
func (t Datatype) Predefined() bool { return t.t != nil && t.t.Kind() != dtype.Derived }

// Size returns how many bytes of data an element has, without gaps
// (MPI_Type_size).
func (t Datatype) Size() int {
	if t.t == nil {
		return 0
	}
	return t.t.Size()
}

// Extent returns the lower bound and the extent in bytes: how far apart the
// elements of a vector are (MPI_Type_get_extent).
func (t Datatype) Extent() (lb, extent int) {
	if t.t == nil {
		return 0, 0
	}
	return t.t.Extent()
}

// TrueExtent returns where the first byte of data is, and how many bytes it is
// from there to behind the last one (MPI_Type_get_true_extent).
func (t Datatype) TrueExtent() (lb, extent int) {
	if t.t == nil {
		return 0, 0
	}
	return t.t.TrueExtent()
}

// String returns MPI's name of a predefined datatype, or that of the call that
// made it. See [Proc.TypeName].
func (t Datatype) String() string {
	if t.t == nil {
		return "MPI_DATATYPE_NULL"
	}
	return t.t.String()
}

// typeClasses translates the classes of what the package of datatypes reports.
var typeClasses = [...]ErrorClass{
	dtype.InvalidBuffer: ErrBuffer, dtype.InvalidCount: ErrCount, dtype.InvalidType: ErrType,
	dtype.InvalidOp: ErrOp, dtype.InvalidArgument: ErrArg, dtype.InvalidDims: ErrDims,
	dtype.Truncated: ErrTruncate, dtype.ConversionFailed: ErrConversion,
}

// wrapType makes an error of the package of datatypes one of ours.
func wrapType(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*dtype.Error](err); ok {
		return &Error{Class: typeClasses[e.Class], Op: op, Rank: -1, Detail: e.Detail}
	}
	return err
}

// made is what a constructor returns.
func made(op string, t *dtype.Type, err error) (Datatype, error) {
	if err != nil {
		return Datatype{}, wrapType(op, err)
	}
	return Datatype{t}, nil
}

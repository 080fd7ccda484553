package mpi

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// Operations on windows (MPI 4.1, section 12.3). They are started, and complete at the
// next synchronization: the slices belong to them until a FlushLocal, Flush, Unlock,
// Complete or Fence returns. At targets that are ProcNull they do nothing. See [Win.Put]
// for elements of other datatypes.

// Accumulates also have these two operations, of all predefined datatypes.
var (
	OpReplace = Operation{dtype.Replace} // the element of the origin (MPI_REPLACE)
	OpNoOp    = Operation{dtype.NoOp}    // the element of the target (MPI_NO_OP)
)

// Put writes src to the memory of a target, from displacement disp on (MPI_Put).
func Put[T Scalar](w *Win, src []T, target, disp int) error {
	return w.bytes("Put", mem.BytesOf(src), target, disp, false, nil)
}

// Get reads memory of a target, from displacement disp on, into dst (MPI_Get).
func Get[T Scalar](w *Win, dst []T, target, disp int) error {
	return w.bytes("Get", mem.BytesOf(dst), target, disp, true, nil)
}

// bytes is a Put of what lies in one piece, or a Get.
func (w *Win) bytes(op string, b []byte, target, disp int, get bool, tally *rma.Tally) error {
	off, err := w.find(op, len(b), target, disp)
	if err != nil || target == ProcNull {
		return w.report(err)
	}
	t := w.beginOn(op, target, len(b), nil)
	w.c.ep.Enter()
	if get {
		err = w.w.Get(int32(target), off, b, tally)
	} else {
		err = w.w.Put(int32(target), off, b, tally)
	}
	w.c.ep.Leave()
	err = w.failed(op, err)
	t.end(err)
	return err
}

// find checks the arguments of an operation on n bytes of a target, and returns where
// they begin.
func (w *Win) find(op string, n, target, disp int) (off uint64, err error) {
	if w == nil || w.c.freed || uint(target) >= uint(w.c.size) {
		err := w.live(op)
		if err == nil {
			err = w.rank(op, target)
		}
		return 0, err
	}
	at, err := w.displaced(op, target, disp)
	if err == nil {
		err = w.inside(op, target, at, 0, n)
	}
	return uint64(at), err
}

// displaced returns how many bytes a displacement is. Of a dynamic window it is an
// address.
func (w *Win) displaced(op string, target, disp int) (int64, error) {
	unit := w.w.Unit(target)
	if disp < 0 || disp > 1<<62/unit {
		return 0, fail(ErrRMARange, op, "displacement %d", disp)
	}
	return int64(disp) * int64(unit), nil
}

// inside reports that bytes lo to hi behind an offset are not in the window of a target.
// What is attached to a dynamic one only the target knows.
func (w *Win) inside(op string, target int, at int64, lo, hi int) error {
	if size := int64(w.w.Size(target)); w.flavor != FlavorDynamic && lo < hi && (at+int64(lo) < 0 || int64(hi) > size-at) {
		return &Error{Class: ErrRMARange, Op: op, Rank: target, Detail: outside(at+int64(lo), at+int64(hi), target, size)}
	}
	return nil
}

// Accumulate combines src with memory of a target, element by element (MPI_Accumulate):
// each becomes src op there, or what op says. Op is a predefined one, [OpReplace]
// included. On the same elements accumulates are atomic, and those of one rank are done in
// its order.
func Accumulate[T Scalar](w *Win, src []T, target, disp int, op Operation) error {
	return w.accumulate("Accumulate", Slice(src), target, disp, op, nil, nil)
}

// GetAccumulate is Accumulate that brings what was there before to result, which is as
// long (MPI_Get_accumulate). With [OpNoOp] it is an atomic Get, and src may be nil.
func GetAccumulate[T Scalar](w *Win, src, result []T, target, disp int, op Operation) error {
	if len(src) != len(result) && op != OpNoOp {
		return w.reportf(ErrCount, "GetAccumulate", "%d elements, and room for %d results", len(src), len(result))
	}
	to := Slice(result)
	return w.accumulate("GetAccumulate", Slice(src), target, disp, op, &to, nil)
}

// FetchAndOp is GetAccumulate of one element (MPI_Fetch_and_op).
func FetchAndOp[T Scalar](w *Win, value T, result *T, target, disp int, op Operation) error {
	const name = "FetchAndOp"
	v := [1]T{value}
	if err := needResult(name, result); err != nil {
		return w.report(err)
	}
	return w.fetchOne(name, mem.BytesOf(v[:]), mem.BytesOf(mem.SliceOf(result)), dtype.Of[T](), target, disp, op)
}

// fetchOne is FetchAndOp of an element of a datatype without gaps.
func (w *Win) fetchOne(name string, value, result []byte, t *dtype.Type, target, disp int, op Operation) error {
	off, err := w.find(name, len(value), target, disp)
	o := rma.Op{Target: int32(target), At: int64(off), Op: op.op}
	if err == nil {
		err = w.suits(name, &o, t, op)
	}
	if err != nil || target == ProcNull {
		return w.report(err)
	}
	begun := w.beginOn(name, target, len(value), &o)
	w.c.ep.Enter()
	err = w.w.FetchOne(&o, value, result)
	w.c.ep.Leave()
	err = w.failed(name, err)
	begun.end(err)
	return err
}

// needResult refuses a result that has no place.
func needResult[T Scalar](op string, result *T) error {
	if result == nil {
		return fail(ErrBuffer, op, "there is no room for the result (nil)")
	}
	return nil
}

// CompareAndSwap puts value in the place of an element of a target if that is equal to
// compare, and brings what was there before to result (MPI_Compare_and_swap).
func CompareAndSwap[T Integer](w *Win, value, compare T, result *T, target, disp int) error {
	const op = "CompareAndSwap"
	v, c := [1]T{value}, [1]T{compare}
	if err := needResult(op, result); err != nil {
		return w.report(err)
	}
	return w.swap(op, mem.BytesOf(v[:]), mem.BytesOf(c[:]), mem.BytesOf(mem.SliceOf(result)), dtype.Of[T](), target, disp)
}

// swap is CompareAndSwap of an element of a datatype without gaps.
func (w *Win) swap(op string, value, compare, result []byte, t *dtype.Type, target, disp int) error {
	off, err := w.find(op, len(value), target, disp)
	if err != nil || target == ProcNull {
		return w.report(err)
	}
	o := rma.Op{Target: int32(target), At: int64(off), Kind: t.Kind()}
	begun := w.beginOn(op, target, len(value), &o)
	w.c.ep.Enter()
	err = w.w.Swap(&o, compare, value, result)
	w.c.ep.Leave()
	err = w.failed(op, err)
	begun.end(err)
	return err
}

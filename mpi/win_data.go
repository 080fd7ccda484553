package mpi

import (
	"fmt"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

func outside(lo, hi int64, target int, size int64) string {
	return fmt.Sprintf("bytes %d to %d of the window of rank %d, which has %d", lo, hi-1, target, size)
}

// At says where at a target the elements of an operation are: Count elements of a
// datatype from displacement Disp on. Count 0 with no Type means those that the origin
// gives, as they lie there.
type At struct {
	Rank, Disp int
	Count      int
	Type       Datatype
}

// Put is [Put] of data to where at says (MPI_Put). Both must have the same elements in the
// same order.
func (w *Win) Put(d Data, at At) error {
	return w.transfer("Win.Put", &d, at, false, nil)
}

// Get is [Get] of data from where at says (MPI_Get).
func (w *Win) Get(d Data, at At) error {
	return w.transfer("Win.Get", &d, at, true, nil)
}

// transfer is a Put or a Get.
func (w *Win) transfer(op string, d *Data, at At, get bool, tally *rma.Tally) error {
	if b, ok := d.flat(); ok && at.flat(d) == len(b) && len(b) > 0 {
		return w.bytes(op, b, at.Rank, at.Disp, get, tally)
	}
	cur, err := w.here(op, d, at.Rank)
	if err != nil || at.Rank == ProcNull {
		return w.report(err)
	}
	o, err := w.there(op, d, at)
	if err == nil && o.Layout.Len() != cur.Len() {
		err = fail(ErrTruncate, op, "%d bytes here and %d at the target", cur.Len(), o.Layout.Len())
	}
	if err != nil {
		return w.report(err)
	}
	o.Tally = tally
	t := w.beginOn(op, at.Rank, cur.Len(), nil)
	w.c.ep.Enter()
	if get {
		err = w.w.GetOver(&o, &cur)
	} else {
		err = w.w.PutOver(&o, &cur)
	}
	w.c.ep.Leave()
	err = w.failed(op, err)
	t.end(err)
	return err
}

// flat returns how many bytes the elements at the target are that lie side by side from the displacement on.
// 0: they do not, there are none, or something is wrong with them.
func (at *At) flat(d *Data) int {
	t, count := at.Type.t, at.Count
	if t == nil && count == 0 {
		t, count = d.t, d.count
	}
	return t.Flat(count)
}

// here checks the target, and returns a cursor over data of this rank.
func (w *Win) here(op string, d *Data, target int) (cur dtype.Cursor, err error) {
	if err = w.live(op); err == nil {
		err = w.rank(op, target)
	}
	if err == nil {
		cur, err = d.cursor(op)
	}
	return cur, err
}

// there returns where the elements are at the target.
func (w *Win) there(op string, d *Data, at At) (o rma.Op, err error) {
	t, count := at.Type.t, at.Count
	if t == nil && count == 0 {
		t, count = d.t, d.count
	}
	o.Target = int32(at.Rank)
	if t == nil {
		return o, nil
	}
	if !t.Committed() {
		return o, fail(ErrType, op, "the datatype of the target, which %v has made, was not committed: call Commit first", t)
	}
	if o.At, err = w.displaced(op, at.Rank, at.Disp); err != nil {
		return o, err
	}
	lo, hi, err := t.Span(count)
	if err == nil {
		err = w.inside(op, at.Rank, o.At, lo, hi)
	}
	if err == nil {
		o.Layout, err = t.Layout(count)
	}
	return o, wrapType(op, err)
}

// Accumulate is [Accumulate] of data (MPI_Accumulate): elements of a predefined datatype,
// or of datatypes that were made of one only.
func (w *Win) Accumulate(d Data, at At, op Operation) error {
	return w.combine("Win.Accumulate", &d, at, op, nil, nil)
}

// GetAccumulate is [GetAccumulate] of data (MPI_Get_accumulate).
func (w *Win) GetAccumulate(d, result Data, at At, op Operation) error {
	return w.combine("Win.GetAccumulate", &d, at, op, &result, nil)
}

func (w *Win) accumulate(name string, d Data, target, disp int, op Operation, result *Data, tally *rma.Tally) error {
	return w.combine(name, &d, At{Rank: target, Disp: disp}, op, result, tally)
}

// combine is an accumulate; result is not nil where it fetches.
func (w *Win) combine(name string, d *Data, at At, op Operation, result *Data, tally *rma.Tally) error {
	if op == OpNoOp && result != nil {
		d = result // that of the origin means nothing
	}
	src, err := w.here(name, d, at.Rank)
	if err != nil || at.Rank == ProcNull {
		return w.report(err)
	}
	o, err := w.there(name, d, at)
	var dst dtype.Cursor
	if err == nil && result != nil {
		dst, err = result.cursor(name)
	}
	nothing := src.Len() == 0 && o.Layout.Len() == 0 && dst.Len() == 0 && op.op != nil && op.op.Predefined()
	switch {
	case err != nil:
	case nothing: // whatever it would be of
		op, o.Kind = OpReplace, dtype.Byte.Kind()
	default:
		err = w.matches(name, &o, d, at, op)
	}
	switch {
	case err != nil:
	case src.Len() != o.Layout.Len() || result != nil && dst.Len() != src.Len():
		err = fail(ErrTruncate, name, "%d bytes here, %d at the target, and of results %d", src.Len(), o.Layout.Len(), dst.Len())
	case op == OpNoOp && result == nil:
		return nil
	}
	if err != nil {
		return w.report(err)
	}
	o.Op, o.Tally = op.op, tally
	t := w.beginOn(name, at.Rank, src.Len(), &o)
	w.c.ep.Enter()
	switch {
	case result == nil:
		err = w.w.Accumulate(&o, &src)
	case op == OpNoOp:
		err = w.w.Fetch(&o, nil, &dst)
	default:
		err = w.w.Fetch(&o, &src, &dst)
	}
	w.c.ep.Leave()
	err = w.failed(name, err)
	t.end(err)
	return err
}

// matches finds out of what elements an accumulate is, and whether the operation is for
// them.
func (w *Win) matches(name string, o *rma.Op, d *Data, at At, op Operation) error {
	if d.t == nil {
		return nil
	}
	if at.Type.t != nil && at.Type.t.Uniform() != d.t.Uniform() {
		return fail(ErrType, name, "both sides must have elements of one predefined datatype, the same one")
	}
	return w.suits(name, o, d.t, op)
}

// suits is matches for one side.
func (w *Win) suits(name string, o *rma.Op, t *dtype.Type, op Operation) error {
	if op.op == nil || !op.op.Predefined() {
		return fail(ErrOp, name, "accumulates have the predefined operations only")
	}
	if o.Kind = t.Uniform(); o.Kind == dtype.Derived {
		return fail(ErrType, name, "the elements of an accumulate must be of one predefined datatype")
	}
	_, err := op.op.On(o.Kind.Type())
	return wrapType(name, err)
}

// FetchAndOp is [FetchAndOp] of one element of any predefined datatype (MPI_Fetch_and_op).
func (w *Win) FetchAndOp(d, result Data, at At, op Operation) error {
	const name = "Win.FetchAndOp"
	if op == OpNoOp {
		d = result // that of the origin means nothing
	}
	if t := result.Type(); result.t != nil && !t.Predefined() {
		return w.reportf(ErrType, name, "it is for one element of a predefined datatype, not of %v", t)
	}
	value, ok := d.element()
	old, okResult := result.element()
	if !ok || !okResult || len(value) != len(old) { // with gaps, or something is wrong
		return w.combine(name, &d, at, op, &result, nil)
	}
	return w.fetchOne(name, value, old, d.t, at.Rank, at.Disp, op)
}

// CompareAndSwap is [CompareAndSwap] of one element of a datatype of integers, of bytes or of
// truth values (MPI_Compare_and_swap).
func (w *Win) CompareAndSwap(d, compare, result Data, at At) error {
	const op = "Win.CompareAndSwap"
	value, ok := d.element()
	with, okCompare := compare.element()
	old, okResult := result.element()
	if !ok || !okCompare || !okResult || len(with) != len(value) || len(old) != len(value) || !exact(d.t) {
		return w.reportf(ErrType, op, "it is for one element of a predefined datatype of integers")
	}
	return w.swap(op, value, with, old, d.t, at.Rank, at.Disp)
}

// exact reports whether equal elements of a datatype have equal bits.
func exact(t *dtype.Type) bool {
	_, notBits := dtype.Band.On(t)
	_, notTruth := dtype.Land.On(t)
	return notBits == nil || notTruth == nil
}

// element returns the bytes of one element of a predefined datatype without gaps.
func (d *Data) element() ([]byte, bool) {
	if d.count != 1 || !d.Type().Predefined() || d.t.Flat(1) == 0 {
		return nil, false
	}
	return d.flat()
}

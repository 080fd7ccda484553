package mpi

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// reduction is what a collective reduces with: a function over slices, or an
// Operation and whatever datatype it finds.
type reduction struct {
	op       coll.Op // of slices; nil: of datatypes
	elem     int     // bytes of an element of them
	commutes bool
	typed    Operation
	wrong    string // about the arguments
}

// by is the reduction of a function over slices.
func by[T Scalar](op Op[T], options []OpOption) reduction {
	r := reduction{op: reducer[T](op), elem: sizeOf[T](), commutes: true}
	if op == nil {
		r.wrong = "the operation is nil; there is Sum, Max and so on, or write your own"
	}
	for _, o := range options {
		if o != NonCommutative {
			r.wrong = fmt.Sprintf("there is no option %d; there is NonCommutative", o)
		}
		r.commutes = false
	}
	return r
}

// with is the reduction of an operation over datatypes.
func with(op Operation) reduction {
	if op.op == nil {
		return reduction{wrong: "there is no operation; there is OpSum, OpMax and so on, or NewOperation"}
	}
	return reduction{typed: op, commutes: op.op.Commutative()}
}

// user reports whether elements are left to a function of the program's.
func (r *reduction) user() bool { return r.typed.op != nil && !r.typed.op.Predefined() }

// typedReducer reduces the elements of a datatype: it implements coll.Op.
type typedReducer struct {
	r      dtype.Reduction
	slot   int // bytes from one element to the next
	lb     int // where in its slot an element begins
	single bool
}

// Reduce implements coll.Op.
func (f *typedReducer) Reduce(in, inout []byte) {
	if !f.single {
		f.r.Apply(in[f.lb:], inout[f.lb:], len(in)/f.slot)
		return
	}
	for at := 0; at < len(in); at += f.slot {
		f.r.Apply(in[at:at+f.slot], inout[at:at+f.slot], 1)
	}
}

// reduces says what the algorithms reduce with. d has the elements, other, if it
// is not the zero Data, has such too.
func (k *call) reduces(r *reduction, d, other Data) bool {
	k.lay = nil
	switch {
	case !k.ok():
	case r.wrong != "":
		k.refuse(ErrOp, "%s", r.wrong)
		return false
	default:
		k.signsReduction(r, d, other)
	}
	switch {
	case !k.ok():
	case r.op != nil:
		k.s.Reduction(r.op, r.elem, r.commutes)
	case d.t == nil && other.t == nil:
		k.refuse(ErrType, "there is no datatype to reduce elements of")
	case d.t == nil:
		k.reducesData(r.typed.op, other.t, nil)
	default:
		k.reducesData(r.typed.op, d.t, other.t)
	}
	return k.ok()
}

// reducesData is reduces for elements of datatype t, and of other if it is not nil.
//
// Predefined operations see packed bytes: the elements of a predefined datatype,
// whatever was made of it. Pairs and what user-defined operations are for have
// gaps, which must be where these expect them: such elements lie in slots as in the
// memory of a program, and lay is their datatype there.
func (k *call) reducesData(op *dtype.Op, t, other *dtype.Type) {
	whole := t
	if op.Predefined() {
		t = t.Uniform().Type()
	}
	switch {
	case t == nil:
		k.refuse(ErrOp, "%v is for elements of one predefined datatype: for others write an operation of your own", op)
	case op.Predefined() && other != nil && other.Uniform() != t.Kind():
		k.refuse(ErrType, "elements of %v and of %v", whole, other)
	case op.Predefined() && whole != t && !gapless(t):
		k.refuse(ErrOp, "%v is for %v, not for what was made of it", op, t)
	case !whole.Committed() || other != nil && !other.Committed():
		k.refuse(ErrType, "a datatype was not committed: call Commit first")
	default:
		k.arrange(op, t, other)
	}
}

// arrange decides how elements of t lie where they are reduced.
func (k *call) arrange(op *dtype.Op, t, other *dtype.Type) {
	on, err := op.On(t)
	if err != nil {
		k.err = wrapType(k.op, err)
		return
	}
	_, extent := t.Extent()
	lb, length := t.TrueExtent()
	k.reducer = typedReducer{r: on, slot: max(extent, 1)}
	switch {
	case gapless(t) || t.Size() == 0: // packed
	case other != nil && other != t:
		k.refuse(ErrType, "elements of two datatypes: user-defined operations and pairs are for one")
	case lb >= 0 && lb+length <= extent:
		k.lay, k.reducer.lb = t, lb
	default:
		k.reducer.single = true
		k.reducer.slot = (length + 7) &^ 7
		if k.lay, err = dtype.Resized(t, lb, k.reducer.slot); err != nil {
			k.err = wrapType(k.op, err)
		}
	}
	if k.ok() {
		k.s.Reduction(&k.reducer, k.reducer.slot, op.Commutative())
	}
}

// gapless reports whether elements of t lie side by side as packed bytes do.
func gapless(t *dtype.Type) bool {
	at, ok := t.Contiguous(2)
	return ok && at == 0 && t.Size() > 0
}

// length returns how many bytes d has where it is reduced.
func (k *call) length(d Data) int {
	if k.lay == nil {
		return d.size()
	}
	return d.count * k.reducer.slot
}

// slots returns the memory of d if it can be used as slots: what is between pairs
// has no owner, but what is between other elements is the program's.
func (k *call) slots(d *Data) ([]byte, bool) {
	if d.t != k.lay || d.t.Kind() == dtype.Derived || d.count < 0 || uint(d.origin) > uint(len(d.mem)) {
		return nil, false
	}
	b := d.mem[d.origin:]
	if d.count > len(b)/k.reducer.slot {
		return nil, false
	}
	return b[: d.count*k.reducer.slot : d.count*k.reducer.slot], true
}

// inSlots returns a cursor over slots.
func (k *call) inSlots(b []byte) dtype.Cursor {
	origin := 0
	if k.reducer.single {
		lb, _ := k.lay.TrueExtent()
		origin = -lb
	}
	cur, err := k.lay.Cursor(b, origin, len(b)/k.reducer.slot)
	if err != nil {
		panic("mpi: " + err.Error()) // slots are as long as elements
	}
	return cur
}

// lies returns the memory of d if it can be used where it is.
func (k *call) lies(d *Data) ([]byte, bool) {
	if k.lay == nil {
		return d.flat()
	}
	return k.slots(d)
}

// operand returns the elements of d, which are only read.
func (k *call) operand(d Data) []byte {
	if k.lay == nil {
		return k.read(d)
	}
	b, ok := k.slots(&d)
	if !ok && k.ok() {
		if cur, good := k.cursor(&d); good {
			b = k.s.Temp(k.length(d))
			k.s.CopyTyped(k.inSlots(b), cur)
		}
	}
	return b
}

// result returns room for elements that become d at the end.
func (k *call) result(d Data) []byte {
	if k.lay == nil {
		return k.write(d)
	}
	b, ok := k.slots(&d)
	if !ok && k.ok() {
		if cur, good := k.cursor(&d); good {
			b = k.s.Temp(k.length(d))
			k.late = append(k.late, late{cur, k.inSlots(b)})
		}
	}
	return b
}

// fill makes b the elements of d, unless they are.
func (k *call) fill(b []byte, d Data) {
	if k.lay == nil {
		k.load(b, d)
		return
	}
	if src, ok := k.slots(&d); ok {
		k.s.Copy(b, src)
	} else if cur, good := k.cursor(&d); good && k.ok() {
		k.s.CopyTyped(k.inSlots(b), cur)
	}
}

// sameLength refuses a result of another length than what is reduced.
func (k *call) sameLength(send, recv Data) bool {
	if k.ok() && k.length(send) != k.length(recv) {
		k.refuse(ErrCount, "%d elements to send and room for %d: want the same", send.count, recv.count)
	}
	return k.ok()
}

// given refuses a reduction between groups in place: what a rank gives and what it
// gets are of different groups.
func (k *call) given(send, recv Data) bool {
	if k.ok() && k.c.Inter() && send.none() && recv.count > 0 {
		k.refuse(ErrBuffer, "nothing is in place on an intercommunicator: give a send buffer")
	}
	return k.ok()
}

// reducer lets the algorithms of collectives reduce bytes.
type reducer[T Scalar] Op[T]

// Reduce implements coll.Op.
func (r reducer[T]) Reduce(in, inout []byte) { r(mem.ScalarsOf[T](in), mem.ScalarsOf[T](inout)) }

package dtype

import "math/bits"

// Type is a datatype (MPI_Datatype). It is made by a constructor and does not
// change any more, but for [Type.Commit]: any number of goroutines may use it,
// and it need not be freed. Freeing a handle of MPI means to forget it.
type Type struct {
	shape
	kind      Kind // Derived, or which of the predefined ones it is
	made      Contents
	committed bool
	dense     int // the size if vectors of it are one piece of memory from 0 on, else 0
}

// derived makes a type of what a constructor computed.
func derived(s shape, made Contents) (*Type, error) {
	if s.huge || s.trueUB-s.trueLB >= limit { // there is an alignment to be added to the latter
		return nil, fail(InvalidArgument, made.Combiner.String(), "its size or its bounds do not fit into 62 bits: use smaller counts and displacements")
	}
	t := &Type{shape: s, kind: Derived, made: made}
	t.dense = t.denseSize()
	return t, nil
}

// Kind returns which predefined type t is, or [Derived].
func (t *Type) Kind() Kind { return t.kind }

// Commit makes t ready for communication (MPI_Type_commit). There is nothing to
// be done for that but to note it; to commit a committed type does nothing.
func (t *Type) Commit() {
	if !t.committed {
		t.committed = true
	}
}

// Committed reports whether t may be used in communication.
func (t *Type) Committed() bool { return t.committed }

// Size returns how many bytes of data t has (MPI_Type_size).
func (t *Type) Size() int { return t.size }

// Extent returns the lower bound in bytes and the extent, which is how far
// apart two elements of an array of t are (MPI_Type_get_extent).
func (t *Type) Extent() (lb, extent int) { return t.lb(), t.extent() }

// TrueExtent returns the smallest displacement of a byte of t and how many
// bytes it is from there to behind the largest (MPI_Type_get_true_extent).
func (t *Type) TrueExtent() (lb, extent int) { return t.trueLB, t.trueUB - t.trueLB }

// Span returns the range [lo, hi) of displacements from the buffer's address
// that count elements of t touch. It is empty when there is no data.
func (t *Type) Span(count int) (lo, hi int, err error) {
	if count < 0 {
		return 0, 0, fail(InvalidCount, "Span", "the count is %d", count)
	}
	if n := t.Flat(count); n > 0 {
		return 0, n, nil
	}
	all := t.bounds(count, t.extent())
	if all.huge {
		return 0, 0, fail(InvalidCount, "Span", "%d elements of %d bytes are more than memory can hold", count, t.extent())
	}
	return all.trueLB, all.trueUB, nil
}

// Contiguous reports whether count elements of t are one piece of memory, and
// at which displacement it starts: they can be sent without a copy.
func (t *Type) Contiguous(count int) (at int, ok bool) {
	if t.size == 0 || count == 0 {
		return 0, true
	}
	return t.prog.off, t.prog.nd.form == formBlock && (count == 1 || t.extent() == t.size)
}

// Flat returns how many bytes count elements of t are if they are one piece of memory
// that starts at displacement 0, and t is committed; else, and if there are none, 0. It is
// Contiguous for those in a hurry. t may be nil.
func (t *Type) Flat(count int) int {
	if t == nil || !t.committed {
		return 0
	}
	if hi, n := bits.Mul64(uint64(count), uint64(t.dense)); hi == 0 && n < limit {
		return int(n)
	}
	return 0
}

func (t *Type) denseSize() int {
	if at, ok := t.Contiguous(2); ok && at == 0 {
		return t.size
	}
	return 0
}

// GetCount returns how many elements of type t bytes of packed data are
// (MPI_Get_count), and whether that is a whole number.
func (t *Type) GetCount(bytes int) (n int, whole bool) {
	if t.size == 0 {
		return 0, bytes == 0
	}
	return bytes / t.size, bytes%t.size == 0
}

// GetElements returns how many predefined elements bytes of packed data are
// when they were received with type t (MPI_Get_elements), and whether that is
// a whole number. Pairs count as two.
func (t *Type) GetElements(bytes int) (n int, whole bool) {
	if t.size == 0 {
		return 0, bytes == 0
	}
	n, whole = t.sig.elements(bytes % t.size)
	return bytes/t.size*t.sig.elems + n, whole
}

// Uniform returns the predefined type that all elements of t are of, as the
// target of an accumulate must be (MPI 4.1, section 12.3.4), or Derived when
// there is no such type.
func (t *Type) Uniform() Kind { return t.of }

func (t *Type) String() string {
	if t.kind != Derived {
		return kinds[t.kind].name
	}
	return t.made.Combiner.String()
}

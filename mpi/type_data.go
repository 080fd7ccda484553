package mpi

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Data is what calls of MPI take as three arguments, a buffer, a count and a
// datatype: so many elements of a datatype in some memory. The methods of [Comm]
// that communicate take it, the functions of the same names take slices.
//
// [Slice] is all elements of a slice, [Typed] elements of any datatype in its
// memory, [Plain] does both for slices of structures, and [Bytes] names memory
// without a type. The zero value has no elements; as the send buffer of a
// collective it says that it is in place (MPI_IN_PLACE).
//
// A Data names memory and does not hold a copy: it can be made once and used many
// times.
type Data struct {
	mem    []byte
	origin int // index in mem of what displacements count from
	count  int
	t      *dtype.Type
}

// Slice is all elements of a slice. A slice that is nil gives the zero Data.
func Slice[T Scalar](s []T) Data {
	if s == nil {
		return Data{}
	}
	return Data{mem: mem.BytesOf(s), count: len(s), t: dtype.Of[T]()}
}

// Typed is count elements of datatype t, the first of which begins at the first
// element of s. All that they touch must be inside s, or the call that gets them
// fails with class ErrBuffer.
func Typed[T Scalar](s []T, count int, t Datatype) Data { return Bytes(mem.BytesOf(s), 0, count, t) }

// Bytes is count elements of datatype t in memory of any type, the first of which
// begins at b[origin]. An origin that is not 0 is for datatypes with displacements
// below 0. See [Typed].
func Bytes(b []byte, origin, count int, t Datatype) Data {
	return Data{mem: b, origin: origin, count: count, t: t.t}
}

// Count returns the number of elements.
func (d Data) Count() int { return d.count }

// Type returns the datatype of the elements.
func (d Data) Type() Datatype { return Datatype{d.t} }

// none reports that d is the zero Data.
func (d *Data) none() bool { return d.t == nil && d.count == 0 }

// size returns how many bytes of data there are. The count is checked.
func (d *Data) size() int {
	if d.t == nil {
		return 0
	}
	return d.count * d.t.Size()
}

// flat returns the bytes of d if they lie side by side, so that they can be
// communicated as they are. False says that they do not, or that something is
// wrong with them: cursor tells.
func (d *Data) flat() ([]byte, bool) {
	if n := d.t.Flat(d.count); n > 0 && n <= len(d.mem) && d.origin == 0 {
		return d.mem[:n:n], true
	}
	return d.flatAnywhere()
}

// flatAnywhere is flat for what does not begin where the memory does.
func (d *Data) flatAnywhere() ([]byte, bool) {
	if d.t == nil {
		return nil, d.count == 0
	}
	at, ok := d.t.Contiguous(d.count)
	if !ok || d.count <= 0 || !d.t.Committed() {
		return nil, d.count == 0 && d.t.Committed()
	}
	size := d.t.Size()
	if size == 0 {
		return nil, true
	}
	if at += d.origin; uint(at) > uint(len(d.mem)) || d.count > (len(d.mem)-at)/size {
		return nil, false
	}
	end := at + d.count*size
	return d.mem[at:end:end], true
}

// cursor returns a cursor at the first byte, or says what is wrong with d.
func (d *Data) cursor(op string) (dtype.Cursor, error) {
	switch {
	case d.t == nil && d.count == 0:
		return dtype.Cursor{}, nil
	case d.t == nil:
		return dtype.Cursor{}, fail(ErrType, op, "%d elements without a datatype", d.count)
	case !d.t.Committed():
		return dtype.Cursor{}, fail(ErrType, op, "the datatype, which %v has made, was not committed: call Commit first", d.t)
	}
	cur, err := d.t.Cursor(d.mem, d.origin, d.count)
	if err != nil {
		return cur, wrapType(op, err)
	}
	return cur, nil
}

// part is n elements from element at on.
func (d *Data) part(at, n int) Data {
	if d.t == nil {
		return Data{count: n}
	}
	_, extent := d.t.Extent()
	p := *d
	p.origin, p.count = p.origin+at*extent, n
	return p
}

// dense is a cursor over all of b.
func dense(b []byte) dtype.Cursor {
	cur, err := dtype.Byte.Cursor(b, 0, len(b))
	if err != nil {
		panic("mpi: " + err.Error()) // bytes are always inside themselves
	}
	return cur
}

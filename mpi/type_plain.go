package mpi

import (
	"fmt"
	"math"
	"reflect"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Plain is a type of Go whose values can be communicated: a number or a bool, or
// an array or a structure of such. [TypeOf] makes it; the zero value is of no use.
// It is found out once that T is plain, and nothing is looked up per message.
type Plain[T any] struct{ t *dtype.Type }

// TypeOf returns the datatype of a Go type. It has the fields of a structure, not
// the gaps between them, and its extent is the size of T. Types that hold pointers,
// as strings, slices and maps do, are refused with class ErrType. Keep what it
// returns: it looks at the type by reflection.
func TypeOf[T any]() (Plain[T], error) {
	var zero T
	if p, ok := any(zero).(interface{ pair() *dtype.Type }); ok {
		return Plain[T]{p.pair()}, nil
	}
	t, err := reflected(reflect.TypeFor[T](), "")
	if err != nil {
		return Plain[T]{}, err
	}
	t.Commit()
	return Plain[T]{t}, nil
}

// Type returns the datatype of T. It is committed.
func (p Plain[T]) Type() Datatype { return Datatype(p) }

// Slice is all elements of a slice. A slice that is nil gives the zero Data.
func (p Plain[T]) Slice(s []T) Data {
	if s == nil {
		return Data{}
	}
	return p.Typed(s, len(s), Datatype(p))
}

// Typed is count elements of datatype t, the first of which begins at the first
// element of s. See [Typed].
func (p Plain[T]) Typed(s []T, count int, t Datatype) Data {
	if p.t == nil { // TypeOf has not found out whether T has pointers
		return Data{count: count}
	}
	return Bytes(mem.PlainBytes(s), 0, count, t)
}

// Alloc is [Alloc] of elements of T. Give them back with Plain.Free.
func (p Plain[T]) Alloc(proc *Proc, n int) ([]T, error) {
	size := int(reflect.TypeFor[T]().Size())
	switch {
	case p.t == nil:
		return nil, fail(ErrType, "Plain.Alloc", "TypeOf has not made the type")
	case n < 0 || size > 0 && n > math.MaxInt/size:
		return nil, fail(ErrArg, "Plain.Alloc", "%d elements", n)
	case size == 0:
		return make([]T, n), nil
	}
	b, err := proc.alloc(n*size, true)
	if err != nil {
		return nil, err
	}
	return mem.PlainOf[T](b), nil
}

// Free gives back what Plain.Alloc returned.
func (p Plain[T]) Free(proc *Proc, s []T) error { return proc.free(mem.PlainBytes(s)) }

// scalars are the datatypes of the kinds of Go that are one number.
var scalars = map[reflect.Kind]*dtype.Type{
	reflect.Bool: dtype.CBool,
	reflect.Int8: dtype.Int8, reflect.Int16: dtype.Int16, reflect.Int32: dtype.Int32, reflect.Int64: dtype.Int64, reflect.Int: dtype.Int64,
	reflect.Uint8: dtype.Uint8, reflect.Uint16: dtype.Uint16, reflect.Uint32: dtype.Uint32, reflect.Uint64: dtype.Uint64, reflect.Uint: dtype.Uint64,
	reflect.Float32: dtype.Float, reflect.Float64: dtype.Double,
	reflect.Complex64: dtype.CFloatComplex, reflect.Complex128: dtype.CDoubleComplex,
}

// reflected returns the datatype of a Go type. path is where it was found, for
// the error.
func reflected(g reflect.Type, path string) (*dtype.Type, error) {
	if t := scalars[g.Kind()]; t != nil {
		return t, nil
	}
	switch g.Kind() {
	case reflect.Array:
		old, err := reflected(g.Elem(), path+"[]")
		if err != nil {
			return nil, err
		}
		t, err := dtype.Contiguous(g.Len(), old)
		return t, wrapType("TypeOf", err)
	case reflect.Struct:
		return structure(g, path)
	}
	where := ""
	if path != "" {
		where = fmt.Sprintf(" (at %s)", path)
	}
	return nil, fail(ErrType, "TypeOf", "values of type %v%s cannot be communicated: they are, or hold, addresses in this process", g, where)
}

// structure returns the datatype of a structure of Go.
func structure(g reflect.Type, path string) (*dtype.Type, error) {
	var lengths, displacements []int
	var types []*dtype.Type
	for i := range g.NumField() {
		f := g.Field(i)
		if f.Name == "_" { // room only
			continue
		}
		t, err := reflected(f.Type, path+"."+f.Name)
		if err != nil {
			return nil, err
		}
		lengths, displacements, types = append(lengths, 1), append(displacements, int(f.Offset)), append(types, t)
	}
	t, err := dtype.Struct(lengths, displacements, types)
	if err == nil {
		t, err = dtype.Resized(t, 0, int(g.Size()))
	}
	return t, wrapType("TypeOf", err)
}

// Pair is a value and an index: what OpMaxloc and OpMinloc are for (MPI 4.1,
// section 6.9.4). Its datatype, which [TypeOf] returns, is the predefined one:
// MPI_DOUBLE_INT for float64, and so on.
type Pair[V int16 | int32 | int64 | int | float32 | float64] struct {
	Value V
	Index int32
}

// pair returns the predefined datatype. Go lays out a Pair as C does.
func (Pair[V]) pair() *dtype.Type {
	switch t := dtype.Of[V](); t {
	case dtype.Int16:
		return dtype.ShortInt
	case dtype.Int32:
		return dtype.TwoInt
	case dtype.Int64:
		return dtype.LongInt
	case dtype.Float:
		return dtype.FloatInt
	}
	return dtype.DoubleInt
}

package mpi

import "github.com/xwarp/xwarp/mpi/internal/dtype"

// The constructors of datatypes (MPI 4.1, section 5.1.2). Counts and lengths are
// of elements, extents and byte displacements in bytes, and each copies the slices
// that it is given. What they return can be used to make other datatypes; commit
// it before it is used to communicate.

// TypeContiguous is count elements of old side by side (MPI_Type_contiguous).
func TypeContiguous(count int, old Datatype) (Datatype, error) {
	t, err := dtype.Contiguous(count, old.t)
	return made("TypeContiguous", t, err)
}

// TypeVector is count blocks of length elements each, whose starts are stride
// elements apart (MPI_Type_vector): columns of a matrix, for one.
func TypeVector(count, length, stride int, old Datatype) (Datatype, error) {
	t, err := dtype.Vector(count, length, stride, old.t)
	return made("TypeVector", t, err)
}

// TypeHvector is TypeVector with the stride in bytes (MPI_Type_create_hvector).
func TypeHvector(count, length, stride int, old Datatype) (Datatype, error) {
	t, err := dtype.Hvector(count, length, stride, old.t)
	return made("TypeHvector", t, err)
}

// TypeIndexed is blocks of lengths[i] elements, which start displacements[i]
// elements behind the beginning (MPI_Type_indexed).
func TypeIndexed(lengths, displacements []int, old Datatype) (Datatype, error) {
	t, err := dtype.Indexed(lengths, displacements, old.t)
	return made("TypeIndexed", t, err)
}

// TypeHindexed is TypeIndexed with displacements in bytes
// (MPI_Type_create_hindexed).
func TypeHindexed(lengths, displacements []int, old Datatype) (Datatype, error) {
	t, err := dtype.Hindexed(lengths, displacements, old.t)
	return made("TypeHindexed", t, err)
}

// TypeIndexedBlock is TypeIndexed with blocks of one length
// (MPI_Type_create_indexed_block).
func TypeIndexedBlock(length int, displacements []int, old Datatype) (Datatype, error) {
	t, err := dtype.IndexedBlock(length, displacements, old.t)
	return made("TypeIndexedBlock", t, err)
}

// TypeHindexedBlock is TypeIndexedBlock with displacements in bytes
// (MPI_Type_create_hindexed_block).
func TypeHindexedBlock(length int, displacements []int, old Datatype) (Datatype, error) {
	t, err := dtype.HindexedBlock(length, displacements, old.t)
	return made("TypeHindexedBlock", t, err)
}

// TypeStruct is blocks of lengths[i] elements of types[i], which start
// displacements[i] bytes behind the beginning (MPI_Type_create_struct). See
// [TypeOf] for structures of Go.
func TypeStruct(lengths, displacements []int, types []Datatype) (Datatype, error) {
	olds := make([]*dtype.Type, len(types))
	for i := range types {
		olds[i] = types[i].t
	}
	t, err := dtype.Struct(lengths, displacements, olds)
	return made("TypeStruct", t, err)
}

// Order says which index of an array runs fastest in memory.
type Order int

// Orders.
const (
	OrderC       = Order(dtype.OrderC)       // the last one (MPI_ORDER_C)
	OrderFortran = Order(dtype.OrderFortran) // the first one (MPI_ORDER_FORTRAN)
)

// TypeSubarray is the part of an array of old with the given sizes that has
// subsizes elements from index starts on in each dimension
// (MPI_Type_create_subarray). Its extent is that of the array.
func TypeSubarray(sizes, subsizes, starts []int, order Order, old Datatype) (Datatype, error) {
	t, err := dtype.Subarray(sizes, subsizes, starts, dtype.Order(order), old.t)
	return made("TypeSubarray", t, err)
}

// Distribution says how one dimension of an array is spread over ranks.
type Distribution int

// Distributions.
const (
	DistributeNone   = Distribution(dtype.DistributeNone)   // not at all (MPI_DISTRIBUTE_NONE)
	DistributeBlock  = Distribution(dtype.DistributeBlock)  // one block each (MPI_DISTRIBUTE_BLOCK)
	DistributeCyclic = Distribution(dtype.DistributeCyclic) // blocks in turn (MPI_DISTRIBUTE_CYCLIC)
)

// DefaultBlock stands for the usual size of blocks of a Distribution
// (MPI_DISTRIBUTE_DFLT_DARG).
const DefaultBlock = dtype.DefaultBlock

// TypeDarray is the part that rank of size ranks has of an array of old with
// sizes gsizes, which is spread over a grid of psizes ranks by distribs in blocks
// of dargs (MPI_Type_create_darray). The grid is in row-major order whatever the
// order of the array, as those of [Comm.CartCreate] are.
func TypeDarray(size, rank int, gsizes []int, distribs []Distribution, dargs, psizes []int, order Order, old Datatype) (Datatype, error) {
	by := make([]dtype.Distribution, len(distribs))
	for i, d := range distribs {
		by[i] = dtype.Distribution(d)
	}
	t, err := dtype.Darray(size, rank, gsizes, by, dargs, psizes, dtype.Order(order), old.t)
	return made("TypeDarray", t, err)
}

// TypeResized is old with another lower bound and extent, both in bytes
// (MPI_Type_create_resized): it says how far apart the elements of a vector are.
func TypeResized(old Datatype, lb, extent int) (Datatype, error) {
	t, err := dtype.Resized(old.t, lb, extent)
	return made("TypeResized", t, err)
}

// TypeValueIndex returns the predefined datatype of a pair of a value and an index,
// null if there is none (MPI_Type_get_value_index). [Pair] is such a pair.
func TypeValueIndex(value, index Datatype) Datatype {
	for _, p := range [...]struct{ value, index, pair Datatype }{
		{TypeFloat, TypeInt, TypeFloatInt}, {TypeDouble, TypeInt, TypeDoubleInt}, {TypeLong, TypeInt, TypeLongInt},
		{TypeShort, TypeInt, TypeShortInt}, {TypeInt, TypeInt, TypeTwoInt}, {TypeLongDouble, TypeInt, TypeLongDoubleInt},
		{TypeReal, TypeReal, TypeTwoReal}, {TypeDoublePrecision, TypeDoublePrecision, TypeTwoDoublePrecision},
		{TypeInteger, TypeInteger, TypeTwoInteger},
	} {
		if p.value == value && p.index == index {
			return p.pair
		}
	}
	return Datatype{}
}

// TypeDup is the same as old, committed if old is (MPI_Type_dup). See
// [Proc.TypeDup], which copies attributes too.
func TypeDup(old Datatype) (Datatype, error) {
	t, err := dtype.Dup(old.t)
	return made("TypeDup", t, err)
}

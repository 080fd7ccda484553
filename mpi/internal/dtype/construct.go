package dtype

import "slices"

// Contiguous is count elements of old side by side (MPI_Type_contiguous).
func Contiguous(count int, old *Type) (*Type, error) {
	made := Contents{Combiner: CombinerContiguous, Integers: []int{count}, Types: []*Type{old}}
	if err := check(made.Combiner, old, count); err != nil {
		return nil, err
	}
	return derived(old.repeat(count, old.extent()), made)
}

// Vector is count blocks of length elements each, whose starts are stride
// elements apart (MPI_Type_vector).
func Vector(count, length, stride int, old *Type) (*Type, error) {
	made := Contents{Combiner: CombinerVector, Integers: []int{count, length, stride}, Types: []*Type{old}}
	if err := check(made.Combiner, old, count, length); err != nil {
		return nil, err
	}
	step, huge := times(old.extent(), stride)
	s := old.repeat(length, old.extent()).repeat(count, step)
	s.huge = s.huge || huge && count > 1
	return derived(s, made)
}

// Hvector is Vector with the stride in bytes (MPI_Type_create_hvector).
func Hvector(count, length, stride int, old *Type) (*Type, error) {
	made := Contents{Combiner: CombinerHvector, Integers: []int{count, length}, Addresses: []int{stride}, Types: []*Type{old}}
	if err := check(made.Combiner, old, count, length); err != nil {
		return nil, err
	}
	return derived(old.repeat(length, old.extent()).repeat(count, stride), made)
}

// Indexed is blocks of lengths[i] elements, which start displacements[i]
// elements behind the buffer's address (MPI_Type_indexed).
func Indexed(lengths, displacements []int, old *Type) (*Type, error) {
	made := Contents{Combiner: CombinerIndexed, Integers: slices.Concat([]int{len(lengths)}, lengths, displacements), Types: []*Type{old}}
	if err := checkBlocks(made.Combiner, old, lengths, displacements); err != nil {
		return nil, err
	}
	return derived(old.scatter(lengths, displacements, old.extent()), made)
}

// Hindexed is Indexed with displacements in bytes (MPI_Type_create_hindexed).
func Hindexed(lengths, displacements []int, old *Type) (*Type, error) {
	made := Contents{Combiner: CombinerHindexed, Integers: slices.Concat([]int{len(lengths)}, lengths),
		Addresses: slices.Clone(displacements), Types: []*Type{old}}
	if err := checkBlocks(made.Combiner, old, lengths, displacements); err != nil {
		return nil, err
	}
	return derived(old.scatter(lengths, displacements, 1), made)
}

// IndexedBlock is Indexed with blocks of one length
// (MPI_Type_create_indexed_block).
func IndexedBlock(length int, displacements []int, old *Type) (*Type, error) {
	made := Contents{Combiner: CombinerIndexedBlock, Integers: slices.Concat([]int{len(displacements), length}, displacements), Types: []*Type{old}}
	if err := check(made.Combiner, old, length); err != nil {
		return nil, err
	}
	return derived(old.scatter([]int{length}, displacements, old.extent()), made)
}

// HindexedBlock is IndexedBlock with displacements in bytes
// (MPI_Type_create_hindexed_block).
func HindexedBlock(length int, displacements []int, old *Type) (*Type, error) {
	made := Contents{Combiner: CombinerHindexedBlock, Integers: []int{len(displacements), length},
		Addresses: slices.Clone(displacements), Types: []*Type{old}}
	if err := check(made.Combiner, old, length); err != nil {
		return nil, err
	}
	return derived(old.scatter([]int{length}, displacements, 1), made)
}

// Struct is blocks of lengths[i] elements of types[i], which start
// displacements[i] bytes behind the buffer's address (MPI_Type_create_struct).
func Struct(lengths, displacements []int, types []*Type) (*Type, error) {
	made := Contents{Combiner: CombinerStruct, Integers: slices.Concat([]int{len(lengths)}, lengths),
		Addresses: slices.Clone(displacements), Types: slices.Clone(types)}
	if len(types) != len(lengths) || len(displacements) != len(lengths) {
		return nil, fail(InvalidArgument, made.Combiner.String(), "%d lengths, %d displacements and %d types: want as many of each", len(lengths), len(displacements), len(types))
	}
	parts := make([]shape, len(types))
	for i, old := range types {
		if err := check(made.Combiner, old, lengths[i]); err != nil {
			return nil, err
		}
		parts[i] = old.repeat(lengths[i], old.extent()).move(displacements[i])
	}
	return derived(join(parts), made)
}

// Resized is old with another lower bound and extent, both in bytes
// (MPI_Type_create_resized).
func Resized(old *Type, lb, extent int) (*Type, error) {
	made := Contents{Combiner: CombinerResized, Addresses: []int{lb, extent}, Types: []*Type{old}}
	if err := check(made.Combiner, old); err != nil {
		return nil, err
	}
	s := old.shape
	ub := s.plus(lb, extent)
	return derived(s.mark(lb, ub), made)
}

// Dup is the same as old, committed if old is (MPI_Type_dup).
func Dup(old *Type) (*Type, error) {
	made := Contents{Combiner: CombinerDup, Types: []*Type{old}}
	if err := check(made.Combiner, old); err != nil {
		return nil, err
	}
	t, err := derived(old.shape, made)
	if err == nil {
		t.committed = old.committed
	}
	return t, err
}

// check refuses no type and negative counts.
func check(c Combiner, old *Type, counts ...int) error {
	if old == nil {
		return fail(InvalidType, c.String(), "there is no old type (nil)")
	}
	for _, n := range counts {
		if n < 0 {
			return fail(InvalidCount, c.String(), "a count or length is %d: want 0 or more", n)
		}
	}
	return nil
}

func checkBlocks(c Combiner, old *Type, lengths, displacements []int) error {
	if len(lengths) != len(displacements) {
		return fail(InvalidArgument, c.String(), "%d lengths and %d displacements: want as many of each", len(lengths), len(displacements))
	}
	return check(c, old, lengths...)
}

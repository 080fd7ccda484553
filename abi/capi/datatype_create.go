package capi

import "github.com/xwarp/xwarp/mpi"

// create gives the program the handle of a datatype that was made.
func (l *Lib) create(t mpi.Datatype, err error, newtype Handles, large bool) error {
	if err == nil {
		newtype.set(0, l.types.handle(t, large))
	}
	return err
}

// list is a copy of count numbers of the program, or says what is wrong.
func list(count int, numbers ...Ints) ([][]int, error) {
	if count < 0 {
		return nil, fail(mpi.ErrCount, "%d elements", count)
	}
	all := make([][]int, len(numbers))
	for i, n := range numbers {
		if count > 0 && n.null() {
			return nil, fail(mpi.ErrArg, "the address of %d numbers is null", count)
		}
		all[i] = n.slice(count)
	}
	return all, nil
}

// dims is list of the numbers that an array has of each dimension.
func dims(ndims int, numbers ...Ints) ([][]int, error) {
	if ndims < 1 {
		return nil, fail(mpi.ErrDims, "%d dimensions", ndims)
	}
	return list(ndims, numbers...)
}

// TypeContiguous is MPI_Type_contiguous.
func TypeContiguous(l *Lib, count int, oldtype Handle, newtype Handles, large bool) error {
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	t, err := mpi.TypeContiguous(count, old)
	return l.create(t, err, newtype, large)
}

// TypeVector is MPI_Type_vector.
func TypeVector(l *Lib, count, blocklength, stride int, oldtype Handle, newtype Handles, large bool) error {
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	t, err := mpi.TypeVector(count, blocklength, stride, old)
	return l.create(t, err, newtype, large)
}

// TypeCreateHvector is MPI_Type_create_hvector.
func TypeCreateHvector(l *Lib, count, blocklength, stride int, oldtype Handle, newtype Handles, large bool) error {
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	t, err := mpi.TypeHvector(count, blocklength, stride, old)
	return l.create(t, err, newtype, large)
}

// TypeIndexed is MPI_Type_indexed.
func TypeIndexed(l *Lib, count int, lengths, displacements Ints, oldtype Handle, newtype Handles, large bool) error {
	n, err := list(count, lengths, displacements)
	if err != nil {
		return err
	}
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	t, err := mpi.TypeIndexed(n[0], n[1], old)
	return l.create(t, err, newtype, large)
}

// TypeCreateHindexed is MPI_Type_create_hindexed.
func TypeCreateHindexed(l *Lib, count int, lengths, displacements Ints, oldtype Handle, newtype Handles, large bool) error {
	n, err := list(count, lengths, displacements)
	if err != nil {
		return err
	}
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	t, err := mpi.TypeHindexed(n[0], n[1], old)
	return l.create(t, err, newtype, large)
}

// TypeCreateIndexedBlock is MPI_Type_create_indexed_block.
func TypeCreateIndexedBlock(l *Lib, count, blocklength int, displacements Ints, oldtype Handle, newtype Handles, large bool) error {
	n, err := list(count, displacements)
	if err != nil {
		return err
	}
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	t, err := mpi.TypeIndexedBlock(blocklength, n[0], old)
	return l.create(t, err, newtype, large)
}

// TypeCreateHindexedBlock is MPI_Type_create_hindexed_block.
func TypeCreateHindexedBlock(l *Lib, count, blocklength int, displacements Ints, oldtype Handle, newtype Handles, large bool) error {
	n, err := list(count, displacements)
	if err != nil {
		return err
	}
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	t, err := mpi.TypeHindexedBlock(blocklength, n[0], old)
	return l.create(t, err, newtype, large)
}

// TypeCreateStruct is MPI_Type_create_struct.
func TypeCreateStruct(l *Lib, count int, lengths, displacements Ints, types, newtype Handles, large bool) error {
	n, err := list(count, lengths, displacements)
	if err == nil {
		err = types.there("datatypes", count)
	}
	if err != nil {
		return err
	}
	olds := make([]mpi.Datatype, count)
	for i := range olds {
		if olds[i], err = l.datatype(types.get(i)); err != nil {
			return err
		}
	}
	t, err := mpi.TypeStruct(n[0], n[1], olds)
	return l.create(t, err, newtype, large)
}

// orderFrom is the order of arrays as package mpi has it.
func orderFrom(order int) mpi.Order {
	switch order {
	case MPI_ORDER_C:
		return mpi.OrderC
	case MPI_ORDER_FORTRAN:
		return mpi.OrderFortran
	}
	return -1
}

// TypeCreateSubarray is MPI_Type_create_subarray.
func TypeCreateSubarray(l *Lib, ndims int, sizes, subsizes, starts Ints, order int, oldtype Handle, newtype Handles, large bool) error {
	n, err := dims(ndims, sizes, subsizes, starts)
	if err != nil {
		return err
	}
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	t, err := mpi.TypeSubarray(n[0], n[1], n[2], orderFrom(order), old)
	return l.create(t, err, newtype, large)
}

// distributions are those of package mpi, with their numbers.
var distributions = map[int]mpi.Distribution{
	MPI_DISTRIBUTE_NONE: mpi.DistributeNone, MPI_DISTRIBUTE_BLOCK: mpi.DistributeBlock, MPI_DISTRIBUTE_CYCLIC: mpi.DistributeCyclic,
}

// TypeCreateDarray is MPI_Type_create_darray.
func TypeCreateDarray(l *Lib, size, rank, ndims int, gsizes, distribs, dargs, psizes Ints, order int, oldtype Handle, newtype Handles, large bool) error {
	n, err := dims(ndims, gsizes, distribs, dargs, psizes)
	if err != nil {
		return err
	}
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	if rank < 0 || rank >= size && size > 0 {
		return fail(mpi.ErrRank, "rank %d of %d", rank, size)
	}
	by := make([]mpi.Distribution, ndims)
	for i, d := range n[1] {
		var there bool
		if by[i], there = distributions[d]; !there {
			return fail(mpi.ErrArg, "there is no distribution %d", d)
		}
		switch {
		case n[2][i] == MPI_DISTRIBUTE_DFLT_DARG:
			n[2][i] = mpi.DefaultBlock
		case n[2][i] < 0:
			return fail(mpi.ErrArg, "blocks of %d elements", n[2][i])
		}
	}
	t, err := mpi.TypeDarray(size, rank, n[0], by, n[2], n[3], orderFrom(order), old)
	return l.create(t, err, newtype, large)
}

// TypeCreateResized is MPI_Type_create_resized.
func TypeCreateResized(l *Lib, oldtype Handle, lb, extent int, newtype Handles, large bool) error {
	old, err := l.datatype(oldtype)
	if err != nil {
		return err
	}
	t, err := mpi.TypeResized(old, lb, extent)
	return l.create(t, err, newtype, large)
}

// TypeDup is MPI_Type_dup.
func TypeDup(l *Lib, oldtype Handle, newtype Handles) error {
	old, err := l.datatype(oldtype)
	if err == nil {
		err = l.up()
	}
	if err != nil {
		return err
	}
	t, err := l.proc.TypeDup(old)
	return l.create(t, err, newtype, false)
}

// TypeCommit is MPI_Type_commit.
func TypeCommit(l *Lib, datatype Handles) error {
	t, err := l.datatype(datatype.get(0))
	if err != nil {
		return err
	}
	return t.Commit()
}

// TypeFree is MPI_Type_free.
func TypeFree(l *Lib, datatype Handles) error {
	h := datatype.get(0)
	t, err := l.datatype(h)
	if err == nil {
		err = l.up()
	}
	if err != nil {
		return err
	}
	m := l.types.made.get(h)
	switch {
	case m == nil || m.f90 != nil:
		return fail(mpi.ErrType, "%v is predefined", t)
	case l.types.last(h):
		err = l.proc.TypeFree(t)
	}
	if err == nil {
		l.types.drop(h)
		datatype.set(0, MPI_DATATYPE_NULL)
	}
	return err
}

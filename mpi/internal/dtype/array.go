package dtype

import "slices"

// Order says which index of an array runs fastest in memory.
type Order int

// Orders.
const (
	OrderC       Order = iota // the last one (MPI_ORDER_C)
	OrderFortran              // the first one (MPI_ORDER_FORTRAN)
)

// Subarray is the part of an array of old with the given sizes that has
// subsizes elements from index starts on in each dimension; its extent is that
// of the array (MPI_Type_create_subarray).
func Subarray(sizes, subsizes, starts []int, order Order, old *Type) (*Type, error) {
	n := len(sizes)
	made := Contents{Combiner: CombinerSubarray, Integers: slices.Concat([]int{n}, sizes, subsizes, starts, []int{int(order)}), Types: []*Type{old}}
	if err := checkSubarray(sizes, subsizes, starts, order, old); err != nil {
		return nil, err
	}
	s := old.shape
	for k := range n {
		i := order.dimension(k, n)
		extent := s.extent()
		ub, tooLarge := times(extent, sizes[i])
		at, tooFar := times(extent, starts[i])
		s = s.repeat(subsizes[i], extent).move(at).mark(0, ub)
		if tooLarge || tooFar {
			s.huge = true
			break
		}
	}
	return derived(s, made)
}

// dimension returns the k-th dimension from the fastest one on.
func (o Order) dimension(k, n int) int {
	if o == OrderC {
		return n - 1 - k
	}
	return k
}

func checkSubarray(sizes, subsizes, starts []int, order Order, old *Type) error {
	op := CombinerSubarray.String()
	if err := check(CombinerSubarray, old); err != nil {
		return err
	}
	if len(sizes) < 1 || len(subsizes) != len(sizes) || len(starts) != len(sizes) {
		return fail(InvalidDims, op, "%d sizes, %d subsizes and %d starts: want as many of each, and one at least", len(sizes), len(subsizes), len(starts))
	}
	for i, size := range sizes {
		if size < 1 || subsizes[i] < 1 || subsizes[i] > size || starts[i] < 0 || starts[i] > size-subsizes[i] {
			return fail(InvalidArgument, op, "dimension %d of size %d has no part of size %d at %d", i, size, subsizes[i], starts[i])
		}
	}
	return checkOrder(op, order)
}

func checkOrder(op string, order Order) error {
	if order != OrderC && order != OrderFortran {
		return fail(InvalidArgument, op, "order %d is neither OrderC nor OrderFortran", order)
	}
	return nil
}

// Distribution says how one dimension of an array is spread over processes.
type Distribution int

// Distributions.
const (
	DistributeNone   Distribution = iota // not at all (MPI_DISTRIBUTE_NONE)
	DistributeBlock                      // one block each (MPI_DISTRIBUTE_BLOCK)
	DistributeCyclic                     // blocks in turn (MPI_DISTRIBUTE_CYCLIC)
)

// DefaultBlock stands for the usual size of blocks of a Distribution
// (MPI_DISTRIBUTE_DFLT_DARG).
const DefaultBlock = -1

// Darray is the part that process rank of size has of an array of old with
// sizes gsizes, which is spread over a grid of psizes processes, in row-major
// order whatever the order of the array, by distribs in blocks of dargs
// (MPI_Type_create_darray).
func Darray(size, rank int, gsizes []int, distribs []Distribution, dargs, psizes []int, order Order, old *Type) (*Type, error) {
	n := len(gsizes)
	ints := slices.Concat([]int{size, rank, n}, gsizes)
	for _, d := range distribs {
		ints = append(ints, int(d))
	}
	made := Contents{Combiner: CombinerDarray, Integers: slices.Concat(ints, dargs, psizes, []int{int(order)}), Types: []*Type{old}}
	if err := checkDarray(size, rank, gsizes, distribs, dargs, psizes, order, old); err != nil {
		return nil, err
	}
	coords := make([]int, n)
	for i, rest := n-1, rank; i >= 0; i-- {
		coords[i] = rest % psizes[i]
		rest /= psizes[i]
	}
	s := old.shape
	for k := range n {
		i := order.dimension(k, n)
		s = s.cyclic(blockSize(distribs[i], dargs[i], gsizes[i], psizes[i]), gsizes[i], coords[i], psizes[i])
	}
	return derived(s, made)
}

// cyclic is what process r of n has of size copies side by side that are dealt
// out in turn in blocks of b (MPI 4.1, section 5.1.4).
func (s shape) cyclic(b, size, r, n int) shape {
	extent := s.extent()
	ub, huge := times(extent, size)
	if huge || s.huge { // all else is smaller
		return shape{align: 1, of: Derived, huge: true}
	}
	if n == 1 { // every block is its
		return s.repeat(size, extent).mark(0, ub)
	}
	full, rest := size/b, size%b
	mine := full / n
	if r < full%n {
		mine++
	}
	parts := []shape{s.repeat(b, extent).repeat(mine, n*b*extent).move(r * b * extent)}
	if rest > 0 && full%n == r { // the last block, which is shorter
		parts = append(parts, s.repeat(rest, extent).move(full*b*extent))
	}
	return join(parts).mark(0, ub)
}

// blockSize returns the size of the blocks, at most that of the array.
func blockSize(d Distribution, darg, gsize, psize int) int {
	switch {
	case d == DistributeNone:
		return gsize
	case darg != DefaultBlock:
		return min(darg, gsize)
	case d == DistributeBlock:
		return (gsize-1)/psize + 1
	}
	return 1
}

func checkDarray(size, rank int, gsizes []int, distribs []Distribution, dargs, psizes []int, order Order, old *Type) error {
	op := CombinerDarray.String()
	if err := check(CombinerDarray, old); err != nil {
		return err
	}
	n := len(gsizes)
	if n < 1 || len(distribs) != n || len(dargs) != n || len(psizes) != n {
		return fail(InvalidDims, op, "%d sizes, %d distributions, %d arguments and %d sizes of the grid: want as many of each, and one at least", n, len(distribs), len(dargs), len(psizes))
	}
	procs := 1
	for i := range n {
		if gsizes[i] < 1 || psizes[i] < 1 {
			return fail(InvalidArgument, op, "dimension %d has size %d and %d processes: want 1 or more of each", i, gsizes[i], psizes[i])
		}
		if detail := misfit(distribs[i], dargs[i], gsizes[i], psizes[i]); detail != "" {
			return fail(InvalidArgument, op, "dimension %d: %s", i, detail)
		}
		procs, _ = times(procs, psizes[i])
	}
	if procs != size || rank < 0 || rank >= size {
		return fail(InvalidArgument, op, "rank %d of %d does not fit a grid of %d processes", rank, size, procs)
	}
	return checkOrder(op, order)
}

func misfit(d Distribution, darg, gsize, psize int) string {
	_, huge := times(darg, psize)
	switch {
	case d == DistributeNone && psize != 1:
		return "it is not distributed, so the grid must have 1 process there"
	case d == DistributeNone:
		return ""
	case d != DistributeBlock && d != DistributeCyclic:
		return "there is no such distribution"
	case darg != DefaultBlock && darg < 1:
		return "the size of its blocks must be 1 or more, or DefaultBlock"
	case d == DistributeBlock && darg != DefaultBlock && !huge && darg*psize < gsize:
		return "its blocks are too small: one per process does not cover the array"
	}
	return ""
}

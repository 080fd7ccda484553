package capi

import (
	"slices"

	"github.com/xwarp/xwarp/mpi"
)

// combiners are the numbers of the calls that make datatypes.
var combiners = [...]int{
	mpi.CombinerNamed: MPI_COMBINER_NAMED, mpi.CombinerDup: MPI_COMBINER_DUP, mpi.CombinerContiguous: MPI_COMBINER_CONTIGUOUS,
	mpi.CombinerVector: MPI_COMBINER_VECTOR, mpi.CombinerHvector: MPI_COMBINER_HVECTOR, mpi.CombinerIndexed: MPI_COMBINER_INDEXED,
	mpi.CombinerHindexed: MPI_COMBINER_HINDEXED, mpi.CombinerIndexedBlock: MPI_COMBINER_INDEXED_BLOCK,
	mpi.CombinerHindexedBlock: MPI_COMBINER_HINDEXED_BLOCK, mpi.CombinerStruct: MPI_COMBINER_STRUCT,
	mpi.CombinerSubarray: MPI_COMBINER_SUBARRAY, mpi.CombinerDarray: MPI_COMBINER_DARRAY, mpi.CombinerResized: MPI_COMBINER_RESIZED,
}

// contents tells how a datatype was made. Of one that was made with large counts, these are
// apart from the integers.
type contents struct {
	combiner                    int
	integers, addresses, counts []int
	types                       []mpi.Datatype
}

func (l *Lib) contents(h Handle) (contents, error) {
	t, err := l.datatype(h)
	if err != nil {
		return contents{}, err
	}
	m := l.types.made.get(h)
	if m != nil && m.f90 != nil {
		return m.f90.contents(), nil
	}
	c, err := t.Contents()
	if err != nil {
		return contents{}, err
	}
	got := contents{combiner: combiners[c.Combiner], integers: c.Integers, addresses: c.Addresses, types: c.Types}
	if c.Combiner == mpi.CombinerSubarray || c.Combiner == mpi.CombinerDarray {
		translate(c.Combiner, c.Integers)
	}
	if m != nil && m.large {
		got.split(c.Combiner)
	}
	return got, nil
}

// translate makes constants of package mpi those of the program.
func translate(by mpi.Combiner, integers []int) {
	order := &integers[len(integers)-1]
	if mpi.Order(*order) == mpi.OrderFortran {
		*order = MPI_ORDER_FORTRAN
	} else {
		*order = MPI_ORDER_C
	}
	if by != mpi.CombinerDarray {
		return
	}
	n := integers[2]
	for i := range n {
		d, arg := &integers[3+n+i], &integers[3+2*n+i]
		for number, is := range distributions {
			if int(is) == *d {
				*d = number
				break
			}
		}
		if *arg == mpi.DefaultBlock {
			*arg = MPI_DISTRIBUTE_DFLT_DARG
		}
	}
}

// split moves what is large from the integers and the addresses.
func (c *contents) split(by mpi.Combiner) {
	all := c.integers
	switch by {
	case mpi.CombinerSubarray:
		last := len(all) - 1
		c.integers, c.counts = []int{all[0], all[last]}, all[1:last]
	case mpi.CombinerDarray:
		n := all[2]
		c.integers, c.counts = slices.Concat(all[:3], all[3+n:]), all[3:3+n]
	default:
		c.counts = slices.Concat(all, c.addresses)
		c.integers, c.addresses = nil, nil
	}
}

// TypeGetEnvelope is MPI_Type_get_envelope.
func TypeGetEnvelope(l *Lib, datatype Handle, integers, addresses, datatypes, combiner Ints) error {
	c, err := l.small(datatype)
	if err == nil {
		c.envelope(integers, addresses, Ints{}, datatypes, combiner)
	}
	return err
}

// TypeGetEnvelopeC is MPI_Type_get_envelope_c.
func TypeGetEnvelopeC(l *Lib, datatype Handle, integers, addresses, counts, datatypes, combiner Ints) error {
	c, err := l.contents(datatype)
	if err == nil {
		c.envelope(integers, addresses, counts, datatypes, combiner)
	}
	return err
}

func (c *contents) envelope(integers, addresses, counts, datatypes, combiner Ints) {
	integers.set(0, len(c.integers))
	addresses.set(0, len(c.addresses))
	counts.set(0, len(c.counts))
	datatypes.set(0, len(c.types))
	combiner.set(0, c.combiner)
}

// small is contents without large counts.
func (l *Lib) small(h Handle) (contents, error) {
	c, err := l.contents(h)
	if err == nil && len(c.counts) > 0 {
		err = fail(mpi.ErrType, "the datatype was made with large counts: ask the function with _c at its end")
	}
	return c, err
}

// TypeGetContents is MPI_Type_get_contents.
func TypeGetContents(l *Lib, datatype Handle, maxIntegers, maxAddresses, maxTypes int, integers, addresses Ints, types Handles) error {
	c, err := l.small(datatype)
	if err != nil {
		return err
	}
	return l.tell(&c, [...]int{maxIntegers, maxAddresses, 0, maxTypes}, integers, addresses, Ints{}, types)
}

// TypeGetContentsC is MPI_Type_get_contents_c.
func TypeGetContentsC(l *Lib, datatype Handle, maxIntegers, maxAddresses, maxCounts, maxTypes int, integers, addresses, counts Ints, types Handles) error {
	c, err := l.contents(datatype)
	if err != nil {
		return err
	}
	return l.tell(&c, [...]int{maxIntegers, maxAddresses, maxCounts, maxTypes}, integers, addresses, counts, types)
}

func (l *Lib) tell(c *contents, room [4]int, integers, addresses, counts Ints, types Handles) error {
	if c.combiner == MPI_COMBINER_NAMED {
		return fail(mpi.ErrType, "the datatype is predefined: nothing has made it")
	}
	for i, n := range [...]int{len(c.integers), len(c.addresses), len(c.counts), len(c.types)} {
		if room[i] < 0 {
			return fail(mpi.ErrArg, "room for %d", room[i])
		}
		if n > room[i] {
			return fail(mpi.ErrOther, "there is room for %d and there are %d: MPI_Type_get_envelope tells how many", room[i], n)
		}
	}
	if len(c.integers) > 0 && integers.null() || len(c.addresses) > 0 && addresses.null() || len(c.counts) > 0 && counts.null() {
		return fail(mpi.ErrArg, "the address of an array is NULL")
	}
	if err := types.there("datatypes", len(c.types)); err != nil {
		return err
	}
	for i, v := range c.integers {
		integers.set(i, v)
	}
	for i, v := range c.addresses {
		addresses.set(i, v)
	}
	for i, v := range c.counts {
		counts.set(i, v)
	}
	for i, t := range c.types {
		types.set(i, l.types.handle(t, false))
	}
	return nil
}

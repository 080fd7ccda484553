package dtype

import "slices"

// Combiner names the constructor that made a type (MPI 4.1, section 5.1.13).
type Combiner int

// Combiners.
const (
	CombinerNamed Combiner = iota // a predefined type
	CombinerDup
	CombinerContiguous
	CombinerVector
	CombinerHvector
	CombinerIndexed
	CombinerHindexed
	CombinerIndexedBlock
	CombinerHindexedBlock
	CombinerStruct
	CombinerSubarray
	CombinerDarray
	CombinerResized
)

var combinerNames = [...]string{
	CombinerNamed: "named", CombinerDup: "Type_dup", CombinerContiguous: "Type_contiguous",
	CombinerVector: "Type_vector", CombinerHvector: "Type_create_hvector", CombinerIndexed: "Type_indexed",
	CombinerHindexed: "Type_create_hindexed", CombinerIndexedBlock: "Type_create_indexed_block",
	CombinerHindexedBlock: "Type_create_hindexed_block", CombinerStruct: "Type_create_struct",
	CombinerSubarray: "Type_create_subarray", CombinerDarray: "Type_create_darray", CombinerResized: "Type_create_resized",
}

func (c Combiner) String() string { return combinerNames[c] }

// Contents tells how a type was made: by which constructor and from which
// arguments, in the order of MPI_Type_get_contents (MPI 4.1, section 5.1.13).
// The lengths of the slices are the envelope (MPI_Type_get_envelope).
type Contents struct {
	Combiner  Combiner
	Integers  []int // counts, lengths, and displacements in elements
	Addresses []int // displacements and extents in bytes
	Types     []*Type
}

// Contents returns how t was made. The slices belong to the caller.
func (t *Type) Contents() Contents {
	c := t.made
	c.Integers = slices.Clone(c.Integers)
	c.Addresses = slices.Clone(c.Addresses)
	c.Types = slices.Clone(c.Types)
	return c
}

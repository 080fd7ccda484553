package mpi

import "github.com/xwarp/xwarp/mpi/internal/dtype"

// Combiner names the call that made a datatype (MPI 4.1, section 5.1.13).
type Combiner int

// Combiners.
const (
	CombinerNamed         = Combiner(dtype.CombinerNamed) // a predefined datatype
	CombinerDup           = Combiner(dtype.CombinerDup)
	CombinerContiguous    = Combiner(dtype.CombinerContiguous)
	CombinerVector        = Combiner(dtype.CombinerVector)
	CombinerHvector       = Combiner(dtype.CombinerHvector)
	CombinerIndexed       = Combiner(dtype.CombinerIndexed)
	CombinerHindexed      = Combiner(dtype.CombinerHindexed)
	CombinerIndexedBlock  = Combiner(dtype.CombinerIndexedBlock)
	CombinerHindexedBlock = Combiner(dtype.CombinerHindexedBlock)
	CombinerStruct        = Combiner(dtype.CombinerStruct)
	CombinerSubarray      = Combiner(dtype.CombinerSubarray)
	CombinerDarray        = Combiner(dtype.CombinerDarray)
	CombinerResized       = Combiner(dtype.CombinerResized)
)

// TypeContents tells how a datatype was made: by which call and from which
// arguments, in the order of MPI_Type_get_contents (MPI 4.1, section 5.1.13). The
// lengths of the slices are the envelope (MPI_Type_get_envelope).
type TypeContents struct {
	Combiner  Combiner
	Integers  []int // counts, lengths, and displacements in elements
	Addresses []int // displacements and extents in bytes
	Types     []Datatype
}

// Contents returns how the datatype was made. The slices belong to the caller.
func (t Datatype) Contents() (TypeContents, error) {
	if t.t == nil {
		return TypeContents{}, fail(ErrType, "Datatype.Contents", "there is no datatype")
	}
	c := t.t.Contents()
	types := make([]Datatype, len(c.Types))
	for i, old := range c.Types {
		types[i] = Datatype{old}
	}
	return TypeContents{Combiner(c.Combiner), c.Integers, c.Addresses, types}, nil
}

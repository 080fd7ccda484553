// Package dtype holds the datatypes of MPI (MPI 4.1, chapter 5) and the
// reductions over them (section 6.9): bytes and counts in, bytes out.
//
// A [Type] says where in memory the elements of a message lie. It is made from
// the predefined ones by the constructors ([Vector], [Struct], ...), and is
// translated right there into a small program of nested loops, in which what
// lies side by side is merged. So a vector of a million blocks is one loop, and
// a matrix that happens to be dense is one block.
//
// A [Cursor] runs that program over a buffer, any number of bytes at a time and
// from any position: it packs, unpacks, or lists the contiguous pieces for
// callers that gather by themselves. [Op.On] gives the loop that reduces vectors
// of a type.
//
// All displacements, extents, sizes and counts are of type int, which has 64
// bits on the machines that this runs on: they stand for MPI_Aint, MPI_Offset
// and MPI_Count.
package dtype

package dtype_test

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// A column of a matrix of 3 rows and 4 columns, packed three bytes at a time,
// as if frames were that short.
func ExampleCursor() {
	matrix := []int32{
		11, 12, 13, 14,
		21, 22, 23, 24,
		31, 32, 33, 34,
	}
	column, err := dtype.Vector(3, 1, 4, dtype.Int)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := column.Cursor(mem.BytesOf(matrix[2:]), 0, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	packed := mem.BytesOf(make([]int32, 3))
	for at := 0; c.Rest() > 0; at = c.Pos() {
		c.Pack(packed[at:min(at+3, len(packed))])
	}
	fmt.Println(mem.ScalarsOf[int32](packed))
	// Output: [13 23 33]
}

// The elements of a structure with a hole, as pieces of memory.
func ExampleCursor_Pieces() {
	particle, err := dtype.Struct([]int{3, 1}, []int{0, 32}, []*dtype.Type{dtype.Double, dtype.Int})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := particle.Cursor(make([]byte, 80), 0, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var pieces [8]dtype.Piece
	n := c.Pieces(pieces[:], c.Len())
	fmt.Println(pieces[:n])
	// Output: [{0 24} {32 4} {40 24} {72 4}]
}

func ExampleOp_On() {
	r, err := dtype.Maxloc.On(dtype.TwoInt)
	if err != nil {
		fmt.Println(err)
		return
	}
	in, inout := []int32{7, 0, 5, 0}, []int32{3, 1, 5, 1}
	r.Apply(mem.BytesOf(in), mem.BytesOf(inout), 2)
	fmt.Println(inout)
	_, err = dtype.Sum.On(dtype.TwoInt)
	fmt.Println(err)
	// Output:
	// [7 0 5 0]
	// datatype: Reduce: invalid operation: MPI_SUM is not for MPI_2INT
}

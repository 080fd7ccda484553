package mpi_test

import (
	"fmt"

	"github.com/xwarp/xwarp/mpi"
)

// A column of a matrix goes to another rank, which keeps it as a row: the elements
// are the same, only where they lie is not.
func ExampleTypeVector() {
	on(2, func(c *mpi.Comm) error {
		const rows, columns = 3, 4
		column, err := mpi.TypeVector(rows, 1, columns, mpi.TypeDouble)
		if err != nil {
			return err
		}
		if err := column.Commit(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			matrix := []float64{
				11, 12, 13, 14,
				21, 22, 23, 24,
				31, 32, 33, 34,
			}
			return c.Send(mpi.Typed(matrix[2:], 1, column), 1, 0)
		}
		row := make([]float64, rows)
		_, err = mpi.Recv(c, row, 0, 0)
		fmt.Println(row)
		return err
	})
	// Output: [13 23 33]
}

// Structures are communicated as they are, as long as they hold no pointers.
func ExampleTypeOf() {
	type particle struct {
		Position [3]float64
		Charge   int8
	}
	on(2, func(c *mpi.Comm) error {
		plain, err := mpi.TypeOf[particle]()
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			leaving := []particle{{[3]float64{1, 2, 3}, -1}, {[3]float64{4, 5, 6}, 1}}
			return c.Send(plain.Slice(leaving), 1, 0)
		}
		coming := make([]particle, 10)
		st, err := c.Recv(plain.Slice(coming), 0, 0)
		fmt.Println(coming[:st.Count(plain.Type())])
		return err
	})
	// Output: [{[1 2 3] -1} {[4 5 6] 1}]
}

// Which rank has the largest value?
func ExamplePair() {
	on(4, func(c *mpi.Comm) error {
		plain, err := mpi.TypeOf[mpi.Pair[float64]]()
		if err != nil {
			return err
		}
		found := []mpi.Pair[float64]{{Value: float64(7 * c.Rank() % 5), Index: int32(c.Rank())}}
		if err := c.Allreduce(mpi.Data{}, plain.Slice(found), mpi.OpMaxloc); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("%v on rank %d\n", found[0].Value, found[0].Index)
		}
		return nil
	})
	// Output: 4 on rank 2
}

// The rows of a matrix are spread over the ranks; transposed, so are its columns.
// Nobody packs anything: rank j gets the columns that will be its rows.
func ExampleComm_Alltoall() {
	on(2, func(c *mpi.Comm) error {
		const n = 4
		rows := n / c.Size()
		// An element for a rank is one column of my rows. The extent of a double
		// makes the next element begin at the next column.
		column, err := mpi.TypeVector(rows, 1, n, mpi.TypeDouble)
		if err == nil {
			column, err = mpi.TypeResized(column, 0, 8)
		}
		if err == nil {
			err = column.Commit()
		}
		// What comes from a rank is a block of my rows, one row after the other.
		block, err2 := mpi.TypeVector(rows, rows, n, mpi.TypeDouble)
		if err2 == nil {
			block, err2 = mpi.TypeResized(block, 0, 8*rows)
		}
		if err2 == nil {
			err2 = block.Commit()
		}
		if err != nil || err2 != nil {
			return fmt.Errorf("%v, %v", err, err2)
		}
		mine, transposed := make([]float64, rows*n), make([]float64, rows*n)
		for i := range mine {
			mine[i] = float64(10*(c.Rank()*rows+i/n+1) + i%n + 1) // 11, 12, ... in row 1
		}
		if err := c.Alltoall(mpi.Typed(mine, n, column), mpi.Typed(transposed, c.Size(), block)); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println(transposed[:n])
			fmt.Println(transposed[n:])
		}
		return nil
	})
	// Output:
	// [13 23 33 43]
	// [14 24 34 44]
}

// An operation on structures, for which the order of the ranks matters.
func ExamplePlain_Operation() {
	type span struct{ First, Last int32 }
	on(3, func(c *mpi.Comm) error {
		plain, err := mpi.TypeOf[span]()
		if err != nil {
			return err
		}
		join, err := plain.Operation(func(in, inout []span) {
			for i := range inout {
				inout[i].First = in[i].First
			}
		}, false)
		if err != nil {
			return err
		}
		me := int32(c.Rank())
		whole := []span{{10 * me, 10*me + 9}}
		if err := c.Allreduce(mpi.Data{}, plain.Slice(whole), join); err != nil {
			return err
		}
		if me == 0 {
			fmt.Println(whole[0])
		}
		return nil
	})
	// Output: {0 29}
}

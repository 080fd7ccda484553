package mpi_test

import (
	"fmt"

	"github.com/xwarp/xwarp/mpi"
)

// Every rank adds what it knows; all of them get the sum.
func ExampleAllreduce() {
	err := mpi.Run(4, func(p *mpi.Proc) error {
		c := p.World()
		mine, sum := []int{c.Rank() + 1}, make([]int, 1)
		if err := mpi.Allreduce(c, mine, sum, mpi.Sum); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("sum:", sum[0])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: sum: 10
}

// A rank passes a token on to its right neighbour.
func ExampleSendrecv() {
	err := mpi.Run(3, func(p *mpi.Proc) error {
		c := p.World()
		right, left := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		token := make([]int32, 1)
		st, err := mpi.Sendrecv(c, []int32{int32(c.Rank())}, right, 0, token, left, mpi.AnyTag)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("rank %d sent %d in %d element\n", st.Source, token[0], mpi.Count[int32](st))
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: rank 2 sent 2 in 1 element
}

// Probe finds out how long a message is before there is memory for it.
func ExampleComm_Probe() {
	err := mpi.Run(2, func(p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 1 {
			return mpi.Send(c, []float64{3, 1, 4, 1, 5}, 0, 7)
		}
		st, err := c.Probe(mpi.AnySource, mpi.AnyTag)
		if err != nil {
			return err
		}
		v := make([]float64, mpi.Count[float64](st))
		if _, err := mpi.Recv(c, v, st.Source, st.Tag); err != nil {
			return err
		}
		fmt.Println(v)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [3 1 4 1 5]
}

// Communication and computation side by side.
func ExampleIrecv() {
	err := mpi.Run(2, func(p *mpi.Proc) error {
		c := p.World()
		other := 1 - c.Rank()
		halo, edge := make([]float32, 1000), make([]float32, 1000)
		in, err := mpi.Irecv(c, halo, other, 0)
		if err != nil {
			return err
		}
		out, err := mpi.Isend(c, edge, other, 0)
		if err != nil {
			return err
		}
		// ... compute what needs no halo ...
		return mpi.Waitall([]mpi.Request{in, out})
	})
	fmt.Println(err)
	// Output: <nil>
}

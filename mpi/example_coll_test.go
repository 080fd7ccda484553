package mpi_test

import (
	"fmt"
	"math"

	"github.com/xwarp/xwarp/mpi"
)

// on runs an example on n ranks and prints what goes wrong.
func on(n int, body func(c *mpi.Comm) error) {
	if err := mpi.Run(n, func(p *mpi.Proc) error { return body(p.World()) }); err != nil {
		fmt.Println(err)
	}
}

// One rank knows the parameters, all need them.
func ExampleBcast() {
	on(3, func(c *mpi.Comm) error {
		params := make([]float64, 2)
		if c.Rank() == 0 {
			params = []float64{0.5, 100}
		}
		if err := mpi.Bcast(c, params, 0); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(params)
		}
		return nil
	})
	// Output: [0.5 100]
}

// Rank 0 collects what everybody found. Not all have found the same number of
// things, so they tell one another first.
func ExampleGatherv() {
	on(3, func(c *mpi.Comm) error {
		found := make([]int, c.Rank()+1)
		for i := range found {
			found[i] = 10*c.Rank() + i
		}
		counts := make([]int, c.Size())
		if err := mpi.Gather(c, []int{len(found)}, counts, 0); err != nil {
			return err
		}
		total := 0
		for _, n := range counts {
			total += n
		}
		all := make([]int, total)
		if err := mpi.Gatherv(c, found, all, counts, nil, 0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(counts, all)
		}
		return nil
	})
	// Output: [1 2 3] [0 10 11 20 21 22]
}

// A matrix that has a row on each rank is transposed.
func ExampleAlltoall() {
	on(3, func(c *mpi.Comm) error {
		row := []int{10 * c.Rank(), 10*c.Rank() + 1, 10*c.Rank() + 2}
		column := make([]int, 3)
		if err := mpi.Alltoall(c, row, column); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println(column)
		}
		return nil
	})
	// Output: [1 11 21]
}

// Every rank gets its place in a list that all of them write together.
func ExampleExscan() {
	on(4, func(c *mpi.Comm) error {
		mine, begin := []int{3 * (c.Rank() + 1)}, make([]int, 1)
		if err := mpi.Exscan(c, mine, begin, mpi.Sum); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println("rank 3 writes from", begin[0], "on")
		}
		return nil
	})
	// Output: rank 3 writes from 18 on
}

// The sum goes round while the rank does something else.
func ExampleIallreduce() {
	on(4, func(c *mpi.Comm) error {
		norm := []float64{float64(c.Rank() * c.Rank())}
		r, err := mpi.Iallreduce(c, nil, norm, mpi.Sum)
		if err != nil {
			return err
		}
		// ... compute what does not need the norm ...
		if _, err := r.Wait(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("%.3f\n", math.Sqrt(norm[0]))
		}
		return nil
	})
	// Output: 3.742
}

// What is done in every step of a simulation is prepared once.
func ExamplePersistent() {
	on(3, func(c *mpi.Comm) error {
		step, latest := []int{0}, make([]int, 1)
		slowest, err := mpi.AllreduceInit(c, step, latest, mpi.Min)
		if err != nil {
			return err
		}
		for range 5 {
			step[0] += c.Rank() + 1
			r, err := slowest.Start()
			if err != nil {
				return err
			}
			if _, err := r.Wait(); err != nil {
				return err
			}
		}
		if c.Rank() == 2 {
			fmt.Println("the slowest rank is at", latest[0])
		}
		return slowest.Free()
	})
	// Output: the slowest rank is at 5
}

// Neighbours in a ring of ranks exchange the edges of their parts.
func ExampleNeighborAlltoall() {
	on(4, func(c *mpi.Comm) error {
		ring, err := c.CartCreate([]int{4}, []bool{true}, false)
		if err != nil {
			return err
		}
		edges := []int{10 * ring.Rank(), 10*ring.Rank() + 9} // lower, upper
		halo := make([]int, 2)
		if err := mpi.NeighborAlltoall(ring, edges, halo); err != nil {
			return err
		}
		if ring.Rank() == 2 {
			fmt.Println(halo)
		}
		return nil
	})
	// Output: [19 30]
}

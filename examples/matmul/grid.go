package main

import (
	"errors"
	"math/rand/v2"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

// grid is how matrices of n x n numbers are spread: each rank has a block of each.
type grid struct {
	comm, row, column *mpi.Comm // all ranks; those in one row; those in one column
	dims, at          []int     // of the grid, and of this rank in it
	n                 int
	top, bottom       int // rows of the blocks of this rank
	left, right       int // columns
}

func newGrid(comm *mpi.Comm, n int) (*grid, error) {
	g := &grid{n: n, dims: make([]int, 2)}
	if err := mpi.DimsCreate(comm.Size(), g.dims); err != nil {
		return nil, err
	}
	var err error
	if g.comm, err = comm.CartCreate(g.dims, []bool{false, false}, true); err != nil {
		return nil, err
	}
	if g.at, err = g.comm.CartCoords(g.comm.Rank()); err != nil {
		return nil, err
	}
	if g.row, err = g.comm.CartSub(false, true); err != nil {
		return nil, err
	}
	if g.column, err = g.comm.CartSub(true, false); err != nil {
		return nil, err
	}
	g.top, g.bottom = job.Part(n, g.dims[0], g.at[0])
	g.left, g.right = job.Part(n, g.dims[1], g.at[1])
	return g, nil
}

func (g *grid) rows() int { return g.bottom - g.top }
func (g *grid) cols() int { return g.right - g.left }

// matrix returns the block of this rank, row by row.
func (g *grid) matrix() []float64 { return make([]float64, g.rows()*g.cols()) }

// fill makes numbers from 0 to 9 that depend on their place in the matrix only.
func (g *grid) fill(m []float64, seed uint64) {
	for i := range g.rows() {
		rng := rand.New(rand.NewPCG(seed, uint64(g.top+i)))
		for j := range g.right {
			if v := rng.IntN(10); j >= g.left {
				m[i*g.cols()+j-g.left] = float64(v)
			}
		}
	}
}

// multiply adds a times b to c.
func (g *grid) multiply(c, a, b []float64, panel int) error {
	wide, high := make([]float64, g.rows()*panel), make([]float64, panel*g.cols())
	for k := 0; k < g.n; {
		ownerA, endA := owner(g.n, g.dims[1], k)
		ownerB, endB := owner(g.n, g.dims[0], k)
		n := min(panel, endA-k, endB-k)
		pa, pb := wide[:g.rows()*n], high[:n*g.cols()]
		if g.at[1] == ownerA {
			for i := range g.rows() {
				copy(pa[i*n:(i+1)*n], a[i*g.cols()+k-g.left:])
			}
		}
		if g.at[0] == ownerB {
			copy(pb, b[(k-g.top)*g.cols():])
		}
		if err := mpi.Bcast(g.row, pa, ownerA); err != nil {
			return err
		}
		if err := mpi.Bcast(g.column, pb, ownerB); err != nil {
			return err
		}
		g.add(c, pa, pb, n)
		k += n
	}
	return nil
}

// owner returns which of the parts of n things has thing k, and where it ends.
func owner(n, parts, k int) (part, end int) {
	for {
		if _, end = job.Part(n, parts, part); k < end {
			return part, end
		}
		part++
	}
}

// add adds the product of a panel of n columns and one of n rows to c.
func (g *grid) add(c, a, b []float64, n int) {
	cols := g.cols()
	for i := range g.rows() {
		sum := c[i*cols : (i+1)*cols]
		for k, v := range a[i*n : (i+1)*n] {
			for j, w := range b[k*cols : (k+1)*cols] {
				sum[j] += v * w
			}
		}
	}
}

// times returns m x on all ranks. x and the result are whole vectors.
func (g *grid) times(m, x []float64) ([]float64, error) {
	y := make([]float64, g.n)
	cols := g.cols()
	for i := range g.rows() {
		for j, v := range m[i*cols : (i+1)*cols] {
			y[g.top+i] += v * x[g.left+j]
		}
	}
	return y, mpi.Allreduce(g.comm, nil, y, mpi.Sum)
}

// verify checks that c is a times b.
func (g *grid) verify(c, a, b []float64) error {
	x := make([]float64, g.n)
	for i := range x {
		x[i] = float64((i*i + i/7) % 10)
	}
	bx, err := g.times(b, x)
	if err != nil {
		return err
	}
	want, err := g.times(a, bx)
	if err != nil {
		return err
	}
	got, err := g.times(c, x)
	if err != nil {
		return err
	}
	for i := range got {
		if got[i] != want[i] {
			return errors.New("wrong: the product is not that of the two matrices")
		}
	}
	return nil
}

package main

import (
	"errors"
	"math/rand/v2"

	"github.com/xwarp/xwarp/mpi"
)

// matrix is one whose blocks lie in a window, dealt out to the ranks one by one. All ranks
// know where each is.
type matrix struct {
	comm   *mpi.Comm
	w      *mpi.Win
	mine   []float64 // the blocks of this rank, one behind the other, each by rows
	blocks int       // along an edge
	size   int       // rows and columns of a block
	index  []int     // of blocks, by rows of the matrix: their numbers; -1 is zero
	count  int
}

// newMatrix makes a matrix with random blocks in random places.
func newMatrix(comm *mpi.Comm, o options, seed uint64) (*matrix, error) {
	m := &matrix{comm: comm, blocks: o.blocks, size: o.size, index: make([]int, o.blocks*o.blocks)}
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range m.index {
		m.number(i, rng.Float64() < o.fill)
	}
	err := m.allocate()
	rng = rand.New(rand.NewPCG(seed, uint64(comm.Rank()+1)))
	for i := range m.mine {
		m.mine[i] = float64(rng.IntN(9) - 4)
	}
	return m, err
}

// newProduct makes a matrix of zeroes that has the blocks which a product has.
func newProduct(comm *mpi.Comm, a, b *matrix) (*matrix, error) {
	m := &matrix{comm: comm, blocks: a.blocks, size: a.size, index: make([]int, len(a.index))}
	for i := range m.index {
		row, col, any := i/m.blocks, i%m.blocks, false
		for k := range m.blocks {
			any = any || a.at(row, k) >= 0 && b.at(k, col) >= 0
		}
		m.number(i, any)
	}
	return m, m.allocate()
}

func (m *matrix) number(i int, there bool) {
	m.index[i] = -1
	if there {
		m.index[i] = m.count
		m.count++
	}
}

// allocate makes the window, and begins the epoch in which all is done.
func (m *matrix) allocate() (err error) {
	n := (m.count + m.comm.Size() - 1 - m.comm.Rank()) / m.comm.Size()
	if m.w, m.mine, err = mpi.WinAllocate[float64](m.comm, n*m.size*m.size, nil); err != nil {
		return err
	}
	return m.w.LockAll(mpi.ModeNoCheck)
}

func (m *matrix) close() error { return errors.Join(m.w.UnlockAll(), m.w.Free()) }

// at returns the number of a block, -1 if it is zero.
func (m *matrix) at(row, col int) int { return m.index[row*m.blocks+col] }

// place returns the rank that has a block, and where.
func (m *matrix) place(number int) (rank, disp int) {
	return number % m.comm.Size(), number / m.comm.Size() * m.size * m.size
}

// times returns the product of the matrix and a vector: each rank multiplies what it has.
func (m *matrix) times(x []float64) ([]float64, error) {
	y := make([]float64, len(x))
	for i, number := range m.index {
		rank, disp := m.place(max(number, 0))
		if number < 0 || rank != m.comm.Rank() {
			continue
		}
		in, out := x[i%m.blocks*m.size:][:m.size], y[i/m.blocks*m.size:][:m.size]
		for r := range out {
			for c, v := range m.mine[disp+r*m.size:][:m.size] {
				out[r] += v * in[c]
			}
		}
	}
	return y, mpi.Allreduce(m.comm, nil, y, mpi.Sum)
}

// verify checks c = a b with a vector, on all ranks alike.
func verify(a, b, c *matrix) error {
	x := make([]float64, a.blocks*a.size)
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range x {
		x[i] = float64(rng.IntN(15) - 7)
	}
	bx, err := b.times(x)
	if err != nil {
		return err
	}
	want, err := a.times(bx)
	if err != nil {
		return err
	}
	got, err := c.times(x)
	if err != nil {
		return err
	}
	for i := range want {
		if got[i] != want[i] {
			return errors.New("wrong: the product times a vector is not what it should be")
		}
	}
	return nil
}

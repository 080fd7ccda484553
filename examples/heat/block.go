package main

import (
	"math"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

// block is the part of the plate that a rank has: rows x cols points, with a
// frame of one point around them for those of the neighbours.
type block struct {
	comm         *mpi.Comm // a grid of ranks
	dims         []int     // of the grid
	points       int       // along an edge of the plate
	top, left    int       // of the first point, in the plate
	rows, cols   int
	up, down     int // neighbours, or mpi.ProcNull
	west, east   int
	u, next      []float64
	sent, gotten [2][]float64 // columns
}

func newBlock(comm *mpi.Comm, points int) (*block, error) {
	b := &block{points: points, dims: make([]int, 2)}
	if err := mpi.DimsCreate(comm.Size(), b.dims); err != nil {
		return nil, err
	}
	var err error
	if b.comm, err = comm.CartCreate(b.dims, []bool{false, false}, true); err != nil {
		return nil, err
	}
	b.top, b.left, b.rows, b.cols, err = b.place(b.comm.Rank())
	if err != nil {
		return nil, err
	}
	if b.up, b.down, err = b.comm.CartShift(0, 1); err != nil {
		return nil, err
	}
	if b.west, b.east, err = b.comm.CartShift(1, 1); err != nil {
		return nil, err
	}
	b.u = make([]float64, (b.rows+2)*(b.cols+2))
	b.next = make([]float64, len(b.u))
	for i := range b.sent {
		b.sent[i], b.gotten[i] = make([]float64, b.rows), make([]float64, b.rows)
	}
	return b, nil
}

// place returns where the block of a rank is.
func (b *block) place(rank int) (top, left, rows, cols int, err error) {
	at, err := b.comm.CartCoords(rank)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	top, bottom := job.Part(b.points, b.dims[0], at[0])
	left, right := job.Part(b.points, b.dims[1], at[1])
	return top, left, bottom - top, right - left, nil
}

// row returns the points of row i, from -1 to rows, without the frame.
func (b *block) row(i int) []float64 {
	at := (i+1)*(b.cols+2) + 1
	return b.u[at : at+b.cols]
}

// exchange fills the frame with the edges of the neighbours' blocks.
func (b *block) exchange() error {
	const northward, southward, westward, eastward = 0, 1, 2, 3
	if _, err := mpi.Sendrecv(b.comm, b.row(0), b.up, northward, b.row(b.rows), b.down, northward); err != nil {
		return err
	}
	if _, err := mpi.Sendrecv(b.comm, b.row(b.rows-1), b.down, southward, b.row(-1), b.up, southward); err != nil {
		return err
	}
	stride := b.cols + 2
	for i := range b.rows {
		b.sent[0][i], b.sent[1][i] = b.u[(i+1)*stride+1], b.u[(i+1)*stride+b.cols]
	}
	if _, err := mpi.Sendrecv(b.comm, b.sent[0], b.west, westward, b.gotten[1], b.east, westward); err != nil {
		return err
	}
	if _, err := mpi.Sendrecv(b.comm, b.sent[1], b.east, eastward, b.gotten[0], b.west, eastward); err != nil {
		return err
	}
	for i := range b.rows {
		if b.west != mpi.ProcNull {
			b.u[(i+1)*stride] = b.gotten[0][i]
		}
		if b.east != mpi.ProcNull {
			b.u[(i+1)*stride+b.cols+1] = b.gotten[1][i]
		}
	}
	return nil
}

// ratio is alpha dt / h^2: above 0.25 the method is not stable.
const ratio = 0.2

// step goes on by one step of time.
func (b *block) step() error {
	if err := b.exchange(); err != nil {
		return err
	}
	stride := b.cols + 2
	for i := 1; i <= b.rows; i++ {
		at := i * stride
		above, here, below := b.u[at-stride:at], b.u[at:at+stride], b.u[at+stride:at+2*stride]
		for j := 1; j <= b.cols; j++ {
			b.next[at+j] = here[j] + ratio*(above[j]+below[j]+here[j-1]+here[j+1]-4*here[j])
		}
	}
	b.u, b.next = b.next, b.u
	return nil
}

// waves are what the plate is the sum of at the start: half-waves down and
// across, and how high they are.
var waves = [...]struct {
	down, across int
	high         float64
}{{1, 1, 0.6}, {2, 3, 0.5}, {5, 2, 0.3}, {9, 11, 0.3}, {24, 17, 0.2}}

// truth returns the temperature of a point of the plate after some steps: each
// wave keeps its shape and loses a part of its height in each step.
func (b *block) truth(row, col, steps int) float64 {
	h := 1 / float64(b.points+1)
	sum := 0.0
	for _, w := range waves {
		down, across := math.Sin(float64(w.down)*math.Pi*h/2), math.Sin(float64(w.across)*math.Pi*h/2)
		left := math.Pow(1-4*ratio*(down*down+across*across), float64(steps))
		sum += w.high * left * math.Sin(float64(w.down*(row+1))*math.Pi*h) * math.Sin(float64(w.across*(col+1))*math.Pi*h)
	}
	return sum
}

func (b *block) start() {
	for i := range b.rows {
		for j := range b.row(i) {
			b.row(i)[j] = b.truth(b.top+i, b.left+j, 0)
		}
	}
}

// error returns how far the worst point of the block is from the truth.
func (b *block) error(steps int) float64 {
	worst := 0.0
	for i := range b.rows {
		for j, v := range b.row(i) {
			worst = max(worst, math.Abs(v-b.truth(b.top+i, b.left+j, steps)))
		}
	}
	return worst
}

// gather returns the whole plate on rank 0 of the grid, nil on the others.
func (b *block) gather() ([]float64, error) {
	mine := make([]float64, 0, b.rows*b.cols)
	for i := range b.rows {
		mine = append(mine, b.row(i)...)
	}
	if b.comm.Rank() != 0 {
		return nil, mpi.Gatherv(b.comm, mine, nil, nil, nil, 0)
	}
	counts := make([]int, b.comm.Size())
	for r := range counts {
		_, _, rows, cols, err := b.place(r)
		if err != nil {
			return nil, err
		}
		counts[r] = rows * cols
	}
	all := make([]float64, b.points*b.points)
	if err := mpi.Gatherv(b.comm, mine, all, counts, nil, 0); err != nil {
		return nil, err
	}
	plate := make([]float64, len(all))
	for r := range counts {
		top, left, rows, cols, _ := b.place(r) // no error before, none now
		for i := range rows {
			all = all[copy(plate[(top+i)*b.points+left:][:cols], all):]
		}
	}
	return plate, nil
}

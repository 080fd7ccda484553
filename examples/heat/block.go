package main

import (
	"errors"
	"math"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

// block is the part of the plate that a rank has: rows x cols points, with a
// frame of one point around them for those of the neighbours.
type block struct {
	comm       *mpi.Comm // a grid of ranks
	dims       []int     // of the grid
	points     int       // along an edge of the plate
	top, left  int       // of the first point, in the plate
	rows, cols int
	u, next    []float64
	column     mpi.Datatype // of the points, without the frame
	inside     mpi.Datatype // all of these
	halo       *halo        // exchanges edges by Put; nil: by messages
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
	b.u = make([]float64, (b.rows+2)*(b.cols+2))
	b.next = make([]float64, len(b.u))
	if b.column, err = mpi.TypeVector(b.rows, 1, b.cols+2, mpi.TypeDouble); err != nil {
		return nil, err
	}
	if b.inside, err = mpi.TypeVector(b.rows, b.cols, b.cols+2, mpi.TypeDouble); err != nil {
		return nil, err
	}
	return b, errors.Join(b.column.Commit(), b.inside.Commit())
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

// side returns the points of column j, from -1 to cols, without the frame.
func (b *block) side(j int) mpi.Data { return mpi.Typed(b.u[b.cols+2+j+1:], 1, b.column) }

// edges returns the edges of the block: above, below, to the west and to the east.
func (b *block) edges() []mpi.Data {
	return []mpi.Data{mpi.Slice(b.row(0)), mpi.Slice(b.row(b.rows - 1)), b.side(0), b.side(b.cols - 1)}
}

// exchange fills the frame with the edges of the neighbours' blocks. At an edge of the
// plate there is no neighbour, and the frame stays as it is.
func (b *block) exchange() error {
	if b.halo != nil {
		return b.halo.exchange(b)
	}
	frame := []mpi.Data{mpi.Slice(b.row(-1)), mpi.Slice(b.row(b.rows)), b.side(-1), b.side(b.cols)}
	return b.comm.NeighborAlltoallw(b.edges(), frame)
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
	mine := mpi.Typed(b.u[b.cols+3:], 1, b.inside)
	if b.comm.Rank() != 0 {
		return nil, b.comm.Gatherv(mine, mpi.Data{}, nil, nil, 0)
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
	if err := b.comm.Gatherv(mine, mpi.Slice(all), counts, nil, 0); err != nil {
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

// Command blocksparse multiplies two block-sparse matrices in the manner of quantum
// chemistry programs, on the ranks of an MPI job:
//
//	xrun -n 4 --testbed 2 bin/blocksparse --blocks 24
//
// The blocks that are not zero lie in windows, dealt out to the ranks. Each rank takes tasks
// from a common counter, and for each it gets a block of A and one of B from wherever they
// are, multiplies them, and accumulates the product into a block of C: get, compute,
// accumulate, as the contractions of NWChem's coupled cluster do on Global Arrays. No rank
// takes part in what others do with its memory, but while it multiplies it makes no progress
// either: what ranks of other hosts want of it waits for the end of a task, unless
// xrun --ghosts serves its windows. The numbers are whole and
// small, so that sums are exact, and the product is checked with a vector: C x must be
// A (B x) (Freivalds 1979). The exit status is 0 when it is right.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

const usage = `usage: blocksparse [OPTIONS]     on the ranks of an MPI job:

  xrun -n 4 --testbed 2 bin/blocksparse --blocks 24

Multiplies two block-sparse matrices: get blocks, multiply, accumulate. Prints how long
ranks multiplied, and how long they waited for others.

  --blocks N     blocks along an edge of a matrix (default 16)
  --size N       rows and columns of a block (default 48)
  --fill F       share of blocks that are not zero (default 0.3)
  --seed N       of where they are, and of the numbers (default 1)

Exit status: 0 the answer is right, 1 anything else.
`

type options struct {
	blocks, size int
	fill         float64
	seed         uint64
}

func main() {
	var o options
	os.Exit(job.Main(job.Program{
		Name: "blocksparse", Usage: usage,
		Flags: func(fs *flag.FlagSet) {
			fs.IntVar(&o.blocks, "blocks", 16, "")
			fs.IntVar(&o.size, "size", 48, "")
			fs.Float64Var(&o.fill, "fill", 0.3, "")
			fs.Uint64Var(&o.seed, "seed", 1, "")
		},
		Check: o.check,
		Run:   func(comm *mpi.Comm, out io.Writer) error { return run(comm, o, out) },
	}, os.Args[1:], os.Stdout, os.Stderr))
}

func (o *options) check() error {
	if o.blocks < 1 || o.blocks > 1024 || o.size < 1 || o.size > 1024 || !(o.fill >= 0 && o.fill <= 1) {
		return fmt.Errorf("%d blocks of %d, %g of them filled: want 1 to 1024, 1 to 1024, and 0 to 1", o.blocks, o.size, o.fill)
	}
	return nil
}

func run(comm *mpi.Comm, o options, out io.Writer) error {
	a, err := newMatrix(comm, o, o.seed)
	if err != nil {
		return err
	}
	b, err := newMatrix(comm, o, o.seed+1)
	if err != nil {
		return err
	}
	c, err := newProduct(comm, a, b)
	if err != nil {
		return err
	}
	m, err := newMultiplier(comm, a, b, c)
	if err != nil {
		return err
	}
	if err := comm.Barrier(); err != nil { // all blocks are filled
		return err
	}
	start := time.Now()
	if err := m.run(); err != nil {
		return err
	}
	if err := comm.Barrier(); err != nil {
		return err
	}
	took := time.Since(start)
	if err := verify(a, b, c); err != nil {
		return err
	}
	sums := []float64{m.computing.Seconds(), m.waiting.Seconds()}
	if err := mpi.Allreduce(comm, nil, sums, mpi.Sum); err != nil {
		return err
	}
	if n := float64(comm.Size()); comm.Rank() == 0 {
		fmt.Fprintf(out, "blocksparse: %d products of %d x %d blocks on %d ranks are right: %.1f ms, of which a rank multiplied %.1f and waited %.1f\n",
			len(m.tasks), o.size, o.size, comm.Size(), took.Seconds()*1e3, sums[0]/n*1e3, sums[1]/n*1e3)
	}
	return m.close()
}

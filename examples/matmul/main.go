// Command matmul multiplies two matrices that are spread over a grid of the ranks
// of an MPI job:
//
//	xrun -n 4 --testbed 2 bin/matmul --size 1000
//
// The panels of A go along the rows of the grid and those of B along its columns,
// and each rank adds their products to its block of C (SUMMA, van de Geijn and
// Watts 1997). The numbers are whole and small, so that sums are exact, and the
// product is checked with a vector: C x must be A (B x) (Freivalds 1979). The exit
// status is 0 when it is right.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

const usage = `usage: matmul [OPTIONS]     on the ranks of an MPI job:

  xrun -n 4 --testbed 2 bin/matmul --size 1000

Multiplies two square matrices, and checks the product.

  --size N      rows and columns (default 500)
  --panel N     columns of A that travel at a time (default 64)
  --seed N      of the numbers (default 1)

Exit status: 0 the answer is right, 1 anything else.
`

type options struct {
	size, panel int
	seed        uint64
}

func main() {
	var o options
	os.Exit(job.Main(job.Program{
		Name: "matmul", Usage: usage,
		Flags: func(fs *flag.FlagSet) {
			fs.IntVar(&o.size, "size", 500, "")
			fs.IntVar(&o.panel, "panel", 64, "")
			fs.Uint64Var(&o.seed, "seed", 1, "")
		},
		Check: o.check,
		Run:   func(comm *mpi.Comm, out io.Writer) error { return run(comm, o, out) },
	}, os.Args[1:], os.Stdout, os.Stderr))
}

func (o *options) check() error {
	if o.size < 1 || o.size > 1<<14 || o.panel < 1 {
		return fmt.Errorf("size %d and panel %d: want a size of 1 to %d, and a panel of at least 1", o.size, o.panel, 1<<14)
	}
	return nil
}

func run(comm *mpi.Comm, o options, out io.Writer) error {
	g, err := newGrid(comm, o.size)
	if err != nil {
		return err
	}
	a, b, c := g.matrix(), g.matrix(), g.matrix()
	g.fill(a, o.seed)
	g.fill(b, o.seed+1)
	if err := g.multiply(c, a, b, o.panel); err != nil {
		return err
	}
	if err := g.verify(c, a, b); err != nil {
		return err
	}
	if g.comm.Rank() == 0 {
		fmt.Fprintf(out, "matmul: the product of two %d x %d matrices on %d x %d ranks is right\n", o.size, o.size, g.dims[0], g.dims[1])
	}
	return nil
}

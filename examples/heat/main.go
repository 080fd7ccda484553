// Command heat follows the temperature of a square plate whose edges are kept
// cold, on the ranks of an MPI job:
//
//	xrun -n 4 --testbed 2 bin/heat --png plate.png
//
// The ranks form a grid. In each step they exchange the edges of their blocks
// with their neighbours (the halo), and then each point becomes a mean of itself
// and of the four around it. The start is a sum of waves for which the answer is
// known, for the plate as it is cut into points, so that the end can be checked
// to the last digits. The exit status is 0 when it is right.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

const usage = `usage: heat [OPTIONS]     on the ranks of an MPI job:

  xrun -n 4 --testbed 2 bin/heat --png plate.png

Follows the temperature of a square plate with cold edges by finite differences,
and checks the end against what is known.

  --points N     points along an edge (default 256)
  --steps N      steps of time (default 500)
  --put          exchange edges one-sidedly, by Put (default: by messages)
  --png FILE     write the plate at the end as a picture

Exit status: 0 the answer is right, 1 anything else.
`

type options struct {
	points, steps int
	put           bool
	png           string
}

func main() {
	var o options
	os.Exit(job.Main(job.Program{
		Name: "heat", Usage: usage,
		Flags: func(fs *flag.FlagSet) {
			fs.IntVar(&o.points, "points", 256, "")
			fs.IntVar(&o.steps, "steps", 500, "")
			fs.BoolVar(&o.put, "put", false, "")
			fs.StringVar(&o.png, "png", "", "")
		},
		Check: o.check,
		Run:   func(comm *mpi.Comm, out io.Writer) error { return run(comm, o, out) },
	}, os.Args[1:], os.Stdout, os.Stderr))
}

func (o *options) check() error {
	if o.points < 1 || o.points > 1<<15 || o.steps < 0 {
		return fmt.Errorf("%d points and %d steps: want 1 to %d points, and steps from 0 on", o.points, o.steps, 1<<15)
	}
	return nil
}

// tolerance is how far rounding may take the answer from the truth.
const tolerance = 1e-11

func run(comm *mpi.Comm, o options, out io.Writer) error {
	b, err := newBlock(comm, o.points)
	if err != nil {
		return err
	}
	if o.put {
		if b.halo, err = newHalo(b); err != nil {
			return err
		}
	}
	b.start()
	for range o.steps {
		if err := b.step(); err != nil {
			return err
		}
	}
	if o.put {
		if err := b.halo.close(); err != nil {
			return err
		}
	}
	off := []float64{b.error(o.steps)}
	if err := mpi.Allreduce(comm, nil, off, mpi.Max); err != nil {
		return err
	}
	plate, err := b.gather()
	if err != nil {
		return err
	}
	if off[0] > tolerance {
		return fmt.Errorf("wrong: a point is off by %.3g", off[0])
	}
	if b.comm.Rank() != 0 {
		return nil
	}
	fmt.Fprintf(out, "heat: %d x %d points on %d x %d ranks, %d steps, no point is off by more than %.2g\n",
		o.points, o.points, b.dims[0], b.dims[1], o.steps, off[0])
	if o.png == "" {
		return nil
	}
	f, err := os.Create(o.png)
	if err != nil {
		return err
	}
	return writePicture(f, plate, o.points)
}

// Command nbody moves bodies that attract one another, on the ranks of an MPI
// job:
//
//	xrun -n 4 --testbed 2 bin/nbody
//
// Each rank has a part of the bodies. To find the forces the parts travel once
// around the ring of ranks, and while one is under way the forces of the one
// before are added up. In the end rank 0 moves all bodies by itself and compares;
// energy and momentum must have stayed what they were. The exit status is 0 when
// it is right.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

const usage = `usage: nbody [OPTIONS]     on the ranks of an MPI job:

  xrun -n 4 --testbed 2 bin/nbody

Moves bodies that attract one another, and compares with what one process finds.

  --bodies N     how many (default 1024)
  --steps N      steps of time (default 20)
  --seed N       of the places at the start (default 1)

Exit status: 0 the answer is right, 1 anything else.
`

type options struct {
	bodies, steps int
	seed          uint64
}

func main() {
	var o options
	os.Exit(job.Main(job.Program{
		Name: "nbody", Usage: usage,
		Flags: func(fs *flag.FlagSet) {
			fs.IntVar(&o.bodies, "bodies", 1024, "")
			fs.IntVar(&o.steps, "steps", 20, "")
			fs.Uint64Var(&o.seed, "seed", 1, "")
		},
		Check: o.check,
		Run:   func(comm *mpi.Comm, out io.Writer) error { return run(comm, o, out) },
	}, os.Args[1:], os.Stdout, os.Stderr))
}

func (o *options) check() error {
	if o.bodies < 1 || o.bodies > 1<<20 || o.steps < 0 {
		return fmt.Errorf("%d bodies and %d steps: want 1 to %d bodies, and steps from 0 on", o.bodies, o.steps, 1<<20)
	}
	return nil
}

// What the end may differ by: positions from those of one process, because forces
// are added in another order; energy from that of the start, because the steps of
// time are not infinitely small.
const (
	positionSlack = 1e-9
	energySlack   = 1e-2
)

func run(comm *mpi.Comm, o options, out io.Writer) error {
	all := scatterBodies(o.bodies, o.seed)
	from, to := job.Part(o.bodies, comm.Size(), comm.Rank())
	mine := all.part(from, to)
	r := newRing(comm, o.bodies)
	if err := r.forces(&mine); err != nil {
		return err
	}
	for range o.steps {
		mine.kick(dt / 2)
		mine.drift(dt)
		if err := r.forces(&mine); err != nil {
			return err
		}
		mine.kick(dt / 2)
	}
	moved, err := collect(comm, &mine, o.bodies)
	if err != nil {
		return err
	}
	verdict := ""
	if comm.Rank() == 0 {
		verdict = judge(out, o, all, moved)
	}
	return job.Verdict(comm, verdict)
}

// collect returns the places of all bodies on rank 0.
func collect(comm *mpi.Comm, mine *bodies, n int) ([]float64, error) {
	if comm.Rank() != 0 {
		return nil, mpi.Gatherv(comm, mine.pos, nil, nil, nil, 0)
	}
	counts := make([]int, comm.Size())
	for i := range counts {
		from, to := job.Part(n, comm.Size(), i)
		counts[i] = 3 * (to - from)
	}
	all := make([]float64, 3*n)
	return all, mpi.Gatherv(comm, mine.pos, all, counts, nil, 0)
}

// judge moves all bodies in this process, and says what is wrong.
func judge(out io.Writer, o options, all bodies, moved []float64) string {
	before := all.energy()
	all.attract(all.pos, all.mass)
	for range o.steps {
		all.kick(dt / 2)
		all.drift(dt)
		clear(all.acc)
		all.attract(all.pos, all.mass)
		all.kick(dt / 2)
	}
	off := 0.0
	for i, v := range moved {
		off = max(off, math.Abs(v-all.pos[i]))
	}
	drift := math.Abs(all.energy()-before) / math.Abs(before)
	fmt.Fprintf(out, "nbody: %d bodies, %d steps: no place differs by more than %.2g from the serial answer, energy by %.2g\n",
		o.bodies, o.steps, off, drift)
	switch {
	case !(off <= positionSlack):
		return fmt.Sprintf("a body is %.3g away from where it is in the serial answer", off)
	case !(drift <= energySlack):
		return fmt.Sprintf("the energy has changed by a part of %.3g", drift)
	}
	return ""
}

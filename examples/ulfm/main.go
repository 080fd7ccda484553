// Command ulfm solves a system of linear equations on the ranks of an MPI job, and
// goes on with the right answer when some of them die:
//
//	xrun -n 4 --disable-auto-cleanup bin/ulfm --kill 1,2
//
// It is the pattern of programs that survive: a rank that gets an error revokes the
// communicator, so that all come to the same place; there they make a smaller one
// of those that are left, share the work out anew, and go on. The exit status is 0
// when the answer is right, on each rank that has lived to see it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

const usage = `usage: ulfm [OPTIONS]     on the ranks of an MPI job:

  xrun -n 4 --disable-auto-cleanup bin/ulfm --kill 1,2

Solves a system of linear equations by Jacobi's iteration, while ranks are killed,
and checks the answer. xrun has to let the others go on.

  --rows N       equations (default 10000)
  --kill R,...   ranks that kill themselves, one after the other (default none)

Exit status: 0 the answer is right, 1 anything else.
`

type options struct {
	rows int
	kill []int
}

func main() {
	var o options
	os.Exit(job.Main(job.Program{
		Name: "ulfm", Usage: usage,
		Flags: func(fs *flag.FlagSet) {
			fs.IntVar(&o.rows, "rows", 10_000, "")
			fs.Func("kill", "", o.setKill)
		},
		Check: o.check,
		Run: func(comm *mpi.Comm, out io.Writer) error {
			return run(comm, o, out, func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) })
		},
	}, os.Args[1:], os.Stdout, os.Stderr))
}

func (o *options) setKill(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		rank, err := strconv.Atoi(word)
		if err != nil || rank < 0 {
			return fmt.Errorf("%q is no rank", word)
		}
		o.kill = append(o.kill, rank)
	}
	return nil
}

func (o *options) check() error {
	if o.rows < 1 || o.rows > 1<<24 {
		return fmt.Errorf("%d equations: want 1 to %d", o.rows, 1<<24)
	}
	return nil
}

// killEvery is the number of steps from one death to the next.
const killEvery = 20

// run solves the equations. A rank that is to be killed calls die.
func run(world *mpi.Comm, o options, out io.Writer, die func() error) error {
	if i := slices.IndexFunc(o.kill, func(rank int) bool { return rank >= world.Size() }); i >= 0 {
		return fmt.Errorf("rank %d is to be killed, and there are %d", o.kill[i], world.Size())
	}
	s := newSolver(world, o.rows)
	me := slices.Index(o.kill, world.Rank())
	for done := false; !done; {
		if me >= 0 && s.steps >= (me+1)*killEvery {
			return die()
		}
		near, failed := s.step()
		whole, err := s.meet(failed)
		if err != nil {
			return err
		}
		done = near && whole
	}
	return s.report(out, world.Size())
}

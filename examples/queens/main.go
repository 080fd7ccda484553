// Command queens counts in how many ways N queens fit on a board of N x N squares, on the
// ranks of an MPI job:
//
//	xrun -n 4 --testbed 2 bin/queens --queens 12
//
// How much work a beginning of the board takes is not known before. So there is a queue of
// work: a counter in a window of rank 0 from which each rank takes the next task with
// Fetch_and_op when it is through with one. Results are added up by Accumulate. Rank 0
// hands out nothing, it takes tasks like the others. The numbers of solutions are known
// (OEIS A000170), and each task must have been done once. The exit status is 0 when that
// is so.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

const usage = `usage: queens [OPTIONS]     on the ranks of an MPI job:

  xrun -n 4 --testbed 2 bin/queens --queens 12

Counts in how many ways N queens fit on a board of N x N squares.

  --queens N     1 to 15 (default 11)
  --static       share the tasks out before, to see what the queue is for

Exit status: 0 the answer is right, 1 anything else.
`

type options struct {
	queens int
	static bool
}

func main() {
	var o options
	os.Exit(job.Main(job.Program{
		Name: "queens", Usage: usage,
		Flags: func(fs *flag.FlagSet) {
			fs.IntVar(&o.queens, "queens", 11, "")
			fs.BoolVar(&o.static, "static", false, "")
		},
		Check: o.check,
		Run:   func(comm *mpi.Comm, out io.Writer) error { return run(comm, o, out) },
	}, os.Args[1:], os.Stdout, os.Stderr))
}

// solutions are the known answers.
var solutions = [...]int64{1: 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184}

func (o *options) check() error {
	if o.queens < 1 || o.queens >= len(solutions) {
		return fmt.Errorf("%d queens: want 1 to %d", o.queens, len(solutions)-1)
	}
	return nil
}

func run(comm *mpi.Comm, o options, out io.Writer) error {
	q, err := newQueue(comm, o.queens*o.queens, o.static)
	if err != nil {
		return err
	}
	var placed, mine int64
	for {
		task, err := q.next()
		if err != nil {
			return err
		}
		if task < 0 {
			break
		}
		n := begin(o.queens, task)
		placed, mine = placed+n.placed, mine+1
		if err := q.done(task, n.solutions); err != nil {
			return err
		}
	}
	total, once, err := q.close()
	if err != nil {
		return err
	}
	work := []int64{placed}
	if err := mpi.Allreduce(comm, nil, work, mpi.Max); err != nil {
		return err
	}
	if err := verdict(comm, o, total, once); err != nil {
		return err
	}
	if comm.Rank() == 0 {
		fmt.Fprintf(out, "queens: %d queens fit in %d ways; %d tasks on %d ranks, the one with the most work placed %d queens\n",
			o.queens, total, o.queens*o.queens, comm.Size(), work[0])
	}
	return nil
}

// verdict checks what rank 0 has: the sum, and whether each task was done once.
func verdict(comm *mpi.Comm, o options, total int64, once bool) error {
	wrong := ""
	switch {
	case comm.Rank() != 0:
	case !once:
		wrong = "a task was not done once"
	case total != solutions[o.queens]:
		wrong = fmt.Sprintf("%d queens fit in %d ways, not in %d", o.queens, solutions[o.queens], total)
	}
	return job.Verdict(comm, wrong)
}

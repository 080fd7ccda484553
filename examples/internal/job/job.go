// Package job is what the examples have in common: how they begin, and how all
// ranks come to the same end.
package job

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/xwarp/xwarp/mpi"
)

// Program is an example.
type Program struct {
	Name  string
	Usage string // what --help prints
	// Flags defines the options; nil: there are none.
	Flags func(*flag.FlagSet)
	// Check says what is wrong with the options; nil: nothing can be.
	Check func() error
	// Run does the work on one rank of comm. Rank 0 writes the report to out.
	Run func(comm *mpi.Comm, out io.Writer) error
}

// Main parses the command line without the name of the program, joins the MPI job
// that this process was started for, and runs the program. It returns the exit
// status: 0 when the answer is right, 1 for anything else, with the reason on
// stderr.
func Main(p Program, args []string, stdout, stderr io.Writer) int {
	err := p.start(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, p.Usage)
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

func (p *Program) start(args []string, stdout io.Writer) error {
	if err := p.parse(args); err != nil {
		return err
	}
	proc, err := mpi.Init()
	if err != nil {
		return err
	}
	if err := p.Run(proc.World(), stdout); err != nil {
		return err // a rank that goes without Finalize ends the job
	}
	return proc.Finalize()
}

func (p *Program) parse(args []string) error {
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if p.Flags != nil {
		p.Flags(fs)
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%q is not an option: %s --help lists them", fs.Arg(0), p.Name)
	}
	if p.Check != nil {
		return p.Check()
	}
	return nil
}

// Part returns the range of n things that is part i of parts, as equal as can be.
func Part(n, parts, i int) (from, to int) { return n * i / parts, n * (i + 1) / parts }

// Ints returns counts that came in a message as the calls of MPI take them.
func Ints(list []int64) []int {
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = int(v)
	}
	return out
}

// All reports to all ranks whether ok is true on each of them.
func All(comm *mpi.Comm, ok bool) (bool, error) {
	all := []int32{0}
	if ok {
		all[0] = 1
	}
	err := mpi.Allreduce(comm, nil, all, mpi.Min)
	return all[0] == 1, err
}

// Verdict ends a check that some ranks make, or all: wrong says what is wrong here, or
// nothing. If anything is wrong anywhere, all ranks return an error.
func Verdict(comm *mpi.Comm, wrong string) error {
	ok, err := All(comm, wrong == "")
	switch {
	case err != nil || ok:
		return err
	case wrong == "":
		return errors.New("the answer is wrong; another rank says why")
	}
	return errors.New("wrong: " + wrong)
}

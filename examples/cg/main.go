// Command cg solves a system of linear equations with a symmetric positive
// definite matrix by conjugate gradients on the ranks of an MPI job:
//
//	xrun -n 2 --testbed 2 bin/cg --matrix examples/cg/diffusion.mtx
//
// Rank 0 reads the matrix from a Matrix Market file and gives each rank a run
// of rows; the right-hand side is all ones. In the end rank 0 checks the
// residual, solves the system once more by itself, and compares. The exit
// status is 0 when all is right.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/xwarp/xwarp/examples/cg/mtx"
	"github.com/xwarp/xwarp/mpi"
)

//go:generate go run gen.go

const usage = `usage: cg --matrix FILE [OPTIONS]     on the ranks of an MPI job:

  xrun -n 2 --testbed 2 bin/cg --matrix examples/cg/diffusion.mtx

Solves A x = (1, ..., 1) by conjugate gradients, checks the residual, and compares
with what one process finds.

  --matrix FILE     Matrix Market file: coordinate, real, symmetric positive
                    definite
  --tolerance T     stop when the residual is this part of the first (default
                    1e-10)
  --steps N         give up after so many steps (default: ten per row)

Exit status: 0 the answer is right, 1 anything else.
`

func main() {
	switch err := start(os.Args[1:]); {
	case err == nil:
		return
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
		return
	case !errors.Is(err, errTold):
		fmt.Fprintln(os.Stderr, "cg:", err)
	}
	os.Exit(1)
}

// options is what the command line says.
type options struct {
	matrix string
	limits
}

func parseOptions(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("cg", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.matrix, "matrix", "", "")
	fs.Float64Var(&o.tolerance, "tolerance", 1e-10, "")
	fs.IntVar(&o.steps, "steps", 0, "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("%q is not an option: the matrix is named by --matrix FILE", fs.Arg(0))
	case o.matrix == "":
		return o, errors.New("no matrix: name one by --matrix FILE, such as examples/cg/diffusion.mtx")
	case !(o.tolerance > 0 && o.tolerance < 1):
		return o, fmt.Errorf("--tolerance is %g: it must be between 0 and 1", o.tolerance)
	case o.steps < 0:
		return o, fmt.Errorf("--steps is %d: it must not be negative", o.steps)
	}
	return o, nil
}

func start(args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	p, err := mpi.Init()
	if err != nil {
		return err
	}
	err = run(p.World(), o, os.Stdout)
	var known *verdict
	if err != nil && !errors.As(err, &known) {
		return err // a rank that goes without Finalize ends the job
	}
	if known != nil && known.why != errElsewhere {
		fmt.Fprintln(os.Stderr, "cg:", known.why) // before Finalize: the first rank that leaves ends the job
	}
	if known != nil {
		err = errTold
	}
	return errors.Join(err, p.Finalize())
}

// errTold is a failure that has been reported.
var errTold = errors.New("reported before")

// verdict is a failure that all ranks know of, so that they end in good order.
type verdict struct{ why error }

func (v *verdict) Error() string { return v.why.Error() }
func (v *verdict) Unwrap() error { return v.why }

// errElsewhere says that rank 0 tells what is wrong.
var errElsewhere = errors.New("rank 0 failed")

// agree tells all ranks whether rank 0 has failed. The others have not.
func agree(comm *mpi.Comm, err error) error {
	bad := []int32{0}
	if err != nil {
		bad[0] = 1
	}
	if err := mpi.Bcast(comm, bad, 0); err != nil {
		return err
	}
	switch {
	case bad[0] == 0:
		return nil
	case comm.Rank() == 0:
		return &verdict{err}
	}
	return &verdict{errElsewhere}
}

// run is what every rank does. Rank 0 writes its report to out.
func run(comm *mpi.Comm, o options, out io.Writer) error {
	var all *csr
	var err error
	if comm.Rank() == 0 {
		all, err = read(o.matrix)
	}
	if err := agree(comm, err); err != nil {
		return err
	}
	sys, err := scatter(comm, all)
	if err != nil {
		return err
	}
	if o.steps == 0 {
		o.steps = 10 * int(sys.bounds[comm.Size()])
	}
	if comm.Rank() == 0 {
		describe(out, all, sys)
	}
	b := ones(sys.a.rows())
	if err := comm.Barrier(); err != nil {
		return err
	}
	began := time.Now()
	x, steps, err := solve(sys, b, o.limits)
	took := time.Since(began)
	if lost := (*mpi.Error)(nil); errors.As(err, &lost) {
		return err
	}
	if err := agree(comm, err); err != nil { // the same on all ranks
		return err
	}
	answer, err := sys.gather(x)
	if err != nil {
		return fmt.Errorf("collecting the answer: %w", err)
	}
	if comm.Rank() == 0 {
		fmt.Fprintf(out, "cg: solved on %d ranks in %d steps, %.1f ms, %.1f us per step\n",
			comm.Size(), steps, took.Seconds()*1e3, took.Seconds()*1e6/float64(max(steps, 1)))
		err = check(out, all, answer, o.limits)
	}
	return agree(comm, err)
}

func read(name string) (*csr, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := mtx.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a, err := newCSR(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

func describe(out io.Writer, all *csr, sys *ranks) {
	n := sys.comm.Size()
	least, most := math.MaxInt, 0
	for r := range n {
		entries := int(all.ptr[sys.bounds[r+1]] - all.ptr[sys.bounds[r]])
		least, most = min(least, entries), max(most, entries)
	}
	fmt.Fprintf(out, "cg: %d rows, %d entries; %d to %d entries per rank, rank 0 shares %d rows with %d others\n",
		all.rows(), len(all.val), least, most, sys.halo.size, len(sys.halo.peers))
}

// check judges the answer: by its residual, and by the answer of one process.
func check(out io.Writer, a *csr, x []float64, lim limits) error {
	b := ones(a.rows())
	began := time.Now()
	serial, steps, err := solve(whole{a}, b, lim)
	if err != nil {
		return fmt.Errorf("solving by one process: %w", err)
	}
	took := time.Since(began)
	var difference, largest float64
	for i := range x {
		difference = max(difference, math.Abs(x[i]-serial[i]))
		largest = max(largest, math.Abs(serial[i]))
	}
	residual := a.residual(x, b)
	fmt.Fprintf(out, "cg: residual %.2g, largest difference from the serial answer %.2g of %.2g (serial: %d steps, %.1f ms)\n",
		residual, difference, largest, steps, took.Seconds()*1e3)
	// Rounding makes the true residual a little larger than the one that the
	// method keeps, and sums in another order make the answers differ.
	const slack = 100
	if !(residual <= slack*lim.tolerance) {
		return fmt.Errorf("wrong: the residual is %.3g, at most %.3g was asked for", residual, slack*lim.tolerance)
	}
	if lim := 1e4 * lim.tolerance * largest; !(difference <= lim) {
		return fmt.Errorf("wrong: the answer differs by %.3g from the serial one, more than %.3g", difference, lim)
	}
	fmt.Fprintln(out, "cg: right")
	return nil
}

func ones(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}

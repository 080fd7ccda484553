// Command sort sorts random numbers that are spread over the ranks of an MPI
// job:
//
//	xrun -n 4 --testbed 2 bin/sort --keys 1000000
//
// Each rank sorts its own and shows a few of them at equal distances. From those
// of all ranks it follows which part of the order each rank gets; all send
// one another what is theirs, and merge what came (sample sort, Shi and Schaeffer
// 1992). In the end the ranks check that the order goes on from rank to rank and
// that no number is lost or new. The exit status is 0 when it is right.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

const usage = `usage: sort [OPTIONS]     on the ranks of an MPI job:

  xrun -n 4 --testbed 2 bin/sort --keys 1000000

Sorts random numbers that are spread over the ranks, and checks the order.

  --keys N     numbers on each rank (default 1000000)
  --seed N     of the numbers (default 1)
  --equal N    only so many different numbers (default: any)

Exit status: 0 the answer is right, 1 anything else.
`

type options struct {
	keys  int
	seed  uint64
	equal uint64
}

func main() {
	var o options
	os.Exit(job.Main(job.Program{
		Name: "sort", Usage: usage,
		Flags: func(fs *flag.FlagSet) {
			fs.IntVar(&o.keys, "keys", 1_000_000, "")
			fs.Uint64Var(&o.seed, "seed", 1, "")
			fs.Uint64Var(&o.equal, "equal", 0, "")
		},
		Check: o.check,
		Run:   func(comm *mpi.Comm, out io.Writer) error { return run(comm, o, out) },
	}, os.Args[1:], os.Stdout, os.Stderr))
}

func (o *options) check() error {
	if o.keys < 0 || o.keys > 1<<28 {
		return fmt.Errorf("%d keys on each rank: want 0 to %d", o.keys, 1<<28)
	}
	return nil
}

func run(comm *mpi.Comm, o options, out io.Writer) error {
	keys := o.generate(comm.Rank())
	before := sumOf(keys)
	sorted, err := sortAll(comm, keys)
	if err != nil {
		return err
	}
	counts := []int64{int64(len(sorted))}
	if err := mpi.Allreduce(comm, nil, counts, mpi.Max); err != nil {
		return err
	}
	if err := verify(comm, before, sorted); err != nil {
		return err
	}
	if comm.Rank() == 0 {
		fmt.Fprintf(out, "sort: %d numbers on %d ranks are in order, at most %d on one\n", o.keys*comm.Size(), comm.Size(), counts[0])
	}
	return nil
}

// generate returns the numbers of a rank.
func (o *options) generate(rank int) []uint64 {
	rng := rand.New(rand.NewPCG(o.seed, uint64(rank)))
	keys := make([]uint64, o.keys)
	for i := range keys {
		if o.equal > 0 {
			keys[i] = rng.Uint64N(o.equal)
		} else {
			keys[i] = rng.Uint64()
		}
	}
	return keys
}

// sum tells multisets of numbers apart, but for one case in very many: how many
// they are, and sums of what they are scrambled to.
type sum [3]uint64

func sumOf(keys []uint64) (s sum) {
	for _, k := range keys {
		k *= 0x9e3779b97f4a7c15
		k ^= k >> 29
		s[1] += k
		s[2] += k * k
	}
	s[0] = uint64(len(keys))
	return s
}

// verify checks that the numbers of all ranks are in order and the same as before.
func verify(comm *mpi.Comm, before sum, sorted []uint64) error {
	after := sumOf(sorted)
	all := append(before[:], after[:]...)
	if err := mpi.Allreduce(comm, nil, all, mpi.Sum); err != nil {
		return err
	}
	// The largest number of all ranks before this one. Ranks that have none pass
	// on what came.
	largest := []uint64{0}
	if n := len(sorted); n > 0 {
		largest[0] = sorted[n-1]
	}
	if err := mpi.Exscan(comm, nil, largest, mpi.Max); err != nil {
		return err
	}
	ordered := true
	for i := 1; i < len(sorted); i++ {
		ordered = ordered && sorted[i-1] <= sorted[i]
	}
	if comm.Rank() > 0 && len(sorted) > 0 {
		ordered = ordered && largest[0] <= sorted[0]
	}
	ok, err := job.All(comm, ordered)
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.New("wrong: the numbers are not in order")
	case sum(all[:3]) != sum(all[3:]):
		return errors.New("wrong: numbers were lost, or new ones have come")
	}
	return nil
}

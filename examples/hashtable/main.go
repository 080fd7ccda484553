// Command hashtable counts how often each of many keys occurs, in a hash table that is
// spread over the ranks of an MPI job:
//
//	xrun -n 4 --testbed 2 bin/hashtable --keys 100000
//
// Each rank has a part of the table in a window. All ranks insert at the same time, with
// one-sided operations only: Compare_and_swap claims a slot for a key, Accumulate counts.
// No rank answers anything in code of this program. In the end each rank compares its part
// with a table of the same keys that it has made alone. The exit status is 0 when they are
// equal.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

const usage = `usage: hashtable [OPTIONS]     on the ranks of an MPI job:

  xrun -n 4 --testbed 2 bin/hashtable --keys 100000

Counts keys in a hash table that is spread over the ranks, with one-sided operations.

  --keys N       keys that each rank inserts (default 20000)
  --distinct N   how many different keys there are (default 5000)
  --batch N      keys that a rank inserts at a time (default 64)
  --seed N       of the keys (default 1)

Exit status: 0 the answer is right, 1 anything else.
`

type options struct {
	keys, distinct, batch int
	seed                  uint64
}

func main() {
	var o options
	os.Exit(job.Main(job.Program{
		Name: "hashtable", Usage: usage,
		Flags: func(fs *flag.FlagSet) {
			fs.IntVar(&o.keys, "keys", 20_000, "")
			fs.IntVar(&o.distinct, "distinct", 5000, "")
			fs.IntVar(&o.batch, "batch", 64, "")
			fs.Uint64Var(&o.seed, "seed", 1, "")
		},
		Check: o.check,
		Run:   func(comm *mpi.Comm, out io.Writer) error { return run(comm, o, out) },
	}, os.Args[1:], os.Stdout, os.Stderr))
}

func (o *options) check() error {
	if o.keys < 0 || o.keys > 1<<26 || o.distinct < 1 || o.distinct > 1<<26 || o.batch < 1 || o.batch > 1<<16 {
		return fmt.Errorf("%d keys, %d distinct ones, batches of %d: want 0 to %d, 1 to %d and 1 to %d",
			o.keys, o.distinct, o.batch, 1<<26, 1<<26, 1<<16)
	}
	return nil
}

func run(comm *mpi.Comm, o options, out io.Writer) error {
	t, err := newTable(comm, o.distinct)
	if err != nil {
		return err
	}
	keys, start := o.generate(comm.Rank()), time.Now()
	for len(keys) > 0 {
		n := min(o.batch, len(keys))
		if err := t.add(keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	if err := comm.Barrier(); err != nil { // all have inserted all
		return err
	}
	took := time.Since(start)
	if err := t.verify(comm, o); err != nil {
		return err
	}
	if n := o.keys * comm.Size(); comm.Rank() == 0 {
		fmt.Fprintf(out, "hashtable: %d keys, at most %d distinct ones, on %d ranks are counted right, %.2f us for each key of a rank\n",
			n, o.distinct, comm.Size(), float64(took.Microseconds())/float64(max(o.keys, 1)))
	}
	return t.close()
}

// verify checks each count, and that no key is missing: then their sum would be less than
// the number of keys.
func (t *table) verify(comm *mpi.Comm, o options) error {
	counted, wrong := t.compare(o)
	sum := []uint64{counted}
	if err := mpi.Allreduce(comm, nil, sum, mpi.Sum); err != nil {
		return err
	}
	if n := uint64(o.keys * comm.Size()); wrong == "" && sum[0] != n {
		wrong = fmt.Sprintf("%d keys are in the table, and %d were inserted", sum[0], n)
	}
	return job.Verdict(comm, wrong)
}

// generate returns the keys of a rank. None is 0.
func (o *options) generate(rank int) []uint64 {
	rng := rand.New(rand.NewPCG(o.seed, uint64(rank)))
	keys := make([]uint64, o.keys)
	for i := range keys {
		keys[i] = 1 + rng.Uint64N(uint64(o.distinct))
	}
	return keys
}

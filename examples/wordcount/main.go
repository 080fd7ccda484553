// Command wordcount counts the words of a large text on the ranks of an MPI job:
//
//	xrun -n 4 --testbed 2 bin/wordcount --file README.md
//
// Rank 0 reads the text and gives each rank a part of it. Each counts the words
// of its part; then every word goes to the one rank that adds it up. Those that
// are there most often come back to rank 0, which counts the whole text by itself
// and compares. The exit status is 0 when it is right.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

const usage = `usage: wordcount [OPTIONS]     on the ranks of an MPI job:

  xrun -n 4 --testbed 2 bin/wordcount --file README.md

Counts the words of a text and lists those that are there most often.

  --file FILE     the text, which only rank 0 reads (default: one that is made up)
  --megabytes N   how long the one that is made up is (default 16)
  --top N         words to list (default 10)

Exit status: 0 the answer is right, 1 anything else.
`

type options struct {
	file           string
	megabytes, top int
}

func main() {
	var o options
	os.Exit(job.Main(job.Program{
		Name: "wordcount", Usage: usage,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&o.file, "file", "", "")
			fs.IntVar(&o.megabytes, "megabytes", 16, "")
			fs.IntVar(&o.top, "top", 10, "")
		},
		Check: o.check,
		Run:   func(comm *mpi.Comm, out io.Writer) error { return run(comm, o, out) },
	}, os.Args[1:], os.Stdout, os.Stderr))
}

func (o *options) check() error {
	if o.megabytes < 1 || o.megabytes > 1<<10 || o.top < 1 {
		return fmt.Errorf("%d megabytes, the first %d: want 1 to %d megabytes, and at least one word", o.megabytes, o.top, 1<<10)
	}
	return nil
}

func run(comm *mpi.Comm, o options, out io.Writer) error {
	var text []byte
	if comm.Rank() == 0 {
		var err error
		if text, err = o.read(); err != nil {
			return err
		}
	}
	part, err := deal(comm, text)
	if err != nil {
		return err
	}
	mine, err := shuffle(comm, count(part))
	if err != nil {
		return err
	}
	totals := []int64{int64(len(mine)), 0}
	for _, n := range mine {
		totals[1] += n
	}
	if err := mpi.Allreduce(comm, nil, totals, mpi.Sum); err != nil {
		return err
	}
	best, err := collect(comm, top(mine, o.top), o.top)
	if err != nil {
		return err
	}
	wrong := ""
	if comm.Rank() == 0 {
		fmt.Fprintf(out, "wordcount: %d words, %d different ones\n", totals[1], totals[0])
		for _, w := range best {
			fmt.Fprintf(out, "%9d %s\n", w.count, w.word)
		}
		wrong = judge(text, totals, best, o.top)
	}
	return job.Verdict(comm, wrong)
}

func (o *options) read() ([]byte, error) {
	if o.file == "" {
		return invent(o.megabytes << 20), nil
	}
	return os.ReadFile(o.file)
}

// judge counts the whole text in this process and says what is wrong.
func judge(text []byte, totals []int64, best []entry, k int) string {
	all := count(text)
	words := int64(0)
	for _, n := range all {
		words += n
	}
	if totals[0] != int64(len(all)) || totals[1] != words {
		return fmt.Sprintf("there are %d words, %d different ones", words, len(all))
	}
	for i, w := range top(all, k) {
		if i >= len(best) || best[i] != w {
			return fmt.Sprintf("word %d is %q, which is there %d times", i+1, w.word, w.count)
		}
	}
	return ""
}

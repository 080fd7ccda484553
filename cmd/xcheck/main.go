// Command xcheck plays random seeds against the verbs in the simulator and lets
// a model decide whether all went right; see `xcheck --help`.
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/xwarp/xwarp/cmd/internal/cli"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/check"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // a seed found something wrong
	exitUsage  = 2
)

//go:embed usage.txt
var usage string

// most is after how many failures there is no point in going on.
const most = 10

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options is what the command line says.
type options struct {
	seeds, from, seed uint64
	one               bool // --seed was given
	jobs              int
	trace, json       bool
}

// page is what xcheck says about itself.
func page() cli.Page {
	return cli.Page{Name: "xcheck", Summary: "play random seeds against the verbs of xwarp", Help: usage, Flags: flagSet(&options{})}
}

func flagSet(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("xcheck", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Uint64Var(&o.seeds, "seeds", 10000, "")
	fs.Uint64Var(&o.from, "from", 0, "")
	fs.Uint64Var(&o.seed, "seed", 0, "")
	fs.IntVar(&o.jobs, "j", runtime.GOMAXPROCS(0), "")
	fs.BoolVar(&o.trace, "trace", false, "")
	fs.BoolVar(&o.json, "json", false, "")
	return fs
}

func parse(args []string) (options, error) {
	var o options
	fs := flagSet(&o)
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	many := false
	fs.Visit(func(f *flag.Flag) {
		o.one = o.one || f.Name == "seed"
		many = many || f.Name == "seeds" || f.Name == "from" || f.Name == "j"
	})
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("%q is no option", fs.Arg(0))
	case o.one && many:
		return o, errors.New("--seed is about one seed; --seeds, --from and -j about many")
	case o.trace && !o.one:
		return o, errors.New("--trace needs --seed: nobody could read more")
	case o.jobs < 1:
		return o, fmt.Errorf("-j %d: want 1 or more", o.jobs)
	}
	return o, nil
}

// run does what args say and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if page().Answer(args, stdout) {
		return exitOK
	}
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "xcheck: %v\n%s", err, usage)
		return exitUsage
	}
	if o.one {
		return runOne(o, stdout, stderr)
	}
	return runMany(o, stdout, stderr)
}

// finding is what a seed found, as JSON.
type finding struct {
	Seed     uint64 `json:"seed"`
	Scenario string `json:"scenario"`
	Error    string `json:"error,omitempty"`
	Requests int    `json:"requests"`
	Failed   int    `json:"failed"`
	Hash     string `json:"hash"`
}

func found(res *check.Result, err error) finding {
	f := finding{
		Seed: res.Scenario.Seed, Scenario: res.Scenario.String(),
		Requests: res.Requests, Failed: res.Failed, Hash: fmt.Sprintf("%016x", res.Hash),
	}
	if err != nil {
		f.Error = err.Error()
	}
	return f
}

func runOne(o options, stdout, stderr io.Writer) int {
	var opt check.Options
	if o.trace {
		opt.Log = stderr
	}
	res, err := check.Run(o.seed, opt)
	if o.json {
		_ = json.NewEncoder(stdout).Encode(found(&res, err))
	} else {
		fmt.Fprintf(stdout, "seed %d: %v\n", o.seed, &res.Scenario)
		fmt.Fprintf(stdout, "%d requests, %d of them failed or were lost in a crash; %d messages delivered; %v simulated; trace %016x\n",
			res.Requests, res.Failed, res.Delivered, mono.Duration(res.Virtual), res.Hash)
	}
	if err != nil {
		fmt.Fprintf(stderr, "xcheck: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// campaign is what the workers of runMany share.
type campaign struct {
	options
	next atomic.Uint64 // seeds begun

	mu       sync.Mutex // guards what follows, and the output
	stdout   io.Writer
	stderr   io.Writer
	start    mono.Time
	finished uint64
	totals   totals
}

// totals is the sum over all seeds, as JSON.
type totals struct {
	Seeds     uint64  `json:"seeds"`
	Wrong     int     `json:"wrong"`
	Requests  int     `json:"requests"`
	Failed    int     `json:"failed"`
	Delivered int     `json:"delivered"`
	Seconds   float64 `json:"seconds"`
}

func runMany(o options, stdout, stderr io.Writer) int {
	c := &campaign{options: o, stdout: stdout, stderr: stderr, start: mono.Real{}.Now()}
	var workers sync.WaitGroup
	for range o.jobs {
		workers.Go(c.work)
	}
	workers.Wait()
	c.totals.Seeds = c.finished
	c.totals.Seconds = mono.Real{}.Now().Sub(c.start).Seconds()
	if o.json {
		_ = json.NewEncoder(stdout).Encode(c.totals)
	} else {
		fmt.Fprintf(stdout, "%d seeds, %d requests (%d failed or lost in a crash), %d messages delivered, %.1f s: %d seeds found something wrong\n",
			c.totals.Seeds, c.totals.Requests, c.totals.Failed, c.totals.Delivered, c.totals.Seconds, c.totals.Wrong)
	}
	if c.totals.Wrong > 0 {
		return exitFailed
	}
	return exitOK
}

// work plays one seed after the other.
func (c *campaign) work() {
	for {
		n := c.next.Add(1) - 1
		if n >= c.seeds {
			return
		}
		res, err := check.Run(c.from+n, check.Options{})
		if !c.took(&res, err) {
			return
		}
	}
}

// took adds up what a seed did. It returns false when enough of them have failed.
func (c *campaign) took(res *check.Result, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished++
	c.totals.Requests += res.Requests
	c.totals.Failed += res.Failed
	c.totals.Delivered += res.Delivered
	if err != nil && c.totals.Wrong < most {
		c.totals.Wrong++
		if c.json {
			_ = json.NewEncoder(c.stdout).Encode(found(res, err))
		} else {
			fmt.Fprintf(c.stdout, "seed %d: %v\n\t%v\n\tagain: xcheck --seed %d --trace\n", res.Scenario.Seed, &res.Scenario, err, res.Scenario.Seed)
		}
	}
	if every := max(1, c.seeds/20); c.finished%every == 0 && c.finished < c.seeds {
		fmt.Fprintf(c.stderr, "xcheck: %d of %d seeds, %.0f s\n", c.finished, c.seeds, mono.Real{}.Now().Sub(c.start).Seconds())
	}
	return c.totals.Wrong < most
}

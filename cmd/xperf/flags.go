package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/testbed"
)

// defaultPort is the TCP port of the control connection, as perftest has it.
const defaultPort = 18515

// options is what the command line asks for.
type options struct {
	command string // a test, "serve" or "compare"
	host    string // "" on the server
	spec    bench.Spec
	given   map[string]bool // flags that were set, and "test"

	testbed  bool
	joined   testbed.Switch
	device   string
	capture  string // pcapng file that the client writes, or ""
	cores    []int
	json     bool
	rounds   int
	vs       *options // the second configuration, or nil
	port     int
	listen   string
	patience time.Duration
	help     bool
}

// vsFlags are what a second configuration may change. Everything else holds
// for both.
var vsFlags = []string{"test", "transport", "fabric", "mtu", "size", "iters", "warmup", "window", "loss", "cores", "capture"}

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", bench.ErrUsage, fmt.Sprintf(format, args...))
}

// parse reads the command line. Its errors wrap bench.ErrUsage.
func parse(args []string) (*options, error) {
	o := &options{port: defaultPort, patience: 10 * time.Second, given: map[string]bool{}}
	o.spec.Warmup = -1
	var vs string
	places, err := o.flags(args, &vs)
	if err != nil || o.help {
		return o, err
	}
	if len(places) == 0 {
		return nil, usagef("no test given; the tests are %s", strings.Join(bench.Names(), ", "))
	}
	if len(places) > 2 {
		return nil, usagef("%q is too much: there is one TEST and one HOST", places[2:])
	}
	o.command = places[0]
	if len(places) == 2 {
		o.host = places[1]
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.given["vs"] {
		if o.vs, err = o.second(strings.Fields(vs)); err != nil {
			return nil, fmt.Errorf("--vs: %w", err)
		}
		if !o.testbed && onXDP(o) && onXDP(o.vs) {
			return nil, usagef("--vs: a device carries one of two configurations on AF_XDP at a time: compare them with --testbed, which gives each a device of its own")
		}
	}
	return o, nil
}

func onXDP(o *options) bool { return strings.HasPrefix(o.spec.Fabric, "xdp") }

// flags reads flags and returns what stands between them. Flags may stand
// before and after TEST and HOST.
func (o *options) flags(args []string, vs *string) (places []string, err error) {
	fs := flag.NewFlagSet("xperf", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var sizes, cores string
	fs.BoolVar(&o.testbed, "testbed", o.testbed, "")
	fs.IntVar(&o.spec.MTU, "mtu", o.spec.MTU, "")
	fs.Func("switch", "", func(s string) (err error) {
		o.joined, err = testbed.ParseSwitch(s)
		return err
	})
	fs.StringVar(&o.spec.Transport, "transport", o.spec.Transport, "")
	fs.StringVar(&o.spec.Fabric, "fabric", o.spec.Fabric, "")
	fs.StringVar(&o.device, "device", o.device, "")
	fs.StringVar(&o.capture, "capture", o.capture, "")
	fs.StringVar(&sizes, "size", "", "")
	fs.IntVar(&o.spec.Iters, "iters", o.spec.Iters, "")
	fs.IntVar(&o.spec.Warmup, "warmup", o.spec.Warmup, "")
	fs.IntVar(&o.spec.Window, "window", o.spec.Window, "")
	fs.Float64Var(&o.spec.Loss, "loss", o.spec.Loss, "")
	fs.BoolVar(&o.json, "json", o.json, "")
	fs.StringVar(vs, "vs", "", "")
	fs.IntVar(&o.rounds, "rounds", o.rounds, "")
	fs.StringVar(&cores, "cores", "", "")
	fs.IntVar(&o.port, "port", o.port, "")
	fs.StringVar(&o.listen, "listen", o.listen, "")
	fs.DurationVar(&o.patience, "connect-timeout", o.patience, "")
	for len(args) > 0 {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			o.help = true
			return nil, nil
		} else if err != nil {
			return nil, usagef("%v", err)
		}
		if args = fs.Args(); len(args) > 0 {
			places, args = append(places, args[0]), args[1:]
		}
	}
	fs.Visit(func(f *flag.Flag) { o.given[f.Name] = true })
	if sizes != "" {
		if o.spec.Sizes, err = bench.ParseSizes(sizes); err != nil {
			return nil, err
		}
	}
	if cores != "" {
		if o.cores, err = parseCores(cores); err != nil {
			return nil, err
		}
	}
	return places, nil
}

func parseCores(list string) ([]int, error) {
	var cores []int
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, usagef("%q is no list of cores: give the server's core and the client's, as in --cores 2,3", list)
		}
		cores = append(cores, n)
	}
	return cores, nil
}

// check judges what the flags say together, and fills in defaults.
func (o *options) check() error {
	switch {
	case o.testbed && o.host != "":
		return usagef("--testbed has both ends on this machine: leave HOST %s away", o.host)
	case o.testbed && o.device != "":
		return usagef("--testbed makes its own devices: leave --device away")
	case o.port < 0 || o.port > 65535:
		return usagef("port %d is outside of 0 to 65535", o.port)
	case o.patience <= 0:
		return usagef("connect-timeout %v is not positive", o.patience)
	case o.rounds < 0 || o.rounds > 1000 || o.given["rounds"] && o.rounds == 0:
		return usagef("rounds %d is outside of 1 to 1000", o.rounds)
	case o.given["window"] && o.spec.Window == 0:
		return usagef("window 0 is outside of 1 to %d", bench.MaxWindow)
	case o.given["iters"] && o.spec.Iters == 0:
		return usagef("iters 0 is outside of 1 to %d", bench.MaxIters)
	case o.given["size"] && o.spec.Sizes == nil:
		return usagef("--size is empty")
	}
	allowed, err := bench.AllowedCores()
	if err != nil {
		return err
	}
	if err := bench.CheckCores(o.cores, allowed); err != nil {
		return err
	}
	if o.cores == nil {
		o.cores = bench.PickCores(allowed)
	}
	if o.command == "serve" || o.command == "compare" {
		return o.checkCommand()
	}
	o.given["test"] = true
	o.spec.Test = o.command
	if err := o.spec.Check(); err != nil || o.capture == "" {
		return err
	}
	if o.host == "" && !o.testbed {
		return usagef("--capture is for the client: give it where HOST is given")
	}
	return o.spec.CheckCapture()
}

// checkCommand judges the flags of serve and compare, which are no tests.
func (o *options) checkCommand() error {
	allowed := []string{"device", "cores", "port", "listen"}
	if o.command == "compare" {
		allowed = []string{"testbed", "switch", "mtu", "cores", "json", "rounds"}
		if !o.testbed {
			return usagef("compare needs --testbed: it measures AF_XDP beside kernel sockets on this machine")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.given)) {
		if !slices.Contains(allowed, name) {
			return usagef("%s does not take --%s", o.command, name)
		}
	}
	if o.host != "" {
		return usagef("%s does not take a HOST", o.command)
	}
	return nil
}

// second reads the configuration to compare with: the first one, changed by
// the flags of --vs, which may begin with another test.
func (o *options) second(args []string) (*options, error) {
	b := *o
	b.given = map[string]bool{}
	b.spec.Sizes = slices.Clone(o.spec.Sizes)
	b.capture = "" // each writes a file of its own
	var vs string
	places, err := b.flags(args, &vs)
	if err != nil {
		return nil, err
	}
	if len(places) > 1 || b.help {
		return nil, usagef("%q: give flags, and at most another test before them", args)
	}
	if len(places) == 1 {
		b.command = places[0]
		b.given["test"] = true
	}
	for _, name := range slices.Sorted(maps.Keys(b.given)) {
		if !slices.Contains(vsFlags, name) {
			return nil, usagef("--%s holds for both configurations: give it outside of --vs", name)
		}
	}
	if !b.given["transport"] && b.given["test"] {
		b.spec.Transport = "" // what suits the other test
	}
	maps.Copy(b.given, o.given)
	if err := b.check(); err != nil {
		return nil, err
	}
	if b.capture != "" && b.capture == o.capture {
		return nil, usagef("--capture %s: the two configurations cannot write one file", o.capture)
	}
	return &b, bench.CheckPair(o.spec, b.spec)
}

// address returns where the server of the client o is.
func (o *options) address() string {
	if _, _, err := net.SplitHostPort(o.host); err == nil {
		return o.host
	}
	return net.JoinHostPort(o.host, strconv.Itoa(o.port))
}

// configurations returns one or two sets of options.
func (o *options) configurations() []*options {
	if o.vs == nil {
		return []*options{o}
	}
	return []*options{o, o.vs}
}

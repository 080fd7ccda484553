package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/cmd/internal/getopt"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// defaultPort is the TCP port of the control connection, as perftest has it.
const defaultPort = 18515

// options is what the command line asks for.
type options struct {
	command string   // a test, "serve", "compare", "memory" or "plot"
	host    string   // "" on the server
	table   string   // compare: which one
	files   []string // plot: results
	spec    bench.Spec
	given   map[string]bool // flags that were set, and "test"

	testbed  bool
	joined   testbed.Switch
	device   string
	capture  string // pcapng file that the client writes, or ""
	cores    []int
	json     bool
	markdown bool
	plot     string // file to draw
	rounds   int
	duration time.Duration // per size
	netns    []string      // further hosts of a server, see --netns
	vs       *options      // the second configuration, or nil
	control
	jobs
	job     bool // the ranks of the test start together
	twoEnds bool // the test has, so that -n is perftest's
	both    bool // perftest's -b: the test is the one that sends both ways
	help    bool // on command, or on everything without one
}

// control is how the two ends reach each other.
type control struct {
	port    int
	listen  string
	timeout time.Duration
	keyFile string
	key     []byte // from keyFile, or nil
}

// jobs is what tests are asked for whose ranks start together.
type jobs struct {
	tests    []string // compare peers: default all
	ranks    []int    // of collectives
	best     bool     // of all bursts the best one counts
	ghosts   []int    // mpi_overlap: of each host
	progress []string // mpi_overlap: threads that make progress
	compute  []int    // mpi_overlap: microseconds
	matrix   bool     // compare peers: judge all cells
	quick    bool     // in two minutes
	out      string   // file that they are kept in
}

// vsFlags are what a second configuration may change. Everything else holds
// for both.
var vsFlags = []string{"test", "transport", "fabric", "ipv6", "mtu", "size", "iters", "warmup", "window", "loss", "op", "peers", "crc", "markers", "all", "cores", "bulk", "busy-poll", "secure", "capture", "eager", "eager-idle", "eager-near", "rendezvous"}

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", bench.ErrUsage, fmt.Sprintf(format, args...))
}

// parse reads the command line. Its errors wrap bench.ErrUsage.
func parse(args []string) (*options, error) {
	o := &options{control: control{port: defaultPort, timeout: 10 * time.Second}, given: map[string]bool{}}
	o.spec.Warmup = -1
	var vs string
	places, err := o.flags(args, &vs)
	if err != nil {
		return o, err
	}
	if err := o.arrange(places); err != nil || o.help {
		return o, err
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

// arrange sorts what stands between the flags.
func (o *options) arrange(places []string) error {
	if len(places) == 0 {
		if o.help {
			return nil
		}
		return usagef("no test given; the tests are %s", strings.Join(bench.Names(), ", "))
	}
	o.command, places = places[0], places[1:]
	if err := o.bothWays(); err != nil {
		return err
	}
	switch {
	case o.command == "plot":
		o.files = places
		return nil
	case len(places) > 1:
		return usagef("%q is too much: there is one TEST and one HOST", places[1:])
	case len(places) == 0:
		return nil
	case o.command == "compare":
		o.table = places[0]
	default:
		o.host = places[0]
	}
	return nil
}

func onXDP(o *options) bool { return strings.HasPrefix(o.spec.Fabric, "xdp") }

// flagSet defines the flags, of which three are read later.
func (o *options) flagSet(vs, sizes, netns *string) *flag.FlagSet {
	fs := flag.NewFlagSet("xperf", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.spec.All, "all", o.spec.All, "")
	fs.BoolVar(&o.spec.All, "a", o.spec.All, "")
	fs.BoolVar(&o.both, "bidirectional", o.both, "")
	fs.StringVar(&o.spec.Op, "op", o.spec.Op, "")
	fs.IntVar(&o.spec.Peers, "peers", o.spec.Peers, "")
	fs.BoolVar(&o.spec.CRC, "crc", o.spec.CRC, "")
	fs.BoolVar(&o.spec.Markers, "markers", o.spec.Markers, "")
	fs.BoolVar(&o.markdown, "markdown", o.markdown, "")
	fs.StringVar(&o.plot, "plot", o.plot, "")
	parsed(fs, "duration", &o.duration, parseSeconds)
	fs.StringVar(netns, "netns", "", "")
	o.mpiFlags(fs)
	fs.BoolVar(&o.testbed, "testbed", o.testbed, "")
	fs.IntVar(&o.spec.MTU, "mtu", o.spec.MTU, "")
	fs.BoolVar(&o.spec.IPv6, "ipv6", o.spec.IPv6, "")
	fs.BoolVar(&o.spec.IPv6, "6", o.spec.IPv6, "")
	parsed(fs, "switch", &o.joined, testbed.ParseSwitch)
	fs.StringVar(&o.spec.Transport, "transport", o.spec.Transport, "")
	fs.StringVar(&o.spec.Fabric, "fabric", o.spec.Fabric, "")
	fs.StringVar(&o.device, "device", o.device, "")
	fs.StringVar(&o.capture, "capture", o.capture, "")
	fs.StringVar(sizes, "size", "", "")
	fs.IntVar(&o.spec.Iters, "iters", o.spec.Iters, "")
	fs.IntVar(&o.spec.Warmup, "warmup", o.spec.Warmup, "")
	fs.IntVar(&o.spec.Window, "window", o.spec.Window, "")
	parsed(fs, "loss", &o.spec.Loss, parseShare)
	fs.BoolVar(&o.json, "json", o.json, "")
	fs.StringVar(vs, "vs", "", "")
	fs.IntVar(&o.rounds, "rounds", o.rounds, "")
	parsed(fs, "cores", &o.cores, parseCores)
	fs.StringVar(&o.spec.Bulk, "bulk", o.spec.Bulk, "")
	fs.BoolVar(&o.spec.BusyPoll, "busy-poll", o.spec.BusyPoll, "")
	fs.BoolVar(&o.spec.Secure, "secure", o.spec.Secure, "")
	fs.StringVar(&o.keyFile, "secure-key", o.keyFile, "")
	fs.IntVar(&o.port, "port", o.port, "")
	fs.StringVar(&o.listen, "listen", o.listen, "")
	fs.DurationVar(&o.timeout, "connect-timeout", o.timeout, "")
	return fs
}

// flags reads flags and returns what stands between them. Flags may stand
// before and after TEST and HOST.
func (o *options) flags(args []string, vs *string) (places []string, err error) {
	var sizes, netns string
	fs := o.flagSet(vs, &sizes, &netns)
	peers := o.peerFlags(args)
	hints := peers.define(fs)
	for len(args) > 0 {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			o.help = true
			return append(places, topic(fs.Args())...), nil
		} else if err != nil {
			return nil, usagef("%v", getopt.Explain(err, hints))
		}
		if args = fs.Args(); len(args) > 0 {
			places, args = append(places, args[0]), args[1:]
		}
	}
	fs.Visit(func(f *flag.Flag) {
		if _, theirs := peers[f.Name]; !theirs {
			o.given[f.Name] = true
		}
	})
	for short, long := range map[string]string{"a": "all", "6": "ipv6"} {
		if o.given[short] {
			delete(o.given, short)
			o.given[long] = true
		}
	}
	if o.twoEnds {
		delete(o.given, "n") // which is --iters then
	}
	if netns != "" {
		o.netns = strings.Split(netns, ",")
	}
	if sizes != "" {
		if o.spec.Sizes, err = bench.ParseSizes(sizes); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// parsed defines a flag whose value parse reads.
func parsed[T any](fs *flag.FlagSet, name string, to *T, parse func(string) (T, error)) {
	fs.Func(name, "", func(s string) (err error) {
		*to, err = parse(s)
		return err
	})
}

// parseEager reads a size, -1 for none.
func parseEager(s string) (int, error) {
	if s == "-1" {
		return -1, nil
	}
	sizes, err := bench.ParseSizes(s)
	if err == nil && (len(sizes) != 1 || sizes[0] == 0) {
		err = usagef("%q is no limit: write one size, as in 16K, or -1 for none", s)
	}
	if err != nil {
		return 0, err
	}
	return sizes[0], nil
}

// topic returns what `--help` stands before, if anything.
func topic(rest []string) []string {
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil
	}
	return rest[:1]
}

// parseShare reads a share: 0.01 or 1%.
func parseShare(text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no share: write it as in 0.01 or 1%%", text)
	}
	if percent {
		share /= 100
	}
	return share, nil
}

// parseSeconds reads a time: 10, 0.5 or 2m.
func parseSeconds(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		text = strconv.FormatFloat(seconds, 'f', -1, 64) + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > 24*time.Hour {
		return 0, fmt.Errorf("%q is no time to measure for: write seconds, as in 10, up to a day", text)
	}
	return d, nil
}

func parseCores(list string) ([]int, error) {
	return bench.ParseInts(list, func(n int) bool { return n >= 0 }, "cores: give the server's core and the client's, as in --cores 2,3")
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
	case o.timeout <= 0:
		return usagef("connect-timeout %v is not positive", o.timeout)
	}
	if err := o.checkAmounts(); err != nil {
		return err
	}
	if err := o.readKey(); err != nil {
		return err
	}
	allowed, err := launch.AllowedCPUs()
	if err != nil {
		return err
	}
	if err := bench.CheckCores(o.cores, allowed); err != nil {
		return err
	}
	if o.cores == nil {
		o.cores = bench.PickCores(allowed)
	}
	if _, ok := commandFlags[o.command]; ok {
		return o.checkCommand()
	}
	if c, ok := bench.Find(o.command); ok && c.Job() {
		return o.checkJob(c)
	}
	if name := o.first("markdown", "netns", "n", "tests", "best", "ghosts", "progress", "compute", "matrix", "quick", "out"); name != "" {
		return usagef("%s does not take --%s", o.command, name)
	}
	o.given["test"] = true
	o.spec.Test = o.command
	if !o.testbed {
		if err := bench.CheckKey(o.spec, o.key); err != nil {
			return err
		}
	}
	if err := o.spec.Check(); err != nil || o.capture == "" {
		return err
	}
	if o.host == "" && !o.testbed {
		return usagef("--capture is for the client: give it where HOST is given")
	}
	return o.spec.CheckCapture()
}

// readKey reads the key of the control connection.
func (o *options) readKey() (err error) {
	switch {
	case !o.given["secure-key"] || o.key != nil:
		return nil
	case o.testbed:
		return usagef("--testbed draws a key of its own: leave --secure-key away")
	}
	o.key, err = bench.ReadKey(o.keyFile)
	return err
}

// checkAmounts judges how much is to be measured. What the bench itself checks
// has a default at 0, which is no valid value of a flag.
func (o *options) checkAmounts() error {
	switch {
	case o.rounds < 0 || o.rounds > 1000 || o.given["rounds"] && o.rounds == 0:
		return usagef("rounds %d is outside of 1 to 1000", o.rounds)
	case o.given["rounds"] && o.given["duration"] && !o.startsAll():
		return usagef("--duration measures as many rounds as it takes: leave --rounds away")
	case o.given["window"] && o.spec.Window == 0:
		return usagef("window 0 is outside of 1 to %d", bench.MaxWindow)
	case o.given["iters"] && o.spec.Iters == 0:
		return usagef("iters 0 is outside of 1 to %d", bench.MaxIters)
	case o.given["peers"] && o.spec.Peers == 0:
		return usagef("peers 0 is outside of 1 to %d", bench.MaxPeers)
	case o.given["size"] && o.spec.Sizes == nil:
		return usagef("--size is empty")
	case o.given["plot"] && o.plot == "":
		return usagef("--plot is empty: name a file, as in --plot latency.svg")
	}
	return nil
}

// commandFlags are the commands that are no tests, and the flags that they take.
var commandFlags = map[string][]string{
	rankCommand: {},
	"serve":     {"device", "ipv6", "netns", "cores", "port", "listen", "secure-key"},
	"compare":   {"testbed", "switch", "mtu", "size", "cores", "json", "markdown", "plot", "rounds", "duration", "loss", "n", "tests", "best", "matrix", "quick", "out"},
	"memory":    {"peers", "json", "markdown", "plot"},
	"plot":      {"plot"},
}

// checkCommand judges the flags of what is no test.
func (o *options) checkCommand() error {
	if err := o.only(o.command, commandFlags[o.command]...); err != nil {
		return err
	}
	switch {
	case o.host != "":
		return usagef("%s does not take a HOST", o.command)
	case o.command == "compare" && !o.testbed && !(o.matrix && o.out != ""):
		return usagef("compare needs --testbed: it measures AF_XDP beside kernel sockets on this machine")
	case o.json && o.markdown:
		return usagef("--json and --markdown at once: give one of them")
	case o.command == "plot" && len(o.files) == 0:
		return usagef("plot needs files that hold what xperf --json wrote")
	case o.command != "compare":
		return nil
	}
	o.table = cmp.Or(o.table, "mpi")
	if ofRanks(o.table) {
		return o.checkPeers()
	}
	if name := o.first("n", "tests", "best", "matrix", "quick", "out"); name != "" {
		return usagef("compare %s does not take --%s: it is for compare %s, %s and %s", o.table, name, peersTable, algorithmsTable, abiTable)
	}
	_, err := bench.FindComparison(o.table, bench.Root())
	return err
}

// checkPeers judges the flags of the tables of several libraries and algorithms.
func (o *options) checkPeers() error {
	flags := []string{"testbed", "mtu", "size", "cores", "json", "markdown", "plot", "rounds", "duration", "n", "tests", "best"}
	if o.table == peersTable {
		flags = append(flags, "matrix", "quick", "out")
	}
	if (o.quick || o.given["out"]) && !o.matrix {
		return usagef("--quick and --out are for compare peers --matrix")
	}
	return o.only("compare "+o.table, flags...)
}

// checkJob judges the flags of a test that starts all ranks itself.
func (o *options) checkJob(c bench.Case) error {
	o.job = true
	switch {
	case o.host != "":
		return usagef("%s starts all ranks itself: leave HOST %s away", o.command, o.host)
	case !o.testbed:
		return usagef("%s needs --testbed, which makes the hosts of the ranks", o.command)
	}
	if name := o.first("iters", "warmup", "window"); name != "" {
		return usagef("%s does not take --%s: its bursts last as long as --duration says", o.command, name)
	}
	flags := []string{"testbed", "fabric", "mtu", "size", "cores", "json", "markdown", "plot", "rounds", "duration", "best"}
	if c.Kind == bench.Computing {
		return errors.Join(o.only(o.command, append(flags, "op", "ghosts", "progress", "compute")...), o.checkOverlap())
	}
	if c.Kind == bench.Trials {
		flags = append(slices.DeleteFunc(flags, func(name string) bool { return name == "size" }), "op")
		err := o.only(o.command, flags...)
		if o.spec.Op != "" {
			_, wrong := bench.ParseExperiments(o.spec.Op)
			err = errors.Join(err, wrong)
		}
		return err
	}
	return o.only(o.command, append(flags, "n")...)
}

// checkOverlap judges what is asked for of mpi_overlap, and fills in defaults.
func (o *options) checkOverlap() error {
	if o.ghosts == nil {
		o.ghosts = []int{0, 1}
	}
	if len(o.spec.Sizes) > 1 {
		return usagef("mpi_overlap has a row for each time that the target computes (--compute), and one --size")
	}
	for _, n := range o.spec.Sizes {
		if err := bench.CheckOverlapSize(n); err != nil {
			return err
		}
	}
	if o.spec.Op == "" {
		return nil
	}
	_, err := bench.ParseOverlapOps(o.spec.Op)
	return err
}

// startsAll reports whether the command starts all ranks itself. Its bursts
// have a length of time, and there may be any number.
func (o *options) startsAll() bool {
	c, _ := bench.Find(o.command)
	return ofRanks(o.table) || c.Job()
}

// first returns the first of these flags that was given, or "".
func (o *options) first(names ...string) string {
	for _, name := range names {
		if o.given[name] {
			return name
		}
	}
	return ""
}

// only refuses all flags but these.
func (o *options) only(command string, names ...string) error {
	for _, name := range slices.Sorted(maps.Keys(o.given)) {
		if !slices.Contains(names, name) {
			return usagef("%s does not take --%s", command, name)
		}
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
	b.both = false // its test is the first one's
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
	if err := b.bothWays(); err != nil {
		return nil, err
	}
	if b.startsAll() {
		return nil, usagef("%s has no two ends, so there is nothing to take turns with", b.command)
	}
	for _, name := range slices.Sorted(maps.Keys(b.given)) {
		if !slices.Contains(vsFlags, name) {
			return nil, usagef("--%s holds for both configurations: give it outside of --vs", name)
		}
	}
	if b.given["test"] { // what suits the other test
		if !b.given["transport"] {
			b.spec.Transport = ""
		}
		if !b.given["op"] {
			b.spec.Op = ""
		}
		if !b.given["peers"] {
			b.spec.Peers = 1
		}
	}
	if (b.given["test"] || b.given["transport"]) && b.spec.Transport != "rc" { // what only connections have
		b.spec.CRC = b.spec.CRC && b.given["crc"]
		b.spec.Markers = b.spec.Markers && b.given["markers"]
	}
	if b.given["size"] {
		b.spec.All = false
	}
	if b.given["all"] {
		b.spec.Sizes = nil
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
func (o *options) address() string { return withPort(o.host, strconv.Itoa(o.port)) }

// configurations returns one or two sets of options.
func (o *options) configurations() []*options {
	if o.vs == nil {
		return []*options{o}
	}
	return []*options{o, o.vs}
}

package main

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/bench"
)

func TestParse(t *testing.T) {
	o, err := parse(strings.Fields("send_lat --size 8,4K 192.0.2.1 --fabric xdp:driver --iters 7 --warmup 0 --json --port 99 --connect-timeout 2s"))
	if err != nil {
		t.Fatal(err)
	}
	if o.command != "send_lat" || o.address() != "192.0.2.1:99" || !o.json || o.timeout != 2*time.Second {
		t.Errorf("got %+v", o)
	}
	s := o.spec
	if s.Fabric != "xdp:driver" || s.Transport != "rd" || !slices.Equal(s.Sizes, []int{8, 4096}) || s.Iters != 7 || s.Warmup != 0 {
		t.Errorf("got %+v", s)
	}
	if len(o.cores) == 0 {
		t.Error("no cores chosen")
	}
	if o, err := parse([]string{"raw_lat", "host:1"}); err != nil || o.address() != "host:1" {
		t.Errorf("HOST with a port: %v", err)
	}
}

func TestParse_amounts(t *testing.T) {
	for _, c := range []struct {
		args string
		want func(*options) bool
	}{
		{"write_bw -a", func(o *options) bool { return o.spec.All && o.given["all"] && !o.given["a"] }},
		{"write_bw --all", func(o *options) bool { return o.spec.All && o.given["all"] }},
		{"write_bw --loss 1%", func(o *options) bool { return o.spec.Loss == 0.01 }},
		{"write_bw --loss 0.2", func(o *options) bool { return o.spec.Loss == 0.2 }},
		{"write_bw --duration 10", func(o *options) bool { return o.duration == 10*time.Second }},
		{"write_bw --duration .5", func(o *options) bool { return o.duration == time.Second/2 }},
		{"write_bw --duration 2m", func(o *options) bool { return o.duration == 2*time.Minute }},
		{"atomic_lat --op swap", func(o *options) bool { return o.spec.Op == "swap" }},
		{"atomic_lat", func(o *options) bool { return o.spec.Op == "fetch_add" && o.spec.Peers == 1 }},
		{"send_rate --peers 8 --transport ud", func(o *options) bool { return o.spec.Peers == 8 && o.spec.Transport == "ud" }},
		{"send_rate --peers 8 --fabric tcp", func(o *options) bool { return o.spec.Peers == 8 && o.spec.Transport == "rc" }},
		{"send_lat --transport rc --crc --markers", func(o *options) bool { return o.spec.CRC && o.spec.Markers && o.spec.Fabric == "xdp" }},
		{"serve --netns a,b", func(o *options) bool { return slices.Equal(o.netns, []string{"a", "b"}) }},
		{"memory --peers 5000 --json", func(o *options) bool { return o.command == "memory" && o.spec.Peers == 5000 && o.json }},
		{"plot a.json b.json --plot c.svg", func(o *options) bool { return len(o.files) == 2 && o.plot == "c.svg" }},
		{"compare --testbed", func(o *options) bool { return o.table == "mpi" }},
		{"compare verbs --testbed --markdown", func(o *options) bool { return o.table == "verbs" && o.markdown }},
		{"compare algorithms --testbed -n 4 --tests mpi_bcast", func(o *options) bool { return o.table == algorithmsTable && o.startsAll() }},
		{"mpi_bcast --testbed --best", func(o *options) bool { return o.best && o.job }},
		{"compare peers --testbed -n 2,4 --tests mpi_lat,mpi_bcast --mtu 9000", func(o *options) bool {
			return slices.Equal(o.ranks, []int{2, 4}) && slices.Equal(o.tests, []string{"mpi_lat", "mpi_bcast"})
		}},
		{"mpi_allreduce --testbed -n 8 --size 8:64 --fabric udp", func(o *options) bool {
			return o.job && slices.Equal(o.ranks, []int{8}) && len(o.spec.Sizes) == 4 && o.spec.Fabric == "udp"
		}},
		{"write_lat --help", func(o *options) bool { return o.help && o.command == "write_lat" }},
		{"--help write_lat", func(o *options) bool { return o.help && o.command == "write_lat" }},
		{"--help --testbed", func(o *options) bool { return o.help && o.command == "" }},
	} {
		o, err := parse(strings.Fields(c.args))
		if err != nil || !c.want(o) {
			t.Errorf("%s: %v, %+v", c.args, err, o)
		}
	}
}

// Flags of perftest and of the OSU micro-benchmarks mean what they mean there.
func TestParse_peerFlags(t *testing.T) {
	for _, c := range []struct{ theirs, ours string }{
		{"send_lat -s 64KB -n 100 -p 99 -F -R", "send_lat --size 64K --iters 100 --port 99"},
		{"-n 100 send_lat -D 2", "send_lat --iters 100 --duration 2"},
		{"write_bw -m 4096 -t 32 -c RC -N --report_gbits --out_json", "write_bw --mtu 4096 --window 32 --transport rc --json"},
		{"send_bw -b -s 8", "send_bibw --size 8"},
		{"read_bw --bidirectional", "read_bibw"},
		{"write_bibw -b", "write_bibw"},
		{"send_rate -q 4 -c UD", "send_rate --peers 4 --transport ud"},
		{"atomic_lat -A CMP_AND_SWAP", "atomic_lat --op cmp_swap"},
		{"mpi_bw -m 8:1K -i 100 -x 10 -W 32 -f", "mpi_bw --size 8:1K --iters 100 --warmup 10 --window 32"},
		{"mpi_lat -m 4 -u", "mpi_lat --size 1:4"},
		{"mpi_lat -m 1M:", "mpi_lat --size 1M:4M"},
		{"mpi_lat -s 8 -n 100", "mpi_lat --size 8 --iters 100"},
		{"mpi_bcast --testbed -m :64 -n 2 -f", "mpi_bcast --testbed --size 1:64 -n 2"},
		{"serve -d lo -p 99", "serve --device lo --port 99"},
	} {
		theirs, err := parse(strings.Fields(c.theirs))
		if err != nil {
			t.Errorf("%s: %v", c.theirs, err)
			continue
		}
		ours, err := parse(strings.Fields(c.ours))
		if err != nil {
			t.Fatalf("%s: %v", c.ours, err)
		}
		theirs.both = false
		if !reflect.DeepEqual(theirs.spec, ours.spec) || theirs.command != ours.command || theirs.port != ours.port || theirs.device != ours.device ||
			theirs.duration != ours.duration || theirs.json != ours.json || !slices.Equal(theirs.ranks, ours.ranks) {
			t.Errorf("%s is %+v, want that of %s: %+v", c.theirs, theirs.spec, c.ours, ours.spec)
		}
		delete(theirs.given, "test")
		delete(ours.given, "test")
		if !maps.Equal(theirs.given, ours.given) {
			t.Errorf("%s gives %v, want %v", c.theirs, theirs.given, ours.given)
		}
	}
	o, err := parse([]string{"send_bw", "--testbed", "-s", "8", "--vs", "-b -t 4"})
	if err != nil || o.vs.spec.Test != "send_bibw" || o.vs.spec.Window != 4 || o.spec.Test != "send_bw" {
		t.Errorf("one way beside both ways: %v, %+v", err, o)
	}
	o, err = parse([]string{"send_bw", "-b", "--testbed", "--vs", "mpi_bw -W 4"})
	if err != nil || o.vs.spec.Test != "mpi_bw" || o.vs.spec.Window != 4 || o.spec.Test != "send_bibw" {
		t.Errorf("both ways beside one: %v, %+v", err, o)
	}
}

// Hints name no flag of ours by another name, and what is another name is a flag.
func TestPeerFlags(t *testing.T) {
	var vs, sizes, netns string
	for _, all := range []peerFlags{perftestFlags(), osuFlags()} {
		o := &options{}
		fs := o.flagSet(&vs, &sizes, &netns)
		hints := all.define(fs)
		for name, theirs := range all {
			if theirs.to != "" && fs.Lookup(theirs.to) == nil {
				t.Errorf("-%s is --%s, which there is not", name, theirs.to)
			}
			if (theirs.hint == "") != (fs.Lookup(name) != nil) || hints[name] != theirs.hint {
				t.Errorf("-%s is a flag and has a hint, or neither", name)
			}
			for word := range strings.FieldsSeq(theirs.hint) {
				flag, ok := strings.CutPrefix(strings.Trim(word, ":,"), "--")
				if ok && flag != "version" && fs.Lookup(flag) == nil {
					t.Errorf("-%s: %q names a flag that there is not", name, theirs.hint)
				}
			}
		}
	}
}

func TestParse_vsOtherTest(t *testing.T) {
	o, err := parse([]string{"atomic_lat", "--op", "swap", "--testbed", "--vs", "read_lat --size 8"})
	if err != nil || o.vs.spec.Op != "" {
		t.Errorf("read_lat has no operations: %v", err)
	}
	o, err = parse([]string{"send_rate", "--peers", "4", "--testbed", "--vs", "raw_rate"})
	if err != nil || o.vs.spec.Peers != 1 {
		t.Errorf("raw_rate has one peer: %v", err)
	}
	o, err = parse([]string{"send_lat", "--transport", "rd", "--testbed", "--vs", "--transport rc --fabric tcp --crc"})
	if err != nil || o.vs.spec.Transport != "rc" || o.vs.spec.Fabric != "tcp" || !o.vs.spec.CRC || o.spec.CRC {
		t.Errorf("rd beside rc: %v", err)
	}
	o, err = parse([]string{"send_lat", "--fabric", "tcp", "--crc", "--testbed", "--vs", "raw_lat --size 8"})
	if err != nil || o.vs.spec.CRC || o.vs.spec.Transport != "none" || o.vs.spec.Fabric != "tcp" {
		t.Errorf("a plain socket has no CRC: %v", err)
	}
	o, err = parse([]string{"raw_lat", "--fabric", "tcp", "--testbed", "--vs", "send_lat --transport rc"})
	if err != nil || o.vs.spec.Transport != "rc" || o.vs.spec.Fabric != "tcp" {
		t.Errorf("rc beside a plain socket: %v", err)
	}
	o, err = parse([]string{"write_bw", "-a", "--testbed", "--vs", "--size 8"})
	if err == nil && o.vs.spec.All {
		t.Errorf("a size and all sizes: %+v", o.vs.spec)
	}
	o, err = parse([]string{"write_bw", "--testbed", "--vs", "--loss 1%"})
	if err != nil || o.vs.spec.Loss != 0.01 || o.spec.Loss != 0 {
		t.Errorf("loss on one side: %v", err)
	}
}

func TestParse_vs(t *testing.T) {
	o, err := parse([]string{"send_lat", "--size", "8", "--testbed", "--iters", "5", "--transport", "rd", "--vs", "raw_lat --size 64"})
	if err != nil {
		t.Fatal(err)
	}
	b := o.vs
	if b.command != "raw_lat" || b.spec.Test != "raw_lat" || b.spec.Transport != "none" || b.spec.Sizes[0] != 64 || b.spec.Iters != 5 {
		t.Errorf("second configuration: %+v", b)
	}
	if o.spec.Sizes[0] != 8 || o.spec.Test != "send_lat" || o.given["fabric"] {
		t.Errorf("the first one was changed: %+v", o)
	}
	if o, err = parse([]string{"mpi_bw", "--testbed", "--vs", "--fabric udp"}); err != nil || o.vs.spec.Fabric != "udp" || o.vs.spec.Test != "mpi_bw" {
		t.Errorf("only flags: %v", err)
	}
}

func TestParse_overlapErrors(t *testing.T) {
	for line, want := range map[string]string{
		"mpi_overlap":                                "needs --testbed",
		"mpi_overlap --testbed --op acc,add":         "there is no operation",
		"mpi_overlap --testbed --size 12":            "words of 8 bytes",
		"mpi_overlap --testbed --size 8,16":          "one --size",
		"mpi_overlap --testbed --compute 10,long":    "no list of microseconds",
		"mpi_overlap --testbed --ghosts 1000":        "no list of numbers of ghosts",
		"mpi_overlap --testbed -n 4":                 "does not take --n",
		"mpi_overlap --testbed --progress none":      "may be thread, thread-core or both",
		"mpi_ghosts":                                 "needs --testbed",
		"mpi_ghosts --testbed --op fence,acc":        "there is no experiment",
		"mpi_ghosts --testbed --size 8":              "does not take --size",
		"compare peers --testbed --tests mpi_ghosts": "is no test of MPI",
		"mpi_put_lat --testbed --ghosts 1":           "does not take --ghosts",
		"mpi_bcast --testbed --compute 10":           "does not take --compute",
		"mpi_overlap --testbed --ghosts 0 10.0.0.1":  "leave HOST",
	} {
		if _, err := parse(strings.Fields(line)); !errors.Is(err, bench.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestParse_errors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "no test given; the tests are raw_lat"},
		{"raw_lat a b", "one TEST and one HOST"},
		{"nonsense", "there is no test"},
		{"raw_lat --nonsense", "nonsense"},
		{"raw_lat --iters many", "many"},
		{"raw_lat --iters 0", "iters 0"},
		{"raw_lat --window 0", "window 0"},
		{"raw_lat --rounds 0", "rounds 0"},
		{"raw_lat --size=", "--size is empty"},
		{"raw_lat --size 1x", "is no size"},
		{"raw_lat --cores x", "is no list of cores"},
		{"raw_lat --cores 0,0,0", "there are two ends"},
		{"raw_lat --cores 4000", "core 4000 is not among"},
		{"raw_lat --port 70000", "port 70000"},
		{"raw_lat --connect-timeout 0s", "not positive"},
		{"raw_lat host --testbed", "leave HOST host away"},
		{"raw_lat --testbed --device eth1", "leave --device away"},
		{"raw_lat --loss 2", "loss 2"},
		{"raw_lat --fabric udp --testbed --capture f", "tcpdump"},
		{"send_lat --capture f", "--capture is for the client"},
		{"send_lat --testbed --capture f --vs --capture%f", "cannot write one file"},
		{"serve --capture f", "serve does not take --capture"},
		{"mpi_lat --secure", "needs a key that both ends have, or --testbed: --secure-key FILE"},
		{"mpi_lat host --secure", "needs a key that both ends have, or --testbed: --secure-key FILE"},
		{"mpi_lat host --secure-key none", "openssl rand -hex 32"},
		{"mpi_lat --testbed --secure-key none", "draws a key of its own"},
		{"mpi_lat --testbed --vs --secure-key%none", "holds for both configurations"},
		{"raw_lat --loss much", "is no share"},
		{"memory -n 2", "does not take --n"},
		{"mpi_bcast --testbed -i 3", "its bursts last as long as --duration says"},
		{"raw_bw -b", "--bidirectional is for streams"},
		{"send_lat -b", "--bidirectional is for streams"},
		{"send_bibw --transport ud", "does not run over ud"},
		{"send_lat -x 3", "there is no option -x: devices have no GIDs"},
		{"send_lat --gid-index=3", "there is no option -gid-index: devices have no GIDs"},
		{"send_lat -c UC", "there are RC, UD and RD"},
		{"atomic_lat -A XOR", "neither FETCH_AND_ADD nor CMP_AND_SWAP"},
		{"send_lat -n many", "many"},
		{"send_lat -q 4", "--peers is for send_rate"},
		{"mpi_bw -c", "there is no option -c: what arrives is not compared here"},
		{"mpi_bw -b single", "there is no option -b: messages come from one buffer"},
		{"mpi_bw -m 8:x", "is no size"},
		{"send_lat --testbed --best", "does not take --best"},
		{"compare algorithms --testbed --transport ud", "does not take --transport"},
		{"mpi_bcast", "needs --testbed"},
		{"mpi_bcast host --testbed", "leave HOST host away"},
		{"mpi_bcast --testbed --iters 3", "does not take --iters"},
		{"mpi_bcast --testbed -n 3", "write even ones"},
		{"mpi_lat --testbed --vs mpi_bcast", "has no two ends"},
		{"compare peers --testbed --tests raw_lat", "is no test of MPI"},
		{"compare peers --testbed --loss 0.1", "does not take --loss"},
		{"compare verbs --testbed -n 2", "it is for compare peers"},
		{"compare verbs --testbed --matrix", "it is for compare peers"},
		{"compare algorithms --testbed --matrix", "does not take --matrix"},
		{"compare peers --testbed --quick", "are for compare peers --matrix"},
		{"compare peers --matrix", "compare needs --testbed"},
		{"mpi_lat --testbed --out f", "does not take --out"},
		{"raw_lat --duration 0", "is no time"},
		{"raw_lat --duration 1e9", "is no time"},
		{"raw_lat --duration 1 --rounds 2", "leave --rounds away"},
		{"raw_lat --plot=", "--plot is empty"},
		{"raw_lat --markdown", "raw_lat does not take --markdown"},
		{"raw_lat --netns a", "raw_lat does not take --netns"},
		{"send_rate --peers 0", "peers 0"},
		{"send_lat --peers 2", "--peers is for send_rate"},
		{"write_bw --transport ud", "does not run over ud"},
		{"read_lat --op swap", "--op is for atomic_lat"},
		{"atomic_lat --op nand", "the operations are"},
		{"write_bw -a --size 8", "give one of them"},
		{"plot", "plot needs files"},
		{"memory --size 8", "memory does not take --size"},
		{"memory host", "memory does not take a HOST"},
		{"memory --json --markdown", "give one of them"},
		{"memory --peers 0", "peers 0"},
		{"plot x --json", "plot does not take --json"},
		{"compare nonsense --testbed", "the comparisons are mpi, verbs"},
		{"compare --testbed --json --markdown", "give one of them"},
		{"compare", "compare needs --testbed"},
		{"compare --testbed --fabric udp", "compare does not take --fabric"},
		{"serve --size 8", "serve does not take --size"},
		{"serve host", "serve does not take a HOST"},
		{"raw_lat --vs send_lat", "with --testbed"},
		{"raw_lat --vs raw_bw", "latency with latency"},
		{"raw_lat --vs raw_lat%x", "at most another test"},
		{"raw_lat --vs --json", "--json holds for both"},
		{"raw_lat --vs --testbed", "--testbed holds for both"},
		{"raw_lat --size 64,128 --vs --size%64", "as many sizes"},
		{"raw_lat --vs nonsense", "there is no test"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "CORE", anyCore(t)))
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "%", " ")
		}
		_, err := parse(args)
		if !errors.Is(err, bench.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v; want a usage error with %q", c.args, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("send_lat --size 8:4M --vs raw_lat host")
	f.Add("raw_bw --cores 1,2 --loss 0.1 -- x")
	f.Fuzz(func(t *testing.T, line string) {
		o, err := parse(strings.Fields(line))
		if err == nil && !o.help && o.command == "" {
			t.Fatalf("%q: neither an error nor a command", line)
		}
	})
}

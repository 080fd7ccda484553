package main

import (
	"errors"
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
	if o.command != "send_lat" || o.address() != "192.0.2.1:99" || !o.json || o.patience != 2*time.Second {
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
		args := strings.Fields(c.args)
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

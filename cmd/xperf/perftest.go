package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/cmd/internal/getopt"
)

// peerFlag is a flag of perftest or of the OSU micro-benchmarks: what it is called
// here, or what to do instead.
type peerFlag struct {
	to   string                             // the flag here; "" without a hint: it changes nothing
	bare bool                               // it takes no value
	read func(value string) (string, error) // makes the value of ours
	hint string                             // why there is none here
}

// peerFlags are those that a command line may have, by name.
type peerFlags map[string]peerFlag

func as(name string) peerFlag { return peerFlag{to: name} }

// perftestFlags are the flags of perftest (ib_send_lat and its like) that xperf
// has not, and those with another name here.
func perftestFlags() peerFlags {
	idle, both := peerFlag{bare: true}, peerFlag{to: "bidirectional", bare: true}
	cm := idle // queue pairs of rc are connected by a connection manager in any case
	flags := peerFlags{
		"s": as("size"), "D": as("duration"), "d": as("device"), "ib-dev": as("device"), "p": as("port"),
		"m": as("mtu"), "q": as("peers"), "qp": as("peers"), "t": as("window"), "tx-depth": as("window"),
		"c": {to: "transport", read: connection}, "connection": {to: "transport", read: connection},
		"A": {to: "op", read: atomicType}, "atomic_type": {to: "op", read: atomicType},
		"b": both, "out_json": {to: "json", bare: true},
		"R": cm, "rdma_cm": cm, "z": cm, "comm_rdma_cm": cm,
		"F": idle, "CPU-freq": idle, "N": idle, "noPeak": idle, "report_gbits": idle,
		"perform_warm_up": idle, "use_hugepages": idle, "use_old_post_send": idle,
	}
	flags.lack(perftestMissing)
	return flags
}

// perftestMissing are those flags of perftest that there is nothing like here.
var perftestMissing = getopt.Hints{
	{"x gid-index", "devices have no GIDs: --device names one, whose address is used"},
	{"i ib-port", "a device has one port: --device names the device"},
	{"r rx-depth", "as many receives are posted as the test needs"},
	{"o outs", "use --window: so many Reads are under way"},
	{"l post_list", "requests are posted one by one"},
	{"recv_post_list", "receives are posted one by one"},
	{"I inline_size", "short messages go inline by themselves"},
	{"Q cq-mod", "a quarter of a --window has one completion"},
	{"e events", "both ends spin, as in perftest without -e"},
	{"X", "both ends spin: no completion wakes them"},
	{"f margin", "use --warmup, which is not measured, and --duration"},
	{"H U", "single samples are not shown: avg, stdev and percentiles are"},
	{"C", "times are in microseconds"},
	{"g mcg M", "there is no test of multicast"},
	{"O report-per-port", "use one device"},
	{"S sl", "frames have no service level"},
	{"T tos", "frames have no type of service"},
	{"u qp-timeout", "timeouts follow the measured path"},
	{"w y", "compare what --json writes with the limit"},
	{"W", "use ethtool -S DEV before and after"},
	{"rate_limit", "use --window"},
	{"V", "use --version"},
	{"out_json_file", "use --json > FILE"},
	{"run_infinitely", "use --duration, up to a day"},
	{"cpu_util", "both ends spin, so each takes all of its core"},
	{"report-both", "tests both ways count both together"},
	{"reversed", "start the server where the client is now"},
	{"use-srq", "there is no test of shared receive queues"},
	{"bind_source_ip", "use --device, and --listen on the server"},
	{"use_cuda use_rocm", "messages are in the memory of the host"},
	{"ipv6-addr", "name the server by its address"},
	{"mr_per_qp", "a test has one region"},
	{"odp", "memory is registered"},
	{"latency_gap", "each message follows the answer to the one before"},
	{"tclass", "frames have no traffic class"},
	{"force-link", "there is Ethernet only"},
}

// osuFlags are those of the OSU micro-benchmarks, for tests of MPI. Where both have
// a letter it has OSU's meaning there.
func osuFlags() peerFlags {
	flags := perftestFlags()
	idle, sizes := peerFlag{bare: true}, peerFlag{to: "size", read: osuSizes}
	for _, name := range []string{"c", "connection", "A", "atomic_type", "q", "qp", "t", "b", "m"} {
		delete(flags, name)
	}
	maps.Copy(flags, peerFlags{
		"m": sizes, "message-size": sizes, "i": as("iters"), "iterations": as("iters"), "x": as("warmup"),
		"W": as("window"), "window-size": as("window"), "f": idle, "full": idle, "u": idle, "tail-lat": idle,
	})
	flags.lack(osuMissing)
	return flags
}

// osuMissing are the same of the OSU micro-benchmarks.
var osuMissing = getopt.Hints{
	{"b", "messages come from one buffer; for both ways at once there is mpi_bibw"},
	{"buffer-num", "messages come from one buffer"},
	{"c validation", "what arrives is not compared here: the programs in examples/ check their answers"},
	{"t num-threads mpi-threaded", "a rank has one thread here"},
	{"z percentiles", "p50, p99 and p99.9 are shown"},
	{"M mem-limit", "use --size"},
	{"R print-rate", "messages per second are always shown"},
	{"V vary-window", "use --window, one at a time"},
	{"num-pairs", "there is one pair of ranks"},
	{"G graph", "use --plot FILE.svg"},
	{"I init", "ranks start as xrun starts them"},
	{"T type", "messages are bytes, in reductions floats"},
	{"accelerator r", "messages are in the memory of the host"},
	{"v", "use --version"},
	{"skip", "use --warmup"},
	{"sync-option win-options", "there is no test of one-sided MPI"},
}

// peerFlags returns the flags of others that a command line may have, by its test.
func (o *options) peerFlags(args []string) peerFlags {
	name := o.command // that of the first configuration, if this is the second
	if i := slices.IndexFunc(args, command); i >= 0 {
		name = args[i]
	}
	c, found := bench.Find(name)
	o.twoEnds = found && !c.Job()
	if c.OfMPI() {
		return osuFlags()
	}
	return perftestFlags()
}

// command reports whether an argument is a test or another command.
func command(arg string) bool {
	if _, ok := bench.Find(arg); ok {
		return true
	}
	_, ok := commandFlags[arg]
	return ok
}

// define defines those flags that mean something, and returns hints for the others.
func (p peerFlags) define(fs *flag.FlagSet) (hints map[string]string) {
	hints = map[string]string{}
	for name, theirs := range p {
		set := func(value string) (err error) {
			if theirs.read != nil {
				value, err = theirs.read(value)
			}
			if err != nil || theirs.to == "" {
				return err
			}
			return fs.Set(theirs.to, value)
		}
		switch {
		case theirs.hint != "":
			hints[name] = theirs.hint
		case theirs.bare:
			fs.BoolFunc(name, "", set)
		default:
			fs.Func(name, "", set)
		}
	}
	return hints
}

// lack says what to do in place of flags that xperf has not.
func (p peerFlags) lack(hints getopt.Hints) {
	for name, text := range hints.ByName() {
		p[name] = peerFlag{hint: text}
	}
}

// connection reads perftest's name of a transport.
func connection(name string) (string, error) {
	transport := strings.ToLower(name)
	if !slices.Contains(bench.Transports(), transport) {
		return "", fmt.Errorf("there is no connection of type %s: there are RC, UD and RD", name)
	}
	return transport, nil
}

// atomicType reads perftest's name of an atomic operation.
func atomicType(name string) (string, error) {
	switch name {
	case "FETCH_AND_ADD":
		return "fetch_add", nil
	case "CMP_AND_SWAP":
		return "cmp_swap", nil
	}
	return "", fmt.Errorf("%q is neither FETCH_AND_ADD nor CMP_AND_SWAP", name)
}

// osuSizes reads [MIN:]MAX, either of which may be missing.
func osuSizes(text string) (string, error) {
	from, to, isRange := strings.Cut(text, ":")
	switch {
	case !isRange:
		return "1:" + text, nil
	case from == "":
		return "1:" + to, nil
	case to == "":
		return from + ":4M", nil // as OSU has it
	}
	return text, nil
}

// bothWays makes the test the one that sends both ways, if that is asked for.
func (o *options) bothWays() error {
	if !o.both {
		return nil
	}
	delete(o.given, "bidirectional")
	one, isStream := strings.CutSuffix(o.command, "_bw")
	if _, ok := bench.Find(one + "_bibw"); isStream && ok {
		o.command, o.given["test"] = one+"_bibw", true
	}
	if c, _ := bench.Find(o.command); c.Kind != bench.Duplex {
		return usagef("--bidirectional is for streams of large messages: send_bw, write_bw, read_bw and mpi_bw")
	}
	return nil
}

package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/bench"
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

func as(name string) peerFlag     { return peerFlag{to: name} }
func instead(why string) peerFlag { return peerFlag{hint: why} }

// perftestFlags are the flags of perftest (ib_send_lat and its like) that xperf
// has not, and those with another name here.
func perftestFlags() peerFlags {
	idle, both := peerFlag{bare: true}, peerFlag{to: "bidirectional", bare: true}
	cm := idle // queue pairs of rc are connected by a connection manager in any case
	return peerFlags{
		"s": as("size"), "D": as("duration"), "d": as("device"), "ib-dev": as("device"), "p": as("port"),
		"m": as("mtu"), "q": as("peers"), "qp": as("peers"), "t": as("window"), "tx-depth": as("window"),
		"c": {to: "transport", read: connection}, "connection": {to: "transport", read: connection},
		"A": {to: "op", read: atomicType}, "atomic_type": {to: "op", read: atomicType},
		"b": both, "out_json": {to: "json", bare: true},
		"R": cm, "rdma_cm": cm, "z": cm, "comm_rdma_cm": cm,
		"F": idle, "CPU-freq": idle, "N": idle, "noPeak": idle, "report_gbits": idle,
		"perform_warm_up": idle, "use_hugepages": idle, "use_old_post_send": idle,

		"x":               instead("devices have no GIDs: --device names one, whose address is used"),
		"gid-index":       instead("devices have no GIDs: --device names one, whose address is used"),
		"i":               instead("a device has one port: --device names the device"),
		"ib-port":         instead("a device has one port: --device names the device"),
		"r":               instead("as many receives are posted as the test needs"),
		"rx-depth":        instead("as many receives are posted as the test needs"),
		"o":               instead("use --window: so many Reads are under way"),
		"outs":            instead("use --window: so many Reads are under way"),
		"l":               instead("requests are posted one by one"),
		"post_list":       instead("requests are posted one by one"),
		"recv_post_list":  instead("receives are posted one by one"),
		"I":               instead("short messages go inline by themselves"),
		"inline_size":     instead("short messages go inline by themselves"),
		"Q":               instead("a quarter of a --window has one completion"),
		"cq-mod":          instead("a quarter of a --window has one completion"),
		"e":               instead("both ends spin, as in perftest without -e"),
		"events":          instead("both ends spin, as in perftest without -e"),
		"X":               instead("both ends spin: no completion wakes them"),
		"f":               instead("use --warmup, which is not measured, and --duration"),
		"margin":          instead("use --warmup, which is not measured, and --duration"),
		"H":               instead("single samples are not shown: avg, stdev and percentiles are"),
		"U":               instead("single samples are not shown: avg, stdev and percentiles are"),
		"C":               instead("times are in microseconds"),
		"g":               instead("there is no test of multicast"),
		"mcg":             instead("there is no test of multicast"),
		"M":               instead("there is no test of multicast"),
		"O":               instead("use one device"),
		"S":               instead("frames have no service level"),
		"sl":              instead("frames have no service level"),
		"T":               instead("frames have no type of service"),
		"tos":             instead("frames have no type of service"),
		"u":               instead("timeouts follow the measured path"),
		"qp-timeout":      instead("timeouts follow the measured path"),
		"w":               instead("compare what --json writes with the limit"),
		"y":               instead("compare what --json writes with the limit"),
		"W":               instead("use ethtool -S DEV before and after"),
		"rate_limit":      instead("use --window"),
		"V":               instead("use --version"),
		"out_json_file":   instead("use --json > FILE"),
		"run_infinitely":  instead("use --duration, up to a day"),
		"cpu_util":        instead("both ends spin, so each takes all of its core"),
		"report-both":     instead("tests both ways count both together"),
		"reversed":        instead("start the server where the client is now"),
		"use-srq":         instead("there is no test of shared receive queues"),
		"bind_source_ip":  instead("use --device, and --listen on the server"),
		"use_cuda":        instead("messages are in the memory of the host"),
		"use_rocm":        instead("messages are in the memory of the host"),
		"ipv6-addr":       instead("name the server by its address"),
		"mr_per_qp":       instead("a test has one region"),
		"odp":             instead("memory is registered"),
		"latency_gap":     instead("each message follows the answer to the one before"),
		"tclass":          instead("frames have no traffic class"),
		"force-link":      instead("there is Ethernet only"),
		"report-per-port": instead("use one device"),
	}
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

		"b":            instead("messages come from one buffer; for both ways at once there is mpi_bibw"),
		"buffer-num":   instead("messages come from one buffer"),
		"c":            instead("what arrives is not compared here: the programs in examples/ check their answers"),
		"validation":   instead("what arrives is not compared here: the programs in examples/ check their answers"),
		"t":            instead("a rank has one thread here"),
		"num-threads":  instead("a rank has one thread here"),
		"z":            instead("p50, p99 and p99.9 are shown"),
		"percentiles":  instead("p50, p99 and p99.9 are shown"),
		"M":            instead("use --size"),
		"mem-limit":    instead("use --size"),
		"R":            instead("messages per second are always shown"),
		"print-rate":   instead("messages per second are always shown"),
		"V":            instead("use --window, one at a time"),
		"vary-window":  instead("use --window, one at a time"),
		"num-pairs":    instead("there is one pair of ranks"),
		"G":            instead("use --plot FILE.svg"),
		"graph":        instead("use --plot FILE.svg"),
		"I":            instead("ranks start as xrun starts them"),
		"init":         instead("ranks start as xrun starts them"),
		"T":            instead("messages are bytes, in reductions floats"),
		"type":         instead("messages are bytes, in reductions floats"),
		"accelerator":  instead("messages are in the memory of the host"),
		"r":            instead("messages are in the memory of the host"),
		"v":            instead("use --version"),
		"skip":         instead("use --warmup"),
		"sync-option":  instead("there is no test of one-sided MPI"),
		"win-options":  instead("there is no test of one-sided MPI"),
		"mpi-threaded": instead("a rank has one thread here"),
	})
	return flags
}

// peerFlags returns the flags of others that a command line may have, by its test.
func (o *options) peerFlags(args []string) peerFlags {
	name := o.command // that of the first configuration, if this is the second
	if i := slices.IndexFunc(args, command); i >= 0 {
		name = args[i]
	}
	c, found := bench.Find(name)
	o.twoEnds = found && c.Family != bench.Coll
	if c.Family == bench.MPI || c.Family == bench.RMA || c.Family == bench.Coll {
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

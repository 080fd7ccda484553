package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/bench/peers"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == rankCommand || os.Args[1] == launch.AgentArg || os.Args[1] == launch.GhostArg) {
		main() // what --testbed and collectives start is this program executed again
	}
	os.Exit(m.Run())
}

// xperf runs a command line and returns what it wrote and its exit code.
func xperf(args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	p := &program{out: &o, errs: &e}
	code = p.run(args)
	return o.String(), e.String(), code
}

func TestRun_help(t *testing.T) {
	out, errs, code := xperf("--help")
	if code != exitOK || errs != "" {
		t.Errorf("code %d, %q", code, errs)
	}
	for _, c := range bench.Cases() {
		if !strings.Contains(out, "  "+c.Name+" ") {
			t.Errorf("%s is not in the help", c.Name)
		}
	}
	for _, f := range bench.Fabrics() {
		if !strings.Contains(out, f) {
			t.Errorf("fabric %s is not in the help", f)
		}
	}
	for _, f := range append([]string{"testbed", "json", "markdown", "plot", "vs", "rounds", "duration", "port", "listen", "netns", "connect-timeout", "device", "switch"}, vsFlags[1:]...) {
		if !strings.Contains(out, "--"+f) {
			t.Errorf("flag --%s is not in the help", f)
		}
	}
}

// Every example in the help is a command line that this program takes.
func TestRun_helpExamples(t *testing.T) {
	var lines []string
	for _, c := range bench.Cases() {
		out, _, code := xperf(c.Name, "--help")
		if code != exitOK || !strings.Contains(out, c.Summary) {
			t.Errorf("%s --help: code %d, %s", c.Name, code, out)
		}
		lines = append(lines, c.Name+" "+c.Example)
	}
	_, examples, _ := strings.Cut(helpTail, "Examples:\n")
	for line := range strings.Lines(examples) {
		line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "xperf "), ">")
		lines = append(lines, line)
	}
	for _, line := range lines {
		before, vs, found := strings.Cut(line, ` --vs "`)
		args := strings.Fields(before)
		if found {
			args = append(args, "--vs", strings.TrimSuffix(vs, `"`))
		}
		if _, err := parse(args); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestRun_exitCodes(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := ln.Addr().String()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"nonsense"}, exitUsage, "xperf --help"},
		{[]string{"write_bw", "--transport", "ud"}, exitUsage, "write_record_bw"},
		{[]string{"plot", "no such file"}, exitFailed, "no such file"},
		{[]string{"raw_lat", "--fabric", "dpdk"}, exitUsage, "the fabrics are"},
		{[]string{"raw_lat", "--listen", free}, exitFailed, "control port"},
		{[]string{"send_lat", "--device", "nosuch0"}, exitUsage, "there is no device nosuch0: there are lo"},
		{[]string{"serve", "-d", "nosuch0"}, exitUsage, "there is no device nosuch0: there are lo"},
		// Nobody listens there: the device comes first.
		{[]string{"send_lat", "127.0.0.1:1", "--device", "nosuch0", "--connect-timeout", "30ms"}, exitUsage, "there is no device nosuch0: there are lo"},
		{[]string{"raw_lat", "--fabric", "udp", "127.0.0.1:1", "--connect-timeout", "30ms"}, exitFailed, "no xperf server answers at 127.0.0.1:1 within 30ms"},
	} {
		_, errs, code := xperf(c.args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: code %d, %q; want %d and %q", c.args, code, errs, c.code, c.want)
		}
	}
	ln.Close()
}

// Ranks of a job would all be servers, and wait.
func TestRun_launched(t *testing.T) {
	for _, name := range []string{"XWARP_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"} {
		t.Setenv(name, "3")
		if _, errs, code := xperf("mpi_lat"); code != exitUsage || !strings.Contains(errs, "xperf mpi_lat --testbed") {
			t.Errorf("%s: code %d, %q", name, code, errs)
		}
		t.Setenv(name, "")
	}
}

// Both ways at once, by perftest's flag.
func TestRun_bothWays(t *testing.T) {
	out, errs, code := xperf("write_bw", "-b", "--testbed", "--fabric", "udp", "-s", "1KB", "-n", "640", "--json")
	var r bench.Result
	if err := json.Unmarshal([]byte(out), &r); code != exitOK || err != nil || r.Test != "write_bibw" || r.Iters != 640 || r.Size != 1024 || r.Gbit <= 0 {
		t.Errorf("code %d, %v: %s%s", code, err, out, errs)
	}
}

// Both ends on this machine, with the server in a process of its own: on a
// testbed as root, else on loopback.
func TestRun_testbed(t *testing.T) {
	out, errs, code := xperf("raw_lat", "--testbed", "--fabric", "tcp", "--size", "8", "--iters", "100", "--json", "--vs", "--fabric udp")
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want two results and a ratio:\n%s", len(lines), out)
	}
	for i, fabric := range []string{"tcp", "udp"} {
		var r bench.Result
		if err := json.Unmarshal([]byte(lines[i]), &r); err != nil || r.Fabric != fabric || r.Lat == nil {
			t.Errorf("%v: %s", err, lines[i])
		}
	}
}

// A collective starts agents and ranks, which are this program too.
func TestRun_collective(t *testing.T) {
	testenv.NeedRoot(t)
	for _, test := range []string{"mpi_allreduce", "mpi_reduce", "mpi_gather", "mpi_scatter"} {
		out, errs, code := xperf(test, "--testbed", "--fabric", "udp", "-n", "2,4", "--size", "8", "--rounds", "1", "--duration", "0.002", "--json")
		if code != exitOK {
			t.Fatalf("%s: code %d: %s", test, code, errs)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for i, ranks := range []int{2, 4} {
			var r bench.Result
			if err := json.Unmarshal([]byte(lines[i]), &r); err != nil || r.Test != test || r.Ranks != ranks || r.Hosts != 2 || r.Size != 8 || r.Lat == nil || r.Lat.Avg <= 0 || r.Lat.P999 < r.Lat.P99 {
				t.Errorf("%v: %s", err, lines[i])
			}
		}
		if len(lines) != 2 {
			t.Errorf("%s: %d lines: %s", test, len(lines), out)
		}
	}
}

// What an epoch takes the origin has in it what the target computes, without ghosts, and has
// not with one, or with a thread that makes progress.
func TestRun_overlap(t *testing.T) {
	testenv.NeedRoot(t)
	const computes = 100_000 // microseconds: far more than a process waits for a processor
	for _, c := range []struct{ fabric, ops, thread string }{{"xdp", "acc,put", ""}, {"udp", "get,vector", ""}, {"xdp", "acc", "thread"}, {"xdp", "recv,send", ""}} {
		chart := filepath.Join(t.TempDir(), "overlap.svg")
		args := []string{"mpi_overlap", "--testbed", "--fabric", c.fabric, "--op", c.ops, "--compute", strconv.Itoa(computes), "--rounds", "1", "--json", "--plot", chart}
		if c.thread != "" {
			args = append(args, "--ghosts", "0", "--progress", c.thread)
		}
		if c.ops == "recv,send" { // what is short needs nobody
			args = append(args, "--size", "1048576")
		}
		// A machine that stands still may hide it, but not each time.
		for tries := 1; ; tries++ {
			out, errs, code := xperf(args...)
			if code != exitOK {
				t.Fatalf("code %d: %s%s", code, out, errs)
			}
			wrong := overlapOf(t, out, strings.Split(c.ops, ","), computes, c.thread)
			if wrong == "" {
				break
			}
			t.Logf("try %d over %s: %s", tries, c.fabric, wrong)
			if tries == 5 {
				t.Fatalf("over %s: ghosts, or threads, do not serve while the target computes", c.fabric)
			}
		}
		drawn, err := os.ReadFile(chart)
		if err != nil || !strings.Contains(string(drawn), "microseconds that the target computes") {
			t.Errorf("the drawing: %v, %d bytes", err, len(drawn))
		}
	}
}

// overlapOf reads results of mpi_overlap, without ghosts and with one, or a thread, for each
// operation, and says which of them do not look as they should.
func overlapOf(t *testing.T, out string, ops []string, computes float64, thread string) (wrong string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2*len(ops) {
		t.Fatalf("%d results, want %d: %s", len(lines), 2*len(ops), out)
	}
	for i, op := range ops {
		var alone, served bench.Result
		err := errors.Join(json.Unmarshal([]byte(lines[2*i]), &alone), json.Unmarshal([]byte(lines[2*i+1]), &served))
		if err != nil || alone.Op != op || served.Op != op || alone.Ghosts != 0 || served.Progress != thread || (served.Ghosts == 1) != (thread == "") || float64(alone.Compute) != computes || alone.Lat == nil || served.Lat == nil {
			t.Fatalf("%v: %s", err, out)
		}
		if alone.Lat.P50 < computes || served.Lat.P50 > computes/2 {
			wrong += fmt.Sprintf("%s: %.0f us without ghosts and %.0f with one; ", op, alone.Lat.P50, served.Lat.P50)
		}
	}
	return wrong
}

// Fences, and ranks of one host, with ghosts and without.
func TestRun_overlapEpochs(t *testing.T) {
	testenv.NeedRoot(t)
	for _, fabric := range []string{"udp", "shm"} {
		out, errs, code := xperf("mpi_overlap", "--testbed", "--fabric", fabric, "--compute", "10", "--size", "32", "--rounds", "1", "--duration", "0.002")
		if code != exitOK || strings.Count(out, "of 32 bytes") != len(bench.OverlapOps()) || !strings.Contains(out, "1 ghost") {
			t.Errorf("%s: code %d: %s%s", fabric, code, out, errs)
		}
	}
}

// An experiment with ghosts says what was published and what came out, in JSON as well.
func TestRun_ghosts(t *testing.T) {
	testenv.NeedRoot(t)
	args := []string{"mpi_ghosts", "--testbed", "--fabric", "udp", "--op", "self", "--rounds", "1", "--duration", "0.001"}
	out, errs, code := xperf(append(args, "--json")...)
	if code != exitOK {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	ways, findings := map[string]int{}, 0
	for line := range strings.Lines(out) {
		var r struct {
			bench.Result
			bench.Finding
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case r.Experiment != "":
			if findings++; r.Published == "" || !strings.Contains(r.Here, "1 ghost") {
				t.Errorf("a finding is %s", line)
			}
		case r.Lat == nil || r.Lat.P50 <= 0 || r.N == 0 || (r.Ghosts == 0) != (r.Library == "no ghost"):
			t.Errorf("a result is %s", line)
		default:
			ways[r.Op+" "+r.Library]++
		}
	}
	want := map[string]int{"self no ghost": 1, "self 1 ghost": 1, "self no load": 1, "self no check": 1}
	if findings != 1 || !maps.Equal(ways, want) {
		t.Errorf("%d findings, results %v, want %v", findings, ways, want)
	}
}

// Raw frames and whichever of the other libraries are installed, and nothing
// is left behind.
func TestRun_comparePeers(t *testing.T) {
	testenv.NeedRoot(t)
	out, errs, code := xperf("compare", "peers", "--testbed", "--tests", "mpi_lat,mpi_bibw,mpi_put_lat,mpi_cas_lat,mpi_acc_lat,mpi_get_bw,mpi_put_rate,mpi_overlap,mpi_reduce,mpi_gather,mpi_scatter", "-n", "2", "--mtu", "1500", "--size", "8", "--rounds", "1", "--duration", "0.002", "--json")
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	got := map[string]int{}
	for line := range strings.Lines(out) {
		var r bench.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		got[r.Library]++
	}
	if got["raw"] != 1 || got["xwarp"] != 59 { // there are no raw frames both ways, nor one-sided ones
		t.Errorf("results by library %v: want 1 of raw and 59 of xwarp", got)
	}
	for _, peer := range peers.Peers() {
		want := 59 // seven on two hosts and on one, five epochs, a receive and a send at six times, and three collectives
		if peer.Missing() != "" {
			want = 0
		}
		if got[peer.Name] != want {
			t.Errorf("%d results of %s, want %d", got[peer.Name], peer.Name, want)
		}
	}
}

// A run of the matrix goes on where another one ended, and what is kept is judged without
// measuring.
func TestRun_matrix(t *testing.T) {
	testenv.NeedRoot(t)
	file := filepath.Join(t.TempDir(), "matrix.json")
	piece := func(sizes string, args ...string) (string, string) {
		out, errs, code := xperf(append([]string{"compare", "peers", "--matrix", "--out", file, "--tests", "mpi_lat,mpi_scan", "-n", "2", "--mtu", "1500", "--rounds", "1", "--duration", "0.002", "--size", sizes}, args...)...)
		if code != exitOK {
			t.Fatalf("code %d: %s", code, errs)
		}
		return out, errs
	}
	lines := func() int {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte("\n"))
	}
	libraries := 1
	for _, peer := range peers.Peers() {
		if peer.Missing() == "" {
			libraries++
		}
	}
	piece("8", "--testbed", "--quick")
	if n := lines(); n != 4*libraries {
		t.Errorf("%d results of two tests on one host and two, of %d libraries", n, libraries)
	}
	out, _ := piece("8,64", "--testbed")
	if n := lines(); n != 8*libraries || strings.Contains(out, " 8  ") {
		t.Errorf("%d results of two sizes, one of which was there:\n%s", n, out)
	}
	drawing := filepath.Join(t.TempDir(), "matrix.svg")
	out, _ = piece("8", "--plot", drawing)
	if want := "of 8 cells above"; libraries > 1 && !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	if b, err := os.ReadFile(drawing); err != nil || !bytes.Contains(b, []byte("</svg>")) {
		t.Errorf("the drawing: %v", err)
	}
}

// All algorithms of a collective, and how to choose the best: a program that is told
// so must take it.
func TestRun_compareAlgorithms(t *testing.T) {
	testenv.NeedRoot(t)
	out, errs, code := xperf("compare", "algorithms", "--testbed", "--tests", "mpi_bcast,mpi_alltoall", "-n", "4", "--size", "8,32K", "--rounds", "1", "--duration", "0.002")
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	_, setting, ok := strings.Cut(out, mpi.EnvColl+`="`)
	if !ok || !strings.Contains(out, "multileader") || !strings.Contains(out, "bruck") {
		t.Fatalf("no algorithms, or no setting:\n%s", out)
	}
	rows, _, _ := strings.Cut(setting, `"`)
	if err := mpi.RunWith(2, mpi.Config{Algorithms: rows}, func(*mpi.Proc) error { return nil }); err != nil {
		t.Errorf("%s: %v", rows, err)
	}
}

// From a measurement to a drawing, in one step and in two.
func TestRun_plot(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	out, errs, code := xperf("send_bw", "--testbed", "--fabric", "udp", "--size", "8,4K", "--iters", "64", "--json", "--plot", at("one.svg"))
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	if err := os.WriteFile(at("results"), []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	drawn, errs, code := xperf("plot", at("results"))
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	if _, errs, code := xperf("plot", at("results"), "--plot", at("two.svg")); code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	for _, name := range []string{"one.svg", "two.svg"} {
		b, err := os.ReadFile(at(name))
		if err != nil || string(b) != drawn || !strings.Contains(drawn, "send_bw") {
			t.Errorf("%s: %v, %s", name, err, b)
		}
	}
	if err := os.WriteFile(at("empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := xperf("plot", at("empty")); code != exitFailed || !strings.Contains(errs, "no results") {
		t.Errorf("code %d: %s", code, errs)
	}
}

// Several endpoints in the server's process: ports, or hosts of a testbed.
func TestRun_peers(t *testing.T) {
	fabrics := []string{"udp", "shm"}
	if os.Geteuid() == 0 {
		fabrics = append(fabrics, "xdp")
	}
	for _, fabric := range fabrics {
		out, errs, code := xperf("send_rate", "--peers", "3", "--testbed", "--fabric", fabric, "--iters", "1000", "--json")
		var r bench.Result
		if err := json.Unmarshal([]byte(out), &r); code != exitOK || err != nil || r.Peers != 3 || r.Msgs <= 0 {
			t.Errorf("%s: code %d, %v: %s%s", fabric, code, err, out, errs)
		}
	}
}

// anyCore is a core that this process may use.
func anyCore(t *testing.T) string {
	t.Helper()
	cores, err := launch.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(cores[0])
}

func TestRun_testbedText(t *testing.T) {
	out, errs, code := xperf("raw_bw", "--testbed", "--fabric", "tcp", "--size", "8,4K", "--iters", "64", "--mtu", "3000")
	if os.Geteuid() != 0 {
		// Loopback has another MTU, and says so.
		if code != exitUsage || !strings.Contains(errs, "MTU") {
			t.Errorf("code %d: %s", code, errs)
		}
		return
	}
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	for _, want := range []string{"# raw_bw: kernel TCP, MTU 3000, veth pair, cores ", "Gbit/s", "\n     4096"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestRun_compare(t *testing.T) {
	out, errs, code := xperf("compare", "--testbed", "--rounds", "1", "--size", "8,4M")
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	want := []string{"Latency", "Bandwidth", "MPI/UDP", "plain TCP", "\n         8 ", "\n   4194304 "}
	if os.Geteuid() == 0 {
		want = append(want, "MPI on xdp/", "MPI/AF_XDP")
	} else if !strings.Contains(errs, "not root") {
		t.Errorf("nothing said about what is missing: %q", errs)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("%q is not in\n%s", w, out)
		}
	}
}

// UD beside RD: sizes that are too large for one have no number there.
func TestRun_compareVerbs(t *testing.T) {
	out, errs, code := xperf("compare", "verbs", "--testbed", "--rounds", "1", "--markdown", "--size", "1,8,1M")
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	for _, w := range []string{"UD/UDP", "RD/UDP", "| plain UDP |", "99th percentile", "\n| 1 | ", "\n| 1048576 | - | ", "| lost % | "} {
		if os.Geteuid() != 0 && strings.HasPrefix(w, "\n| 1048576") {
			continue // loopback has a large MTU
		}
		if !strings.Contains(out, w) {
			t.Errorf("%q is not in\n%s", w, out)
		}
	}
}

// What cannot send any of the sizes gets no column.
func TestRun_compareLarge(t *testing.T) {
	out, errs, code := xperf("compare", "verbs", "--testbed", "--rounds", "1", "--size", "1M")
	if code != exitOK || !strings.Contains(out, "RD/UDP") || strings.Contains(out, "UD/UDP") || strings.Contains(out, "plain UDP") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

// A fabric that was asked for is not quietly replaced by another.
func TestRun_xdpWithoutRoot(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("runs as an ordinary user only")
	}
	_, errs, code := xperf("raw_lat", "--testbed", "--fabric", "xdp")
	if code != exitUnavailable || !strings.Contains(errs, "needs root") {
		t.Errorf("code %d: %s", code, errs)
	}
}

func TestProgress(t *testing.T) {
	var errs bytes.Buffer
	p := &program{errs: &errs}
	p.progress("unseen")
	p.told -= mono.Time(tellEvery)
	p.progress("a long run")
	p.progress("unseen")
	if got, want := errs.String(), "xperf: a long run\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	errs.Reset()
	p.terminal = true
	p.progress("seen")
	p.clear()
	p.clear()
	if got, want := errs.String(), "\r\033[Kseen\r\033[K"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// A server says what it listens at, and does so at the address of its device only.
func TestRun_serverListens(t *testing.T) {
	for _, c := range []struct{ args, at, what string }{
		{"raw_lat --port 0 --device lo", "127.0.0.1", "for raw_lat over the client's fabric, device lo"},
		{"raw_lat --port 0 --fabric udp", "0.0.0.0", "for raw_lat over udp, any device (--device or --listen narrow that)"},
		{"raw_lat --listen 127.0.0.1:0", "127.0.0.1", "for raw_lat over the client's fabric, the device of each client's connection"},
		{"raw_lat --listen 0.0.0.0:0 -d lo", "0.0.0.0", "for raw_lat over the client's fabric, device lo"},
	} {
		out, say := io.Pipe()
		var errs bytes.Buffer
		code := make(chan int)
		go func() {
			defer say.Close()
			code <- (&program{out: say, errs: &errs}).run(strings.Fields(c.args))
		}()
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		addr, what, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "listening "), " ")
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host != c.at || what != c.what {
			t.Errorf("%s: %q, %v; want %s, %s", c.args, line, err, c.at, c.what)
		}
		if _, errs, code := xperf("raw_lat", "127.0.0.1:"+port, "--fabric", "udp", "--size", "8", "--iters", "10"); code != exitOK {
			t.Errorf("%s: client: %s", c.args, errs)
		}
		if got := <-code; got != exitOK {
			t.Errorf("%s: code %d: %s", c.args, got, &errs)
		}
	}
}

func TestRun_serverFailureIsTold(t *testing.T) {
	// Loopback is no Ethernet: the client finds out first on one machine, so
	// let the two disagree instead.
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	type result struct {
		errs string
		code int
	}
	served := make(chan result)
	go func() {
		_, errs, code := xperf("raw_lat", "--fabric", "udp", "--size", "16", "--listen", addr)
		served <- result{errs, code}
	}()
	_, errs, code := xperf("raw_lat", addr, "--fabric", "udp", "--size", "8")
	want := "size is [16] on the server and [8] on the client"
	if code != exitFailed || !strings.Contains(errs, want) {
		t.Errorf("client: code %d, %q", code, errs)
	}
	_, errs, code = xperf("raw_lat", addr, "--fabric", "udp", "--size", "16", "--iters", "100")
	if code != exitOK {
		t.Errorf("client that agrees: code %d, %q", code, errs)
	}
	if r := <-served; r.code != exitOK || !strings.Contains(r.errs, want) {
		t.Errorf("server: code %d, %q", r.code, r.errs)
	}
}

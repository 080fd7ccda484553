package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// The test binary is a rank, too: what it does is in this variable.
const ringEnv = "XWARP_TEST_RING"

// ringMain is the program of a rank: rounds of a ring, with messages that are
// eager and others that are not. In "dies" rank 1 kills itself in the middle, when
// it knows that rank 3 is in a call: one that sends it a word, and waits for another
// one that never comes, whoever dies. Calls that wait for rank 1 may end before
// xrun ends the job.
func ringMain(what string) error {
	switch what {
	case "threads":
		return threadsMain()
	case "stuck":
		return stuckMain()
	case "windows":
		return windowsMain()
	}
	p, err := mpi.Init()
	if err != nil {
		return err
	}
	c := p.World()
	for i := range rounds {
		if what == "dies" && i == rounds/2 && c.Rank() == 1 {
			_, err := mpi.Recv(c, make([]byte, 1), 3, mpi.AnyTag)
			return errors.Join(err, unix.Kill(unix.Getpid(), unix.SIGKILL))
		}
		if what == "dies" && i == rounds/2 && c.Rank() == 3 {
			_, err := mpi.Sendrecv(c, []byte{1}, 1, 0, make([]byte, 1), c.Rank(), 0)
			return err
		}
		out, in := make([]byte, 1+i*10_000), make([]byte, 1+i*10_000)
		next, last := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		if _, err := mpi.Sendrecv(c, out, next, i%3, in, last, i%3); err != nil {
			forever() // xrun ends the job: it is not this rank that is to blame
		}
	}
	if err := mpi.Allreduce(c, nil, []int64{1}, mpi.Sum); err != nil {
		return err
	}
	return p.Finalize()
}

const rounds = 12

// threadsMain is a rank whose goroutines do all that at once: even ones exchange,
// odd ones receive before they send, and each is in collectives of a communicator of its own.
func threadsMain() error {
	p, err := mpi.InitThread(mpi.ThreadMultiple)
	if err != nil {
		return err
	}
	w := p.World()
	const threads = 4
	errs := make([]error, threads)
	var group sync.WaitGroup
	for g := range threads {
		c, err := w.Dup()
		if err != nil {
			return err
		}
		group.Go(func() { errs[g] = threadMain(c, g) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Println(p.QueryThread())
	return p.Finalize()
}

func threadMain(c *mpi.Comm, g int) error {
	next, last := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	for i := range 50 {
		size := 1 + (i%5)*20_000
		out, in := bytes.Repeat([]byte{byte(c.Rank() + i)}, size), make([]byte, size)
		var err error
		if g%2 == 0 || c.Rank() == 0 {
			_, err = mpi.Sendrecv(c, out, next, i, in, last, i)
		} else if _, err = mpi.Recv(c, in, last, i); err == nil {
			err = mpi.Send(c, out, next, i)
		}
		if err != nil || in[size-1] != byte(last+i) {
			return fmt.Errorf("goroutine %d, message %d: %d, %v", g, i, in[size-1], err)
		}
		sum := []int64{int64(c.Rank())}
		if err := mpi.Allreduce(c, nil, sum, mpi.Sum); err != nil || sum[0] != 6 {
			return fmt.Errorf("sum %d, %v", sum[0], err)
		}
	}
	return nil
}

// traceEvent is one of a trace file.
type traceEvent struct {
	Name, Ph string
	Pid      int
	Ts, Dur  float64
	ID       int
	Args     map[string]any
}

func readTrace(t *testing.T, name string) []traceEvent {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatalf("%v in %.200s", err, b)
	}
	return file.TraceEvents
}

// recorded runs ranks and returns the trace, the summary and what xrun printed.
func recorded(t *testing.T, what string, args ...string) (events []traceEvent, sum trace.Summary, errOut string, status int) {
	t.Helper()
	dir := t.TempDir()
	timeline, counters := filepath.Join(dir, "trace.json"), filepath.Join(dir, "stats.json")
	args = append(args, "-n", "4", "--stats", "--json", counters, "--trace", timeline, "-x", ringEnv+"="+what, self)
	_, errOut, status = xrun(t, args...)
	return readTrace(t, timeline), readSummary(t, counters), errOut, status
}

func readSummary(t *testing.T, name string) (sum trace.Summary) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &sum)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestXrun_trace(t *testing.T) {
	for name, args := range map[string][]string{
		"here":    nil,
		"testbed": {"--testbed", "2", "--queues", "per-rank"},
		"shared":  {"--testbed", "2", "--queues", "shared"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "here" {
				testenv.NeedRoot(t)
			}
			events, sum, errOut, status := recorded(t, "ends", args...)
			if status != 0 {
				t.Fatalf("status %d, %s", status, errOut)
			}
			calls := map[int]int{}
			for _, e := range events {
				if e.Ph != "X" {
					continue
				}
				calls[e.Pid]++
				if e.Dur < 0 || e.Args["unfinished"] != nil {
					t.Errorf("%+v", e)
				}
			}
			for rank := range 4 {
				if calls[rank] != rounds+2 { // Allreduce and Finalize
					t.Errorf("rank %d: %d calls", rank, calls[rank])
				}
			}
			arrows := checkArrows(t, events, sum)
			if around := arrows[1] + arrows[-3]; around < 4*rounds || len(sum.Missing) != 0 { // those of Allreduce and Finalize are some more
				t.Errorf("%d arrows to the next rank, want %d at least: %+v", around, 4*rounds, sum)
			}
			for _, r := range sum.Ranks {
				if used := fmt.Sprintf(": %s\n", r.Carrier); r.Carrier == "" || !strings.Contains(errOut, used) || strings.HasPrefix(r.Carrier, "xdp/") && !strings.Contains(used, " on xw0, 1 queue, multi-buffer") || name == "shared" && !strings.HasPrefix(r.Carrier, "xdp/") {
					t.Errorf("rank %d goes over %q:\n%s", r.Rank, r.Carrier, errOut)
				}
				if r.Losses.NoSocket != 0 {
					t.Errorf("rank %d: %+v", r.Rank, r.Losses)
				}
			}
			if !strings.Contains(errOut, "Sendrecv") || !strings.Contains(errOut, fmt.Sprintf("all    %d", sum.Comms[0].SentMessages)) {
				t.Errorf("table\n%s", errOut)
			}
		})
	}
}

// checkArrows finds an arrow for every message that the ranks have sent, and for every
// one that they have received, and a call at each of its ends. It returns how many
// there are from a rank to the one so many above it.
func checkArrows(t *testing.T, events []traceEvent, sum trace.Summary) (arrows map[int]uint64) {
	t.Helper()
	ends, calls := map[int]map[string]traceEvent{}, map[int][]traceEvent{} // by id and phase; by rank
	for _, e := range events {
		switch e.Ph {
		case "X":
			calls[e.Pid] = append(calls[e.Pid], e)
		case "s", "f":
			if ends[e.ID] == nil {
				ends[e.ID] = map[string]traceEvent{}
			}
			ends[e.ID][e.Ph] = e
		}
	}
	arrows = map[int]uint64{}
	for id, both := range ends {
		s, f := both["s"], both["f"]
		arrows[f.Pid-s.Pid]++
		// All on one machine, and so on one clock.
		if len(both) != 2 || s.Ts > f.Ts || s.Args["bytes"] != f.Args["bytes"] {
			t.Errorf("arrow %d from %+v to %+v", id, s, f)
		}
		for _, e := range both {
			// The calls of a rank are in the order of their begins, and few inside another.
			last := sort.Search(len(calls[e.Pid]), func(i int) bool { return calls[e.Pid][i].Ts > e.Ts })
			if !slices.ContainsFunc(calls[e.Pid][max(0, last-4):last], func(x traceEvent) bool { return e.Ts <= x.Ts+x.Dur+1e-3 }) {
				t.Errorf("arrow %d begins or ends in no call: %+v", id, e)
			}
		}
	}
	var sent, received, bytes, receivedBytes, below uint64
	for _, r := range sum.Ranks {
		sent, received = sent+r.SentMessages, received+r.ReceivedMessages
		bytes, receivedBytes = bytes+r.SentBytes, receivedBytes+r.ReceivedBytes
		below += r.Eager + r.Rendezvous
	}
	if n := uint64(len(ends)); sent != n || received != n || bytes != receivedBytes || below != n {
		t.Errorf("%d arrows for %d messages sent of %d bytes, and %d received of %d; the layer below has counted %d", n, sent, bytes, received, receivedBytes, below)
	}
	return arrows
}

// Programs that use little but collectives.
func TestXrun_traceOfExamples(t *testing.T) {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "../../examples/heat", "../../examples/cg", "../../examples/sort")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, program := range [][]string{
		{"heat", "--points", "40", "--steps", "30"},
		{"cg", "--matrix", "../../examples/cg/diffusion.mtx"},
		{"sort"},
	} {
		t.Run(program[0], func(t *testing.T) {
			timeline, counters := filepath.Join(t.TempDir(), "trace.json"), filepath.Join(t.TempDir(), "stats.json")
			args := []string{"--quiet", "-n", "4", "--json", counters, "--trace", timeline, filepath.Join(dir, program[0])}
			if _, errOut, status := xrun(t, append(args, program[1:]...)...); status != 0 {
				t.Fatalf("status %d, %s", status, errOut)
			}
			checkArrows(t, readTrace(t, timeline), readSummary(t, counters))
		})
	}
}

// What a rank has done until it is killed is there, and the calls of the others
// that were under way.
func TestXrun_traceOfTheDead(t *testing.T) {
	events, sum, errOut, status := recorded(t, "dies")
	if status != 128+9 || !strings.Contains(errOut, "rank 1") {
		t.Errorf("status %d, %s", status, errOut)
	}
	unfinished, dead := 0, 0
	for _, e := range events {
		if e.Args["unfinished"] != nil {
			unfinished++
		}
		if e.Ph == "X" && e.Pid == 1 {
			dead++
		}
	}
	if unfinished == 0 || dead != rounds/2+1 || len(sum.Ranks) != 4 || sum.Ranks[1].SentMessages != rounds/2 {
		t.Errorf("%d calls unfinished, %d of rank 1, %+v", unfinished, dead, sum.Ranks)
	}
}

// Many goroutines in each of many processes, over every way there is.
func TestXrun_threads(t *testing.T) {
	for name, args := range map[string][]string{
		"channels": nil,
		"network":  {"-x", mpi.EnvShared + "=0"},
		"rc":       {"-x", mpi.EnvShared + "=0", "--transport", "rc"},
		"ud":       {"-x", mpi.EnvShared + "=0", "--transport", "ud"},
		"hybrid":   {"-x", mpi.EnvShared + "=0", "--transport", "hybrid"},
		"testbed":  {"--testbed", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "testbed" {
				testenv.NeedRoot(t)
			}
			out, errOut, status := xrun(t, append(args, "-n", "4", "-x", ringEnv+"=threads", self)...)
			if status != 0 || out != strings.Repeat("multiple\n", 4) {
				t.Errorf("status %d, %q, %s", status, out, errOut)
			}
		})
	}
}

func TestXrun_traceFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--trace", "/nowhere/there.json", "true"},
		{"--trace-events", "0", "true"},
		{"--trace-events", "2000000", "true"},
	} {
		if _, errOut, status := xrun(t, args...); status != 125 || errOut == "" {
			t.Errorf("%v: status %d, %q", args, status, errOut)
		}
	}
	// Programs that are none of MPI leave nothing.
	_, errOut, status := xrun(t, "--quiet", "--stats", "-n", "2", "true")
	if status != 0 || !strings.Contains(errOut, "rank 1 has left no counters") {
		t.Errorf("status %d, %q", status, errOut)
	}
}

func TestRoundUp(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 4, 65536: 65536, 65537: 131072} {
		if got := roundUp(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}

// Package peers measures MPI libraries side by side, as the OSU micro-benchmarks
// do: ours, MPICH and Open MPI, in turns in one run, on hosts of the same kind.
//
// A library is started once, as a [Job] whose rank 0 takes orders from its
// standard input: which test, with what size, how often. So bursts of several
// libraries can alternate, and what else the machine does hits all of them.
// Between orders all ranks sleep. The ranks of ours run [Rank], those of the
// others peer/peer.c, which is compiled with the library's own mpicc when it is
// needed; both do the same, call by call.
//
// Files: order.go what is said to rank 0, rank.go our ranks, collective.go
// their collectives, job.go a started library, ours.go and peer.go how they are
// started, cell.go what is measured, report.go how it is shown.
package peers

import (
	"fmt"

	"github.com/xwarp/xwarp/bench"
)

// Order is one burst of a test.
type Order struct {
	Test   string // "lat", "stream", "duplex", a one-sided one: "put_lat", ..., or a collective: "allreduce", ...
	Size   int    // bytes per message; per block in alltoall, allgather, gather and scatter
	Iters  int    // calls that count, or messages
	Warmup int    // those before them
	Window int    // stream: messages under way

	Compute int // overlap_acc and the like: microseconds that rank 1 computes between two calls; of an experiment the row
}

// maxSize is the longest message in bytes, as peer/peer.c has it.
const maxSize = 64 << 20

// line returns the order as rank 0 reads it.
func (o Order) line() string {
	return fmt.Sprintf("%s %d %d %d %d %d\n", o.Test, o.Size, o.Iters, o.Warmup, o.Window, o.Compute)
}

// parseOrder reads a line.
func parseOrder(line string) (Order, error) {
	var o Order
	_, err := fmt.Sscanf(line, "%s %d %d %d %d %d", &o.Test, &o.Size, &o.Iters, &o.Warmup, &o.Window, &o.Compute)
	switch {
	case err != nil:
		return Order{}, fmt.Errorf("%.80q is no order: %w", line, err)
	case o.Size < 0 || o.Size > maxSize, o.Iters < 1 || o.Iters > bench.MaxIters, o.Warmup < 0 || o.Warmup > bench.MaxIters, o.Window < 1 || o.Window > bench.MaxWindow, o.Compute < 0 || o.Compute > bench.OverlapMost:
		return Order{}, fmt.Errorf("%.80q is no order: a number in it is out of range", line)
	}
	return o, nil
}

// parseAnswer reads what rank 0 has measured.
func parseAnswer(line string, size int) (bench.Point, error) {
	var t bench.Latency
	if n, _ := fmt.Sscanf(line, "times %g %g %g %g %g %g %g", &t.Min, &t.P50, &t.P99, &t.P999, &t.Max, &t.Avg, &t.Stdev); n == 7 {
		return bench.Point{Lat: &t}, nil
	}
	var messages, seconds float64
	if n, _ := fmt.Sscanf(line, "stream %g %g", &messages, &seconds); n == 2 && seconds > 0 {
		rate := messages / seconds
		return bench.Point{Msgs: rate, Gbit: rate * float64(size) * 8 / 1e9}, nil
	}
	return bench.Point{}, fmt.Errorf("rank 0 answered %.200q", line)
}

// answer returns the line that parseAnswer reads.
func answer(t bench.Latency) string {
	return fmt.Sprintf("times %.9g %.9g %.9g %.9g %.9g %.9g %.9g\n", t.Min, t.P50, t.P99, t.P999, t.Max, t.Avg, t.Stdev)
}

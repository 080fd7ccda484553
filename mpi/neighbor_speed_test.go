package mpi_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/mpi"
)

// halo is a cube of n points a side with a layer of those of its neighbours around it,
// and its faces in one direction: what goes to both neighbours, and what comes.
type halo struct {
	g         *mpi.Comm
	cube      []float64
	out, in   []mpi.Data
	collected *mpi.Persistent
	messages  []*mpi.Persistent
	requests  []mpi.Request
}

// newHalo makes the halo of a ring of ranks. Faces of direction 0 are blocks, of 1 rows,
// of 2 single points.
func newHalo(w *mpi.Comm, n, direction int) (h *halo, err error) {
	h = &halo{}
	if h.g, err = w.CartCreate([]int{w.Size()}, []bool{true}, false); err != nil {
		return nil, err
	}
	cube := make([]float64, (n+2)*(n+2)*(n+2))
	face := func(at int) mpi.Data {
		sizes, part, from := []int{n + 2, n + 2, n + 2}, []int{n, n, n}, []int{1, 1, 1}
		part[direction], from[direction] = 1, at
		return mpi.Typed(cube, 1, must(mpi.TypeSubarray(sizes, part, from, mpi.OrderC, mpi.TypeDouble)))
	}
	h.cube = cube
	h.out, h.in = []mpi.Data{face(1), face(n)}, []mpi.Data{face(0), face(n + 1)}
	for i := range cube {
		cube[i] = float64(w.Rank()*len(cube) + i)
	}
	low, high, err := h.g.CartShift(0, 1)
	if err != nil {
		return nil, err
	}
	if h.collected, err = h.g.NeighborAlltoallwInit(h.out, h.in); err != nil {
		return nil, err
	}
	for i, r := range []int{low, high} {
		recv, err := h.g.RecvInit(h.in[i], r, 1-i)
		if err != nil {
			return nil, err
		}
		send, err := h.g.SendInit(h.out[i], r, i)
		if err != nil {
			return nil, err
		}
		h.messages = append(h.messages, recv, send)
	}
	return h, nil
}

// ways are how to exchange the faces.
func (h *halo) ways() []func() error {
	return []func() error{
		func() error {
			var err error
			h.requests, err = mpi.Startall(h.messages, h.requests[:0])
			return errors.Join(err, mpi.Waitall(h.requests))
		},
		func() error { return h.g.NeighborAlltoallw(h.out, h.in) },
		func() error { return wait(h.collected.Start()) },
	}
}

// All ways bring the same, short faces and long ones.
func TestNeighbor_faces(t *testing.T) {
	onRanks(t, []int{1, 2, 3}, func(p *mpi.Proc) error {
		for _, n := range []int{3, 20, 100} {
			for direction := range 3 {
				h, err := newHalo(p.World(), n, direction)
				if err != nil {
					return err
				}
				before := slices.Clone(h.cube)
				var want []float64
				for i, exchange := range h.ways() {
					copy(h.cube, before)
					if err := exchange(); err != nil {
						return err
					}
					if i == 0 {
						want = slices.Clone(h.cube)
					} else if !slices.Equal(h.cube, want) {
						return fmt.Errorf("%d points, direction %d: way %d brings something else than messages", n, direction, i)
					}
				}
			}
		}
		return nil
	})
}

// TestAllocs_Startall: rounds of persistent messages and collectives allocate nothing.
func TestAllocs_Startall(t *testing.T) {
	d := newTurnPair(t)
	var ranks [2]*halo
	d.play(t, 1, func(c *mpi.Comm) (err error) {
		ranks[c.Rank()], err = newHalo(c, 20, 1)
		if err == nil {
			ranks[c.Rank()].messages = append(ranks[c.Rank()].messages, ranks[c.Rank()].collected)
		}
		return err
	})
	round := [2]func() error{ranks[0].ways()[0], ranks[1].ways()[0]}
	rounds := func(n int) func() {
		return func() { d.play(t, n, func(c *mpi.Comm) error { return round[c.Rank()]() }) }
	}
	rounds(200)() // pools fill
	few, many := testing.AllocsPerRun(5, rounds(10)), testing.AllocsPerRun(5, rounds(210))
	if many > few {
		t.Errorf("%v allocations by 10 rounds, %v by 210", few, many)
	}
}

// Messages take faces from where they are: there is no copy of them.
func TestNeighbor_facesAreNotCopied(t *testing.T) {
	const n = 150 // 180 KB
	err := mpi.Run(1, func(p *mpi.Proc) error {
		h, err := newHalo(p.World(), n, 2)
		if err != nil {
			return err
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 4 {
			if _, err := h.g.NeighborAlltoallwInit(h.out, h.in); err != nil {
				return err
			}
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 8*n*n {
			return fmt.Errorf("four operations on faces of %d bytes take %d bytes of memory", 8*n*n, got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// BenchmarkNeighbor_faces exchanges faces by persistent messages and, in turn with
// these, by NeighborAlltoallw and its persistent form: how much longer these take.
func BenchmarkNeighbor_faces(b *testing.B) {
	for _, ranks := range []int{2, 4} {
		for _, n := range []int{88, 180, 360} { // 62 KB, 260 KB, 1 MB
			for direction, name := range []string{"blocks", "rows", "points"} {
				if n == 360 && direction == 1 {
					continue // the cubes are large
				}
				b.Run(fmt.Sprintf("%d/%dKB/%s", ranks, n*n*8>>10, name), func(b *testing.B) { benchFaces(b, ranks, n, direction) })
			}
		}
	}
}

// BenchmarkNeighbor_facesInTurn is BenchmarkNeighbor_faces of two ranks that take turns
// in one thread, through a pipe: what our own code takes, however busy the machine is.
func BenchmarkNeighbor_facesInTurn(b *testing.B) {
	for _, n := range []int{30, 88, 180, 360} {
		for direction, name := range []string{"blocks", "rows", "points"} {
			b.Run(fmt.Sprintf("%dKB/%s", n*n*8>>10, name), func(b *testing.B) {
				d := newTurnPair(b)
				var ranks [2]*halo
				d.play(b, 1, func(c *mpi.Comm) (err error) {
					ranks[c.Rank()], err = newHalo(c, n, direction)
					return err
				})
				ways := [2][]func() error{ranks[0].ways(), ranks[1].ways()}
				var took [3][]time.Duration
				for b.Loop() {
					for i := range took {
						begin := cpuTime()
						d.play(b, 4, func(c *mpi.Comm) error { return ways[c.Rank()][i]() })
						took[i] = append(took[i], (cpuTime()-begin)/4)
					}
				}
				reportFaces(b, took)
			})
		}
	}
}

// cpuTime is for how long this process has had a processor.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

func benchFaces(b *testing.B, ranks, n, direction int) {
	var took [3][]time.Duration
	err := mpi.Run(ranks, func(p *mpi.Proc) error {
		h, err := newHalo(p.World(), n, direction)
		if err != nil {
			return err
		}
		if p.World().Rank() == 0 {
			b.ResetTimer()
		}
		for range b.N + 5 {
			for i, exchange := range h.ways() {
				if err := h.g.Barrier(); err != nil {
					return err
				}
				begin := time.Now()
				if err := exchange(); err != nil {
					return err
				}
				if p.World().Rank() == 0 {
					took[i] = append(took[i], time.Since(begin))
				}
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	reportFaces(b, took)
}

// reportFaces compares the medians.
func reportFaces(b *testing.B, took [3][]time.Duration) {
	var median [3]float64
	for i, all := range took {
		slices.Sort(all)
		median[i] = float64(all[len(all)/2])
	}
	b.ReportMetric(median[0]/1000, "sends-us")
	b.ReportMetric(median[1]/median[0], "alltoallw/sends")
	b.ReportMetric(median[2]/median[0], "init/sends")
}

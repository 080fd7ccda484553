package mpi_test

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// pingPongData is pingPong for data.
func pingPongData(procs [2]*mpi.Proc, d mpi.Data) {
	for i := range procs {
		if err := procs[i].World().Send(d, 1-i, 5); err != nil {
			panic(err)
		}
		if _, err := procs[1-i].World().Recv(d, i, 5); err != nil {
			panic(err)
		}
	}
}

// shapes are n int64 in different ways.
func shapes(n int) map[string]mpi.Data {
	type pair struct {
		_ int64
		_ int32
	}
	plain, err := mpi.TypeOf[pair]()
	if err != nil {
		panic(err)
	}
	return map[string]mpi.Data{
		"slice":  mpi.Slice(make([]int64, n)),
		"column": mpi.Typed(make([]int64, 4*n), 1, must(mpi.TypeVector(n, 1, 4, mpi.TypeInt64))),
		"blocks": mpi.Typed(make([]int64, 2*n+16), 1, must(mpi.TypeHvector((n+7)/8, 8, 104, mpi.TypeInt64))),
		"struct": plain.Slice(make([]pair, n)),
	}
}

// TestAllocs_data: a message of data allocates nothing, wherever its elements lie.
func TestAllocs_data(t *testing.T) {
	procs := pipePair(t, mpi.Config{Receives: 24, Sends: 8})
	for _, n := range []int{1, 20, 1000} {
		for name, d := range shapes(n) {
			if got := testing.AllocsPerRun(100, func() { pingPongData(procs, d) }); got != 0 {
				t.Errorf("%s of %d: %v allocations per round trip, want none", name, n, got)
			}
		}
	}
	v := make([]int64, 8)
	column := must(mpi.TypeVector(4, 1, 2, mpi.TypeInt64))
	if got := testing.AllocsPerRun(100, func() { pingPongData(procs, mpi.Slice(v)) }); got != 0 {
		t.Errorf("Slice: %v allocations", got)
	}
	if got := testing.AllocsPerRun(100, func() { pingPongData(procs, mpi.Typed(v, 1, column)) }); got != 0 {
		t.Errorf("Typed: %v allocations", got)
	}
}

// exchangeData is exchange for data, which may be of any length.
func exchangeData(procs [2]*mpi.Proc, in, out [2]mpi.Data) {
	var requests [2][2]mpi.Request
	var err error
	for i := range procs {
		if requests[i][0], err = procs[i].World().Irecv(in[i], mpi.AnySource, 5); err != nil {
			panic(err)
		}
	}
	for i := range procs {
		if requests[i][1], err = procs[i].World().Isend(out[i], 1-i, 5); err != nil {
			panic(err)
		}
	}
	for left := 4; left > 0; {
		for i := range requests {
			procs[i].Engine().Step() // the other one may wait for our acknowledgement
			for k := range requests[i] {
				r := &requests[i][k]
				if r.IsNull() {
					continue
				}
				_, done, err := r.Test()
				if err != nil {
					panic(err)
				}
				if done {
					left--
				}
			}
		}
	}
}

// exchangedShapes has what two ranks send and receive in the shape of name.
func exchangedShapes(name string, n int) (in, out [2]mpi.Data) {
	for i := range in {
		in[i], out[i] = shapes(n)[name], shapes(n)[name]
	}
	return in, out
}

func TestAllocs_longData(t *testing.T) {
	procs := pipePair(t, mpi.Config{Receives: 24, Sends: 8})
	for name := range shapes(1) {
		in, out := exchangedShapes(name, 20_000)
		if got := testing.AllocsPerRun(20, func() { exchangeData(procs, in, out) }); got != 0 {
			t.Errorf("%s: %v allocations per exchange, want none", name, got)
		}
	}
}

// BenchmarkData_long compares long messages of data with those of slices.
func BenchmarkData_long(b *testing.B) {
	const n = 1 << 17
	procs := pipePair(b, mpi.Config{Receives: 24, Sends: 8})
	for name := range shapes(1) {
		b.Run(name, func(b *testing.B) {
			in, out := exchangedShapes(name, n)
			b.SetBytes(2 * 8 * n)
			for b.Loop() {
				exchangeData(procs, in, out)
			}
		})
	}
}

// dataCollectives are what is measured of the collectives over data.
func dataCollectives() map[string]func(c *mpi.Comm) error {
	column := must(mpi.TypeVector(16, 1, 4, mpi.TypeDouble))
	var a, b [2]mpi.Data
	var pairs [2]mpi.Data
	plain, err := mpi.TypeOf[mpi.Pair[float64]]()
	if err != nil {
		panic(err)
	}
	for i := range a {
		a[i], b[i] = mpi.Typed(make([]float64, 64*2), 2, must(mpi.TypeResized(column, 0, 512))), mpi.Slice(make([]float64, 32))
		pairs[i] = plain.Slice(make([]mpi.Pair[float64], 3))
	}
	return map[string]func(c *mpi.Comm) error{
		"Bcast":      func(c *mpi.Comm) error { return c.Bcast(a[c.Rank()], 0) },
		"BcastFlat":  func(c *mpi.Comm) error { return c.Bcast(b[c.Rank()], 0) },
		"Alltoall":   func(c *mpi.Comm) error { return c.Alltoall(a[c.Rank()], b[c.Rank()]) },
		"Allgather":  func(c *mpi.Comm) error { return c.Allgather(mpi.Data{}, a[c.Rank()]) },
		"Allreduce":  func(c *mpi.Comm) error { return c.Allreduce(b[c.Rank()], a[c.Rank()], mpi.OpSum) },
		"Maxloc":     func(c *mpi.Comm) error { return c.Allreduce(mpi.Data{}, pairs[c.Rank()], mpi.OpMaxloc) },
		"Iallreduce": func(c *mpi.Comm) error { return wait(c.Iallreduce(mpi.Data{}, a[c.Rank()], mpi.OpSum)) },
	}
}

func TestAllocs_dataCollectives(t *testing.T) {
	for name, f := range dataCollectives() {
		d := newTurnPair(t)
		d.play(t, 200, f) // pools fill
		few := testing.AllocsPerRun(5, func() { d.play(t, 10, f) })
		many := testing.AllocsPerRun(5, func() { d.play(t, 210, f) })
		if many > few {
			t.Errorf("%s: %v allocations by 10, %v by 210", name, few, many)
		}
	}
}

// BenchmarkData compares messages of data with those of slices: "slice" ought to
// take as long as generic.
func BenchmarkData(b *testing.B) {
	for _, n := range []int{1, 512} {
		procs := pipePair(b, mpi.Config{Receives: 24, Sends: 8})
		b.Run(fmt.Sprintf("generic/%d", 8*n), func(b *testing.B) {
			buf := make([]byte, 8*n)
			b.ReportAllocs()
			for b.Loop() {
				pingPong(procs, buf)
			}
		})
		for name, d := range shapes(n) {
			b.Run(fmt.Sprintf("%s/%d", name, 8*n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					pingPongData(procs, d)
				}
			})
		}
	}
}

// BenchmarkOp measures the operations over slices.
func BenchmarkOp(b *testing.B) {
	in, inout := make([]float64, 1000), make([]float64, 1000)
	ints, sums := make([]int32, 1000), make([]int32, 1000)
	small, smallSums := make([]int8, 1000), make([]int8, 1000)
	for name, op := range map[string]func(){
		"Sum/float64": func() { mpi.Sum(in, inout) },
		"Max/float64": func() { mpi.Max(in, inout) },
		"Sum/int32":   func() { mpi.Sum(ints, sums) },
		"Max/int32":   func() { mpi.Max(ints, sums) },
		"BOr/int32":   func() { mpi.BOr(ints, sums) },
		"Sum/int8":    func() { mpi.Sum(small, smallSums) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				op()
			}
		})
	}
}

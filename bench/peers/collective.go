package peers

import (
	"fmt"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi"
)

// call returns one call of a collective, or nil.
func (r *rank) call(o Order) func() error {
	n, all := o.Size, o.Size*r.size
	out, in := mem.ScalarsOf[float32](r.Out[:n&^3]), mem.ScalarsOf[float32](r.In[:n&^3])
	if call := r.callWithCounts(o); call != nil {
		return call
	}
	switch o.Test {
	case "allreduce":
		return func() error { return mpi.Allreduce(r.World, out, in, mpi.Sum) }
	case "reduce":
		return func() error { return mpi.Reduce(r.World, out, in, mpi.Sum, 0) }
	case "bcast":
		return func() error { return mpi.Bcast(r.World, r.Out[:n], 0) }
	case "alltoall":
		return func() error { return mpi.Alltoall(r.World, r.Out[:all], r.In[:all]) }
	case "allgather":
		return func() error { return mpi.Allgather(r.World, r.Out[:n], r.In[:all]) }
	case "gather":
		return func() error { return mpi.Gather(r.World, r.Out[:n], r.In[:all], 0) }
	case "scatter":
		return func() error { return mpi.Scatter(r.World, r.Out[:all], r.In[:n], 0) }
	case "scan":
		return func() error { return mpi.Scan(r.World, out, in, mpi.Sum) }
	case "exscan":
		return func() error { return mpi.Exscan(r.World, out, in, mpi.Sum) }
	case "barrier":
		return r.World.Barrier
	}
	return nil
}

// callWithCounts returns one call of a collective that takes a count for each rank, or one
// that reduces blocks, or nil. All counts are alike.
func (r *rank) callWithCounts(o Order) func() error {
	n, all := o.Size, o.Size*r.size
	counts, displs := make([]int, r.size), make([]int, r.size)
	outs, ins := make([][]byte, r.size), make([][]byte, r.size)
	for i := range r.size {
		counts[i], displs[i] = n, i*n
		outs[i], ins[i] = r.Out[i*n:(i+1)*n], r.In[i*n:(i+1)*n]
	}
	switch o.Test {
	case "allgatherv":
		return func() error { return mpi.Allgatherv(r.World, r.Out[:n], r.In[:all], counts, displs) }
	case "alltoallv":
		return func() error {
			return mpi.Alltoallv(r.World, r.Out[:all], counts, displs, r.In[:all], counts, displs)
		}
	case "alltoallw":
		return func() error { return mpi.Alltoallw(r.World, outs, ins) }
	case "gatherv":
		return func() error { return mpi.Gatherv(r.World, r.Out[:n], r.In[:all], counts, displs, 0) }
	case "scatterv":
		return func() error { return mpi.Scatterv(r.World, r.Out[:all], counts, displs, r.In[:n], 0) }
	case "reduce_scatter", "reduce_scatter_block":
		words := n / 4
		out, in := mem.ScalarsOf[float32](r.Out[:4*words*r.size]), mem.ScalarsOf[float32](r.In[:4*words])
		if o.Test == "reduce_scatter_block" {
			return func() error { return mpi.ReduceScatterBlock(r.World, out, in, mpi.Sum) }
		}
		for i := range counts {
			counts[i] = words
		}
		return func() error { return mpi.ReduceScatter(r.World, out, in, counts, mpi.Sum) }
	}
	return nil
}

// collective times the calls of every rank, with a barrier between them.
func (r *rank) collective(o Order) error {
	call := r.call(o)
	if call == nil {
		return fmt.Errorf("there is no test %q", o.Test)
	}
	for i := -o.Warmup; i < o.Iters; i++ {
		start := r.clock.Now()
		if err := call(); err != nil {
			return err
		}
		if i >= 0 {
			r.samples = append(r.samples, r.clock.Now().Sub(start))
		}
		if o.Test == "barrier" {
			continue
		}
		if err := r.World.Barrier(); err != nil {
			return err
		}
	}
	return r.gather(bench.Summarize(r.samples, 1))
}

// gather answers with the mean over the ranks, and with the extremes of all.
func (r *rank) gather(t bench.Latency) error {
	sums, low, high := []float64{t.P50, t.P99, t.P999, t.Avg, t.Stdev}, []float64{t.Min}, []float64{t.Max}
	for _, err := range []error{
		mpi.Allreduce(r.World, mpi.InPlace[float64](), sums, mpi.Sum),
		mpi.Allreduce(r.World, mpi.InPlace[float64](), low, mpi.Min),
		mpi.Allreduce(r.World, mpi.InPlace[float64](), high, mpi.Max),
	} {
		if err != nil {
			return err
		}
	}
	if r.me != 0 {
		return nil
	}
	for i := range sums {
		sums[i] /= float64(r.size)
	}
	return r.say(answer(bench.Latency{Min: low[0], P50: sums[0], P99: sums[1], P999: sums[2], Max: high[0], Avg: sums[3], Stdev: sums[4]}))
}

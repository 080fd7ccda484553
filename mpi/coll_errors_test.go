package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// TestCollectives_wrongArguments: what one rank can see to be wrong is refused
// before anything is sent, so that all of it can be tried on one rank of two.
func TestCollectives_wrongArguments(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 1 {
			return nil
		}
		var none *mpi.Comm
		two, three, four := make([]int, 2), make([]int, 3), make([]int, 4)
		ibcast, ibcastErr := mpi.Ibcast(c, two, 2)
		_, initErr := mpi.BcastInit(c, two, -1)
		for i, want := range []struct {
			class mpi.ErrorClass
			err   error
		}{
			{mpi.ErrRoot, mpi.Bcast(c, two, 2)},
			{mpi.ErrRoot, mpi.Bcast(c, two, mpi.ProcNull)},
			{mpi.ErrRoot, ibcastErr},
			{mpi.ErrRoot, initErr},
			{mpi.ErrRoot, mpi.Gather(c, two, four, -1)},
			{mpi.ErrRoot, mpi.Scatter(c, four, two, 9)},
			{mpi.ErrRoot, mpi.Reduce(c, two, two, mpi.Sum, 2)},
			{mpi.ErrCount, mpi.Gather(c, two, three, 0)},
			{mpi.ErrCount, mpi.Gather(c, nil, three, 0)},
			{mpi.ErrCount, mpi.Scatter(c, three, two, 0)},
			{mpi.ErrCount, mpi.Scatter(c, four, three, 0)},
			{mpi.ErrArg, mpi.Gatherv(c, two, four, []int{2}, nil, 0)},
			{mpi.ErrArg, mpi.Gatherv(c, two, four, []int{2, 2}, []int{0}, 0)},
			{mpi.ErrCount, mpi.Gatherv(c, two, four, []int{2, 3}, nil, 0)},
			{mpi.ErrCount, mpi.Gatherv(c, two, four, []int{2, 2}, []int{0, 3}, 0)},
			{mpi.ErrCount, mpi.Gatherv(c, two, four, []int{2, -1}, nil, 0)},
			{mpi.ErrCount, mpi.Gatherv(c, two, four, []int{1, 2}, nil, 0)},
			{mpi.ErrCount, mpi.Scatterv(c, four, []int{2, 2}, []int{-1, 2}, two, 0)},
			{mpi.ErrCount, mpi.Allgather(c, two, three)},
			{mpi.ErrCount, mpi.Allgather(c, three, four)},
			{mpi.ErrCount, mpi.Allgatherv(c, two, four, []int{4, 4}, nil)},
			{mpi.ErrCount, mpi.Alltoall(c, three, three)},
			{mpi.ErrCount, mpi.Alltoall(c, two, four)},
			{mpi.ErrCount, mpi.Alltoallv(c, two, []int{1, 1}, nil, four, []int{2, 2}, nil)},
			{mpi.ErrArg, mpi.Alltoallw(c, [][]int{two}, [][]int{two, two})},
			{mpi.ErrCount, mpi.Reduce(c, two, three, mpi.Sum, 0)},
			{mpi.ErrCount, mpi.Allreduce(c, two, three, mpi.Sum)},
			{mpi.ErrOp, mpi.Allreduce(c, two, two, nil)},
			{mpi.ErrOp, mpi.Allreduce(c, two, two, mpi.Sum, 7)},
			{mpi.ErrCount, mpi.ReduceScatterBlock(c, three, two, mpi.Sum)},
			{mpi.ErrCount, mpi.ReduceScatterBlock(c, four, two[:1], mpi.Sum)},
			{mpi.ErrArg, mpi.ReduceScatter(c, four, two, []int{4}, mpi.Sum)},
			{mpi.ErrCount, mpi.ReduceScatter(c, four, two, []int{2, 1}, mpi.Sum)},
			{mpi.ErrCount, mpi.ReduceScatter(c, four, two, []int{3, 1}, mpi.Sum)},
			{mpi.ErrCount, mpi.Scan(c, two, three, mpi.Sum)},
			{mpi.ErrCount, mpi.Exscan(c, two, three, mpi.Sum)},
			{mpi.ErrComm, mpi.Bcast(none, two, 0)},
			{mpi.ErrComm, mpi.Scan(none, nil, two, mpi.Sum)},
			{mpi.ErrComm, mpi.ReduceScatterBlock(none, four, two, mpi.Sum)},
			{mpi.ErrComm, mpi.NeighborAlltoall(none, four, four)},
		} {
			if err := wantClass(want.err, want.class); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		if !ibcast.IsNull() {
			return errors.New("a request of what was refused")
		}
		return nil
	})
}

func TestCollectives_freedCommunicator(t *testing.T) {
	onRanks(t, []int{3}, func(p *mpi.Proc) error {
		c, err := p.World().Dup()
		if err != nil {
			return err
		}
		v := []int{1}
		kept, err := mpi.AllreduceInit(c, nil, v, mpi.Sum)
		if err = errors.Join(err, c.Free()); err != nil {
			return err
		}
		started, err := kept.Start() // which lasts longer than the communicator: MPI 4.1, section 7.4.3
		if err == nil {
			_, err = started.Wait()
		}
		if err = errors.Join(err, kept.Free()); err != nil || v[0] != 3 {
			return fmt.Errorf("the sum of the kept one is %d: %w", v[0], err)
		}
		_, later := c.Ibarrier()
		_, often := c.BarrierInit()
		for i, err := range []error{later, often, c.Barrier(), mpi.Bcast(c, v, 0), mpi.Allgather(c, v, v), mpi.Scan(c, nil, v, mpi.Sum)} {
			if err := wantClass(err, mpi.ErrComm); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		return nil
	})
}

func TestNonblocking_lengthsDisagree(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		r, err := mpi.Ibcast(c, make([]byte, 10+c.Rank()), 0)
		if err != nil {
			return err
		}
		if _, err = r.Wait(); c.Rank() == 0 {
			return err
		}
		return wantClass(err, mpi.ErrTruncate)
	})
}

// TestCollectives_lengthsDisagree lets one rank call collectives with another length than the
// others do: somebody gets an error, nobody waits for what does not come, and the collective
// behind it is as it should be.
func TestCollectives_lengthsDisagree(t *testing.T) {
	oneGoroutine(t)
	kinds := []func(c *mpi.Comm, v []int32) error{
		func(c *mpi.Comm, v []int32) error { return mpi.Bcast(c, v, 0) },
		func(c *mpi.Comm, v []int32) error { return mpi.Allreduce(c, nil, v, mpi.Sum) },
		func(c *mpi.Comm, v []int32) error { return mpi.Reduce(c, v, make([]int32, len(v)), mpi.Sum, 0) },
		func(c *mpi.Comm, v []int32) error { return mpi.Allgather(c, v, make([]int32, len(v)*c.Size())) },
		func(c *mpi.Comm, v []int32) error { return mpi.Gather(c, v, make([]int32, len(v)*c.Size()), 0) },
		func(c *mpi.Comm, v []int32) error { return mpi.Scatter(c, make([]int32, len(v)*c.Size()), v, 0) },
		func(c *mpi.Comm, v []int32) error {
			return mpi.Alltoall(c, make([]int32, len(v)*c.Size()), make([]int32, len(v)*c.Size()))
		},
		func(c *mpi.Comm, v []int32) error { return mpi.Scan(c, nil, v, mpi.Sum) },
		func(c *mpi.Comm, v []int32) error {
			return mpi.ReduceScatterBlock(c, make([]int32, len(v)*c.Size()), v, mpi.Sum)
		},
	}
	for seed := range uint64(24) {
		size := 2 + int(seed)%7
		odd, more := int(seed)%size, 1+int(seed)%3
		for i, kind := range kinds {
			found := 0
			simulate(t, sim.Config{Seed: seed, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.02, Reorder: 0.05}}}, size, func(p *mpi.Proc) error {
				c := p.World()
				v := make([]int32, 5)
				if c.Rank() == odd {
					v = make([]int32, 5+more)
				}
				if err := kind(c, v); err != nil {
					if found++; wantClass(err, mpi.ErrTruncate) != nil {
						return fmt.Errorf("kind %d, %d ranks, seed %d: %w", i, size, seed, err)
					}
				}
				sum := []int32{1}
				if err := mpi.Allreduce(c, nil, sum, mpi.Sum); err != nil || sum[0] != int32(size) {
					return fmt.Errorf("kind %d, %d ranks, seed %d: then the sum is %d: %w", i, size, seed, sum[0], err)
				}
				return nil
			})
			if found == 0 {
				t.Errorf("kind %d, %d ranks, seed %d: no rank finds out", i, size, seed)
			}
		}
	}
}

// TestLost_collectivesInTheMiddle lets a rank die at a random moment while others
// are in all kinds of collectives, several at a time: they get an error or their
// data, never hang.
func TestLost_collectivesInTheMiddle(t *testing.T) {
	oneGoroutine(t)
	kinds := []func(c *mpi.Comm, v, all []float64) (mpi.Request, error){
		func(c *mpi.Comm, v, _ []float64) (mpi.Request, error) { return mpi.Ibcast(c, v, 2) },
		func(c *mpi.Comm, v, _ []float64) (mpi.Request, error) { return mpi.Iallreduce(c, nil, v, mpi.Sum) },
		func(c *mpi.Comm, v, all []float64) (mpi.Request, error) { return mpi.Iallgather(c, v, all) },
		func(c *mpi.Comm, v, all []float64) (mpi.Request, error) { return mpi.Ialltoall(c, nil, all) },
		func(c *mpi.Comm, v, _ []float64) (mpi.Request, error) { return mpi.Iscan(c, nil, v, mpi.Sum) },
		func(c *mpi.Comm, _, _ []float64) (mpi.Request, error) { return c.Ibarrier() },
	}
	for moment := range 12 {
		crashWorld(t, 4, func(task *sim.Task, p *mpi.Proc) error {
			c := p.World()
			end := task.Now().Add(mono.Duration(moment) * 200 * mono.Microsecond)
			for {
				if c.Rank() == 2 && task.Now() > end {
					return errCrash
				}
				requests := make([]mpi.Request, len(kinds))
				for i, start := range kinds {
					n := []int{10, 6000}[i%2]
					var err error
					if requests[i], err = start(c, make([]float64, n), make([]float64, n*c.Size())); err != nil {
						return wantLost(err, 2)
					}
				}
				if err := mpi.Waitall(requests); err != nil {
					return wantLost(err, 2)
				}
			}
		})
	}
}

package mpi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// calls are what the ranks do, by rank; the last one is what the others do.
type calls []func(c *mpi.Comm) error

func (list calls) of(rank int) func(c *mpi.Comm) error { return list[min(rank, len(list)-1)] }

// mismatches have ranks that do different things, most of which would wait for ever.
var mismatches = []struct {
	name  string
	calls calls
	want  string
}{
	{"other collective", calls{allreduce, allreduce, func(c *mpi.Comm) error { return mpi.Bcast(c, []int{0}, 0) }, allreduce},
		"rank 2 called Bcast(root 0), rank 0 called Allreduce"},
	{"other root", calls{func(c *mpi.Comm) error { return mpi.Bcast(c, []int{0}, 0) }, func(c *mpi.Comm) error { return mpi.Bcast(c, []int{0}, 1) }},
		"rank 1 called Bcast(root 1), rank 0 called Bcast(root 0)"},
	{"other length", calls{allreduce, func(c *mpi.Comm) error { return mpi.Allreduce(c, nil, []int{1, 2}, mpi.Sum) }},
		"rank 1 called Allreduce(16 bytes, in elements of 8), rank 0 called Allreduce(8 bytes, in elements of 8)"},
	{"other elements", calls{allreduce, func(c *mpi.Comm) error { return mpi.Allreduce(c, nil, []float32{1, 2}, mpi.Sum) }},
		"rank 1 called Allreduce(8 bytes, in elements of 4), rank 0 called Allreduce(8 bytes, in elements of 8)"},
	{"other operation", calls{reduceBy(mpi.OpMax), reduceBy(mpi.OpSum)},
		"rank 1 called Reduce(root 0, MPI_SUM, 8 bytes), rank 0 called Reduce(root 0, MPI_MAX, 8 bytes)"},
	{"other part", calls{gatherOf(1), gatherOf(1), gatherOf(2), gatherOf(1)},
		"rank 2 called Gather(root 0, 16 bytes), rank 0 called Gather(root 0, 8 bytes)"},
	{"nonblocking", calls{func(c *mpi.Comm) error { return wait(c.Ibarrier()) }, (*mpi.Comm).Barrier}, "rank 1 called Barrier, rank 0 called Ibarrier"},
	{"both nonblocking", calls{
		func(c *mpi.Comm) error { return wait(mpi.Iallreduce(c, nil, []int{1}, mpi.Sum)) },
		func(c *mpi.Comm) error { return wait(mpi.Ibcast(c, []int{1}, 1)) }},
		"rank 1 called Ibcast(root 1), rank 0 called Iallreduce"},
	{"persistent", calls{
		func(c *mpi.Comm) error { return started(mpi.AllreduceInit(c, nil, []int{1}, mpi.Sum)) },
		func(c *mpi.Comm) error { return started(mpi.BcastInit(c, []int{1}, 2)) }},
		"rank 1 called BcastInit(root 2), rank 0 called AllreduceInit"},
	{"communicators", calls{
		func(c *mpi.Comm) error { _, err := c.Dup(); return err },
		func(c *mpi.Comm) error { _, err := c.Split(0, 0); return err }},
		"rank 1 called Comm.Split, rank 0 called Comm.Dup"},
	{"Idup", calls{
		func(c *mpi.Comm) error {
			_, r, err := c.Idup()
			return errors.Join(err, wait(r, nil))
		},
		func(c *mpi.Comm) error { return wait(mpi.Iallreduce(c, nil, []int{1}, mpi.Sum)) }},
		"rank 1 called Iallreduce, rank 0 called Comm.Idup"},
}

func allreduce(c *mpi.Comm) error { return mpi.Allreduce(c, nil, []int{1}, mpi.Sum) }

func reduceBy(op mpi.Operation) func(c *mpi.Comm) error {
	return func(c *mpi.Comm) error { return c.Reduce(mpi.Slice([]int64{1}), mpi.Slice([]int64{1}), op, 0) }
}

func gatherOf(n int) func(c *mpi.Comm) error {
	return func(c *mpi.Comm) error { return mpi.Gather(c, make([]int, n), make([]int, c.Size()), 0) }
}

func started(o *mpi.Persistent, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(wait(o.Start()), o.Free())
}

// All ranks get the error, and go on.
func findMismatches(p *mpi.Proc) error {
	for _, m := range mismatches {
		c := p.World()
		err := m.calls.of(c.Rank())(c)
		if err == nil || !strings.HasSuffix(err.Error(), m.want) {
			return fmt.Errorf("%s: rank %d got %v, want %s", m.name, c.Rank(), err, m.want)
		}
		if err := wantClass(err, mpi.ErrOther); err != nil {
			return err
		}
		if err := works(c); err != nil {
			return fmt.Errorf("after %s: %w", m.name, err)
		}
	}
	return nil
}

func TestCheck_finds(t *testing.T) {
	for name, cfg := range map[string]mpi.Config{"one goroutine": {}, "threads": {Threads: mpi.ThreadMultiple}} {
		t.Run(name, func(t *testing.T) {
			cfg.Check = true
			if err := mpi.RunWith(4, cfg, findMismatches); err != nil {
				t.Error(err)
			}
		})
	}
	for seed := range uint64(3) {
		w := newSimWorld(sim.Config{Seed: seed, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.05, Reorder: 0.05}}}, 3)
		w.mpi.Check = true
		w.launch(func(_ *sim.Task, p *mpi.Proc) error { return findMismatches(p) })
		if err := w.Run(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// Between groups names are compared.
func TestCheck_inter(t *testing.T) {
	err := mpi.RunWith(3, mpi.Config{Check: true}, func(p *mpi.Proc) error {
		g, err := split(p, 2)
		if err != nil {
			return err
		}
		if g.side == 0 {
			err = mpi.Bcast(g.Comm, []int{0}, g.root(0))
		} else {
			err = mpi.Allreduce(g.Comm, []int{0}, []int{0}, mpi.Sum)
		}
		want := "rank 0 of the other group called "
		if err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("%v, want %s", err, want)
		}
		return errors.Join(g.all(blocking, 10), g.Free())
	})
	if err != nil {
		t.Error(err)
	}
}

// What is right passes.
func TestCheck_passes(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		err := mpi.RunWith(n, mpi.Config{Check: true}, func(p *mpi.Proc) error {
			if n == 1 {
				return errors.Join(suiteCollectives(p), suiteCommunicators(p))
			}
			return errors.Join(suiteCollectives(p), everyMessage(p))
		})
		if err != nil {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// pile is many collectives of one communicator under way at a time.
type pile struct {
	requests []mpi.Request
	checks   []func() error
}

func (p *pile) add(r mpi.Request, err error, check func() error) error {
	p.requests, p.checks = append(p.requests, r), append(p.checks, check)
	return err
}

// start starts one of each of several kinds, with vectors of n elements.
func (p *pile) start(c *mpi.Comm, n, round int) error {
	me, size := c.Rank(), c.Size()
	bcast, sum, all := make([]int64, n), vector[int64](me, n), make([]int64, n*size)
	if root := round % size; me == root {
		copy(bcast, vector[int64](round, n))
	}
	folded := make([]int64, n)
	for r := range size {
		mpi.Sum(vector[int64](r, n), folded)
	}
	var whole []int64
	for r := range size {
		whole = append(whole, vector[int64](r+round, n)...)
	}
	b, err := mpi.Ibcast(c, bcast, round%size)
	err = p.add(b, err, func() error { return expect("Ibcast", bcast, vector[int64](round, n)) })
	r, err2 := mpi.Iallreduce(c, nil, sum, mpi.Sum)
	err2 = p.add(r, err2, func() error { return expect("Iallreduce", sum, folded) })
	g, err3 := mpi.Iallgather(c, vector[int64](me+round, n), all)
	err3 = p.add(g, err3, func() error { return expect("Iallgather", all, whole) })
	w, err4 := c.Ibarrier()
	return errors.Join(err, err2, err3, p.add(w, err4, func() error { return nil }))
}

// finish waits in an order of this rank's own, by all the ways there are.
func (p *pile) finish(rnd *rand.Rand) error {
	for left := len(p.requests); left > 0; left-- {
		i := rnd.IntN(len(p.requests))
		for p.requests[i].IsNull() {
			i = (i + 1) % len(p.requests)
		}
		var err error
		switch rnd.IntN(3) {
		case 0:
			_, err = p.requests[i].Wait()
		case 1:
			for done := false; !done && err == nil; {
				_, done, err = p.requests[i].Test()
			}
		default:
			i, _, err = mpi.Waitany(p.requests)
		}
		if err = errors.Join(err, p.checks[i]()); err != nil {
			return err
		}
	}
	return mpi.Waitall(p.requests) // all null
}

func TestNonblocking_manyAtATime(t *testing.T) {
	onRanks(t, []int{1, 2, 3, 5}, func(p *mpi.Proc) error {
		c := p.World()
		rnd := rand.New(rand.NewPCG(7, uint64(c.Rank())))
		for round := range 6 {
			var pile pile
			for k, n := range []int{1, 700, 5000, 0, 30} {
				if err := pile.start(c, n, round+k); err != nil {
					return err
				}
				// Blocking ones and messages go in between.
				v := []int{1}
				if err := mpi.Allreduce(c, nil, v, mpi.Sum); err != nil || v[0] != c.Size() {
					return fmt.Errorf("Allreduce in between: %v, %w", v, err)
				}
				if err := ring(c); err != nil {
					return err
				}
			}
			if err := pile.finish(rnd); err != nil {
				return fmt.Errorf("rank %d of %d: %w", c.Rank(), c.Size(), err)
			}
		}
		return nil
	})
}

// TestNonblocking_goesOnInOtherCalls: a rank that waits for a message of another
// kind serves its collectives meanwhile.
func TestNonblocking_goesOnInOtherCalls(t *testing.T) {
	simulate(t, sim.Config{}, 4, func(p *mpi.Proc) error {
		c := p.World()
		v := make([]float64, 20_000)
		v[9] = 1
		r, err := mpi.Iallreduce(c, nil, v, mpi.Sum)
		if err != nil {
			return err
		}
		if c.Rank() != 0 {
			// Rank 0 is told only when the reduction is complete here, for
			// which it has to take part.
			if _, err := r.Wait(); err != nil {
				return err
			}
			return mpi.Send(c, v[9:10], 0, 1)
		}
		for range c.Size() - 1 {
			if _, err := mpi.Recv(c, make([]float64, 1), mpi.AnySource, 1); err != nil {
				return err
			}
		}
		if _, done, err := r.Test(); !done || err != nil || v[9] != 4 {
			return fmt.Errorf("done %v, %v, sum %v", done, err, v[9])
		}
		return nil
	})
}

func TestIbarrier_waitsForTheLast(t *testing.T) {
	w := newSimWorld(sim.Config{}, 5)
	const late = 3 * mono.Millisecond
	w.launch(func(task *sim.Task, p *mpi.Proc) error {
		if p.World().Rank() == 3 {
			task.Sleep(late)
		}
		r, err := p.World().Ibarrier()
		if err != nil {
			return err
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		if now := task.Now(); now < mono.Time(late) {
			return fmt.Errorf("left the barrier at %v, before rank 3 entered", mono.Duration(now))
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

func TestPersistent_anyOrder(t *testing.T) {
	onRanks(t, []int{1, 3, 4}, func(p *mpi.Proc) error {
		c := p.World()
		const ops = 5
		vectors, results := make([][]int, ops), make([][]int, ops)
		list := make([]*mpi.Persistent, ops)
		for i := range list {
			vectors[i], results[i] = make([]int, 300*i+1), make([]int, 300*i+1)
			var err error
			if list[i], err = mpi.AllreduceInit(c, vectors[i], results[i], mpi.Max); err != nil {
				return err
			}
		}
		rnd := rand.New(rand.NewPCG(3, uint64(c.Rank())))
		for round := range 20 {
			for i := range vectors {
				vectors[i][0] = round*100 + i*10 + c.Rank()
			}
			// Each rank starts them in an order of its own.
			order := rnd.Perm(ops)
			requests := make([]mpi.Request, ops)
			for _, i := range order {
				var err error
				if requests[i], err = list[i].Start(); err != nil {
					return err
				}
			}
			_, again := list[0].Start()
			free := list[0].Free()
			if err := errors.Join(wantClass(again, mpi.ErrRequest), wantClass(free, mpi.ErrRequest), mpi.Waitall(requests)); err != nil {
				return err
			}
			for i := range results {
				if want := round*100 + i*10 + c.Size() - 1; results[i][0] != want {
					return fmt.Errorf("round %d, operation %d: %d, want %d", round, i, results[i][0], want)
				}
			}
		}
		requests, err := mpi.Startall(list, nil)
		if err = errors.Join(err, mpi.Waitall(requests), list[0].Free(), list[0].Free()); err != nil {
			return err
		}
		_, err = list[0].Start()
		return wantClass(err, mpi.ErrRequest)
	})
}

func TestNonblocking_staleRequests(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		r, err := p.World().Ibarrier()
		if err != nil {
			return err
		}
		copied := r
		if _, err := r.Wait(); err != nil || !r.IsNull() {
			return fmt.Errorf("null %v: %w", r.IsNull(), err)
		}
		if _, err := p.World().Ibarrier(); err != nil { // has the same object now
			return err
		}
		_, waited := copied.Wait()
		_, _, tested := copied.Test()
		if err := errors.Join(wantClass(waited, mpi.ErrRequest), wantClass(tested, mpi.ErrRequest)); err != nil {
			return err
		}
		if err := wantClass(p.Finalize(), mpi.ErrPending); err != nil { // nobody has waited for it
			return fmt.Errorf("Finalize: %w", err)
		}
		return nil
	})
}

package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// Communicators are freed while messages of all lengths and collectives are under way
// on them. They come to their end, also while new communicators, which must not get
// their contexts, have the same messages.
func TestComm_freeWhileUnderWay(t *testing.T) {
	everyWay(t, 3, func(p *mpi.Proc) error {
		w := p.World()
		right, left := (w.Rank()+1)%3, (w.Rank()+2)%3
		sizes := []int{0, 1, 1000, 70_000, 1_500_000}
		for round := range 4 {
			c, err := w.Dup()
			if err != nil {
				return err
			}
			var requests []mpi.Request
			start := func(r mpi.Request, err2 error) { requests, err = append(requests, r), errors.Join(err, err2) }
			in, sum := make([][]byte, len(sizes)), []int{w.Rank()}
			for i, n := range sizes {
				in[i] = make([]byte, n)
				out := make([]byte, n)
				pattern(out, 100*round+10*i+w.Rank())
				source := left
				if round == 1 {
					source = mpi.AnySource
				}
				start(mpi.Irecv(c, in[i], source, i))
				start(mpi.Isend(c, out, right, i))
			}
			start(mpi.Iallreduce(c, nil, sum, mpi.Sum))
			child, made, err2 := c.Idup()
			start(made, err2)
			if err = errors.Join(err, c.Free()); err != nil {
				return err
			}
			if err := wantClass(c.Barrier(), mpi.ErrComm); err != nil {
				return err
			}
			next, err := w.Dup()
			if err == nil { // messages of the same envelopes, but for the context
				err = second(mpi.Sendrecv(next, []byte{77}, right, 0, make([]byte, 1), mpi.AnySource, 0))
			}
			if err != nil {
				return err
			}
			if err := mpi.Waitall(requests); err != nil {
				return err
			}
			for i := range in {
				if err := checkPattern(in[i], 100*round+10*i+left); err != nil {
					return fmt.Errorf("message of %d bytes: %w", len(in[i]), err)
				}
			}
			if sum[0] != 3 {
				return fmt.Errorf("the sum is %d", sum[0])
			}
			if err := errors.Join(works(child), child.Free(), next.Free()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Free does not wait for the end of operations: one that needs another call of the
// program on another rank, after that has freed the communicator, comes to its end.
func TestComm_freeDoesNotWait(t *testing.T) {
	everyWay(t, 2, func(p *mpi.Proc) error {
		w := p.World()
		c, err := w.Dup()
		if err != nil {
			return err
		}
		data, n := make([]int, 8), 4
		var o *mpi.Persistent
		if w.Rank() == 0 {
			o, err = mpi.PsendInit(c, data, n, 1, 0)
		} else {
			o, err = mpi.PrecvInit(c, data, n, 0, 0)
		}
		if err != nil {
			return err
		}
		r, err := o.Start()
		if err != nil {
			return err
		}
		if err := c.Free(); err != nil {
			return err
		}
		if w.Rank() == 0 {
			if _, err := mpi.Recv(w, []int{0}, 1, 0); err != nil {
				return err
			}
			for i := range data {
				data[i] = i
			}
			err = o.PreadyRange(0, n-1)
		} else {
			err = mpi.Send(w, []int{0}, 0, 0)
		}
		if err = errors.Join(err, second(r.Wait())); err != nil {
			return err
		}
		if !slices.Equal(data, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			return fmt.Errorf("got %d", data)
		}
		return o.Free()
	})
}

// Persistent operations on a communicator that was freed are started as ever, and its
// context is not used again before they are freed.
func TestComm_freePersistent(t *testing.T) {
	everyWay(t, 2, func(p *mpi.Proc) error {
		w := p.World()
		c, err := w.Dup()
		if err != nil {
			return err
		}
		peer, n := 1-w.Rank(), 20_000
		if err := c.BufferAttach(mpi.BufferAutomatic); err != nil {
			return err
		}
		column, err := mpi.TypeVector(n, 1, 2, mpi.TypeInt64)
		if err == nil {
			err = column.Commit()
		}
		if err != nil {
			return err
		}
		out, in, sum := make([]int, 2*n), make([][]int, 4), []int{0}
		var all []*mpi.Persistent
		made := func(o *mpi.Persistent, err2 error) { all, err = append(all, o), errors.Join(err, err2) }
		for tag := range in {
			in[tag] = make([]int, 2*n)
			made(c.RecvInit(mpi.Typed(in[tag], 1, column), peer, tag))
		}
		made(c.SendInit(mpi.Typed(out, 1, column), peer, 0))
		made(c.SsendInit(mpi.Typed(out, 1, column), peer, 1))
		made(c.BsendInit(mpi.Typed(out, 1, column), peer, 2))
		made(c.RsendInit(mpi.Typed(out, 1, column), peer, 3))
		made(mpi.SendInit(c, out, mpi.ProcNull, 0))
		made(mpi.AllreduceInit(c, nil, sum, mpi.Sum))
		if err := errors.Join(err, c.Free()); err != nil {
			return err
		}
		for round := range 3 {
			other, err := w.Dup()
			if err != nil {
				return err
			}
			for i := range out {
				out[i] = round + w.Rank() + i
			}
			sum[0] = round + w.Rank()
			requests, err := mpi.Startall(all, nil)
			if err != nil {
				return err
			}
			stranger, err := mpi.Irecv(other, []int{0}, mpi.AnySource, mpi.AnyTag) // gets none of them
			if err != nil {
				return err
			}
			if err := errors.Join(mpi.Waitall(requests), stranger.Cancel()); err != nil {
				return err
			}
			if st, err := stranger.Wait(); err != nil || !st.Cancelled() {
				return fmt.Errorf("another communicator got a message: %w", err)
			}
			for tag := range in {
				if last := 2*n - 2; in[tag][last] != round+peer+last || in[tag][1] != 0 {
					return fmt.Errorf("round %d, tag %d: got %d", round, tag, in[tag][last])
				}
			}
			if sum[0] != 2*round+1 {
				return fmt.Errorf("round %d: the sum is %d", round, sum[0])
			}
			if err := other.Free(); err != nil {
				return err
			}
		}
		for _, o := range all {
			if err := o.Free(); err != nil {
				return err
			}
		}
		return wantClass(second(all[0].Start()), mpi.ErrRequest)
	})
}

// Disconnect waits for what is under way, Free does not.
func TestComm_disconnect(t *testing.T) {
	everyWay(t, 2, func(p *mpi.Proc) error {
		w := p.World()
		c, err := w.Dup()
		if err != nil {
			return err
		}
		in, peer := make([]byte, 500_000), 1-w.Rank()
		r, err := mpi.Irecv(c, in, peer, 0)
		if err != nil {
			return err
		}
		s, err := mpi.Isend(c, make([]byte, len(in)), peer, 0)
		if err != nil {
			return err
		}
		if err := c.Disconnect(); err != nil {
			return err
		}
		for _, r := range []mpi.Request{r, s} {
			if _, done, err := r.GetStatus(); !done || err != nil {
				return fmt.Errorf("done: %v, %w", done, err)
			}
		}
		return errors.Join(mpi.Waitall([]mpi.Request{r, s}), wantClass(c.Disconnect(), mpi.ErrComm), wantClass(w.Disconnect(), mpi.ErrComm))
	})
}

// As long as something is under way its context is not used again; then it is.
func TestComm_freeGivesBackLater(t *testing.T) {
	body := func(p *mpi.Proc) error {
		w := p.World()
		peer := 1 - w.Rank()
		for i := range 2100 {
			c, err := w.Dup()
			if err != nil {
				return fmt.Errorf("number %d: %w", i, err)
			}
			in := []int{0}
			r, err := mpi.Irecv(c, in, peer, 0)
			if err != nil {
				return err
			}
			if err := errors.Join(mpi.Send(c, []int{i}, peer, 0), c.Free()); err != nil {
				return err
			}
			if _, err := r.Wait(); err != nil || in[0] != i {
				return fmt.Errorf("got %d, want %d: %w", in[0], i, err)
			}
		}
		return nil
	}
	t.Run("shared memory", func(t *testing.T) { onRanks(t, []int{2}, body) })
	t.Run("simulated", func(t *testing.T) { simulate(t, sim.Config{}, 2, body) })
}

// A rank is lost that operations of a freed communicator need: they fail.
func TestComm_freeAndLoss(t *testing.T) {
	for rank, err := range mpi.RunEach(3, func(p *mpi.Proc) error {
		w := p.World()
		c, err := w.Dup()
		if err != nil {
			return err
		}
		if w.Rank() == 2 {
			_, err := mpi.PsendInit(c, make([]int, 4), 4, 0, 0)
			return errors.Join(err, second(mpi.PsendInit(c, make([]int, 4), 4, 1, 0)), c.Free(),
				second(mpi.Recv(w, []int{0}, 0, 0)), second(mpi.Recv(w, []int{0}, 1, 0)), errKilled)
		}
		o, err := mpi.PrecvInit(c, make([]int, 4), 4, 2, 0)
		if err != nil {
			return err
		}
		r, err := o.Start()
		if err != nil {
			return err
		}
		return errors.Join(c.Free(), mpi.Send(w, []int{0}, 2, 0), wantClass(second(r.Wait()), mpi.ErrProcFailed))
	}) {
		if rank == 2 && !errors.Is(err, errKilled) || rank < 2 && err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// A datatype is freed, and groups forgotten, while operations use them.
func TestTypeFree_whileUnderWay(t *testing.T) {
	everyWay(t, 2, func(p *mpi.Proc) error {
		c := p.World()
		column, err := mpi.TypeVector(1000, 1, 3, mpi.TypeDouble)
		if err == nil {
			err = column.Commit()
		}
		if err != nil {
			return err
		}
		deleted := 0
		key := &mpi.TypeKeyval{Delete: func(mpi.Datatype, any) error { deleted++; return nil }}
		out, in := make([]float64, 3000), make([]float64, 3000)
		for i := range out {
			out[i] = float64(i)
		}
		r, err := c.Irecv(mpi.Typed(in, 1, column), 1-c.Rank(), 0)
		if err != nil {
			return err
		}
		s, err := c.Isend(mpi.Typed(out, 1, column), 1-c.Rank(), 0)
		if err != nil {
			return err
		}
		if err := errors.Join(p.TypeSetAttr(column, key, 1), p.TypeFree(column), mpi.Waitall([]mpi.Request{r, s})); err != nil || deleted != 1 {
			return fmt.Errorf("%d attributes deleted: %w", deleted, err)
		}
		for i := range in {
			if want := float64(i); i%3 == 0 && in[i] != want || i%3 != 0 && in[i] != 0 {
				return fmt.Errorf("element %d is %v", i, in[i])
			}
		}
		return nil
	})
}

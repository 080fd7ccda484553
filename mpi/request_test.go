package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

func TestRequest_useAfterWaitIsDetected(t *testing.T) {
	simulate(t, sim.Config{}, 1, func(p *mpi.Proc) error {
		c := p.World()
		buf := make([]byte, 8)
		r, err := mpi.Irecv(c, buf, 0, 1)
		if err != nil {
			return err
		}
		copied := r
		if err := mpi.Send(c, buf, 0, 1); err != nil {
			return err
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		if !r.IsNull() {
			return errors.New("the request is not null after Wait")
		}
		if st, err := r.Wait(); err != nil || st.Source != mpi.AnySource || st.Tag != mpi.AnyTag || st.Bytes() != 0 {
			return fmt.Errorf("Wait for the null request: %+v, %v", st, err)
		}
		// The object behind the copy now serves another operation.
		again, err := mpi.Irecv(c, buf, 0, 2)
		if err != nil {
			return err
		}
		_, waited := copied.Wait()
		_, _, tested := copied.Test()
		if err := errors.Join(wantClass(waited, mpi.ErrRequest), wantClass(tested, mpi.ErrRequest)); err != nil {
			return err
		}
		if err := mpi.Send(c, buf, 0, 2); err != nil {
			return err
		}
		_, err = again.Wait()
		return err
	})
}

func TestRequest_testUntilDone(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		buf := make([]byte, 100_000)
		var r mpi.Request
		var err error
		if c.Rank() == 0 {
			r, err = mpi.Isend(c, buf, 1, 1)
		} else {
			r, err = mpi.Irecv(c, buf, 0, 1)
		}
		if err != nil {
			return err
		}
		if _, done, _ := r.Test(); done {
			return errors.New("done before anything can have happened")
		}
		for {
			_, done, err := r.Test()
			if err != nil {
				return err
			}
			if done {
				return nil
			}
		}
	})
}

func TestWaitall_joinsErrors(t *testing.T) {
	simulate(t, sim.Config{}, 1, func(p *mpi.Proc) error {
		c := p.World()
		var requests []mpi.Request
		for i := range 3 {
			r, err := mpi.Irecv(c, make([]byte, i), 0, i)
			if err != nil {
				return err
			}
			requests = append(requests, r)
			if err := mpi.Send(c, make([]byte, 1), 0, i); err != nil {
				return err
			}
		}
		if err := wantClass(mpi.Waitall(requests), mpi.ErrTruncate); err != nil {
			return err
		}
		for i := range requests {
			if !requests[i].IsNull() {
				return fmt.Errorf("request %d is not null", i)
			}
		}
		return nil
	})
}

func TestFinalize_unfinishedOperations(t *testing.T) {
	w := newSimWorld(sim.Config{}, 2)
	w.launch(func(_ *sim.Task, p *mpi.Proc) error {
		c := p.World()
		if _, err := mpi.Irecv(c, make([]byte, 1), 0, 1); err != nil {
			return err
		}
		if err := wantClass(p.Finalize(), mpi.ErrPending); err != nil {
			return err
		}
		if err := wantClass(mpi.Send(c, []byte{1}, 1-c.Rank(), 0), mpi.ErrOther); err != nil {
			return err
		}
		_, err := mpi.Recv(c, []byte{1}, mpi.AnySource, 0)
		if err := wantClass(err, mpi.ErrOther); err != nil {
			return err
		}
		if err := wantClass(c.Barrier(), mpi.ErrOther); err != nil {
			return err
		}
		return wantClass(p.Finalize(), mpi.ErrOther)
	})
	if err := w.Run(); mpi.ClassOf(err) != mpi.ErrOther {
		t.Fatal(err) // the second Finalize of launch is one too many
	}
}

// TestRequestFree_meetsNothing: messages and receives that were freed, and that nobody
// receives and nothing meets, do not hold up the end.
func TestRequestFree_meetsNothing(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		var errs []error
		for _, source := range []int{mpi.AnySource, 0, 1} {
			r, err := mpi.Irecv(c, make([]byte, 8), source, 3)
			errs = append(errs, err, r.Free())
		}
		r, err := mpi.Issend(c, make([]byte, 8), c.Rank(), 4)
		return errors.Join(append(errs, err, r.Free())...)
	})
}

// Ready asks, and makes progress only where it is to.
func TestRequest_ready(t *testing.T) {
	procs := nearPair(t, mpi.Config{Receives: 24, Sends: 8})
	var none mpi.Request
	r, err := mpi.Irecv(procs[1].World(), make([]byte, 8), 0, 5)
	if err != nil || !none.Ready(true) || r.Ready(true) {
		t.Fatalf("ready before it is sent, or %v", err)
	}
	if err := mpi.Send(procs[0].World(), make([]byte, 8), 1, 5); err != nil {
		t.Fatal(err)
	}
	if r.Ready(false) || !r.Ready(true) || !r.Ready(false) {
		t.Error("progress without a look, or none with one")
	}
	if _, err := r.Wait(); err != nil {
		t.Error(err)
	}
}

package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// A communicator with a buffer of its own does not use that of the process, and
// flushing it does not wait for what is in the other.
func TestBsend_bufferOfACommunicator(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		w := p.World()
		c, err := w.Dup()
		if err != nil {
			return err
		}
		long := make([]byte, 100_000) // waits for its receive
		if w.Rank() == 1 {
			if _, err := mpi.Recv(w, []byte{}, 0, 1); err != nil { // the buffer was full
				return err
			}
			for _, from := range []*mpi.Comm{c, w} {
				if _, err := mpi.Recv(from, long, 0, 0); err != nil {
					return err
				}
			}
			return c.Free()
		}
		own := len(long) + mpi.BsendOverhead
		if err := errors.Join(c.BufferAttach(own), wantClass(c.BufferAttach(1), mpi.ErrBuffer)); err != nil {
			return err
		}
		if err := errors.Join(wantClass(mpi.Bsend(w, long, 1, 0), mpi.ErrBuffer), p.BufferAttach(mpi.BufferAutomatic)); err != nil {
			return fmt.Errorf("the buffer of the process: %w", err)
		}
		for i := range 2 {
			want := []mpi.ErrorClass{mpi.Success, mpi.ErrBuffer}[i]
			if err := wantClass(mpi.Bsend(c, long, 1, 0), want); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		if err := mpi.Send(w, []byte{}, 1, 1); err != nil {
			return err
		}
		r, err := c.BufferIflush()
		if err == nil {
			_, err = r.Wait()
		}
		if err != nil {
			return err
		}
		if size, err := c.BufferDetach(); err != nil || size != own {
			return fmt.Errorf("detached %d: %w", size, err)
		}
		if err := errors.Join(wantClass(second(c.BufferDetach()), mpi.ErrBuffer), wantClass(c.BufferAttach(-2), mpi.ErrArg)); err != nil {
			return err
		}
		if err := mpi.Bsend(w, long, 1, 0); err != nil {
			return err
		}
		if size, err := p.BufferDetach(); err != nil || size != mpi.BufferAutomatic {
			return fmt.Errorf("detached %d: %w", size, err)
		}
		return c.Free()
	})
}

// Free and Finalize wait for what is buffered; an automatic buffer takes a great
// many messages.
func TestBsend_automatic(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c, err := p.World().Dup()
		if err != nil {
			return err
		}
		const n = 1000
		if c.Rank() == 0 {
			if err := c.BufferAttach(mpi.BufferAutomatic); err != nil {
				return err
			}
			for i := range n {
				if err := mpi.Bsend(c, []int{i}, 1, 0); err != nil {
					return err
				}
			}
			return c.Free()
		}
		for i := range n {
			v := []int{-1}
			if _, err := mpi.Recv(c, v, 0, 0); err != nil || v[0] != i {
				return fmt.Errorf("got %d, want %d: %w", v[0], i, err)
			}
		}
		return c.Free()
	})
}

// Detach waits for the messages that a flush is waiting for, and what they take is
// taken once.
func TestBsend_detachDuringFlush(t *testing.T) {
	var detached atomic.Bool
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c, long := p.World(), make([]byte, 100_000) // waits for its receive
		if c.Rank() == 1 {
			if _, err := mpi.Recv(c, make([]byte, 1), 0, 1); err != nil {
				return err
			}
			for range 1000 {
				if _, _, err := c.Iprobe(0, 5); err != nil {
					return err
				}
			}
			early := detached.Load()
			if _, err := mpi.Recv(c, long, 0, 0); err != nil || early {
				return fmt.Errorf("detached before its message was received: %v: %w", early, err)
			}
			return nil
		}
		if err := errors.Join(p.BufferAttach(len(long)+mpi.BsendOverhead), mpi.Bsend(c, long, 1, 0)); err != nil {
			return err
		}
		r, err := p.BufferIflush()
		if err != nil {
			return err
		}
		if err := mpi.Send(c, []byte{1}, 1, 1); err != nil {
			return err
		}
		if _, err := p.BufferDetach(); err != nil {
			return err
		}
		detached.Store(true)
		if err := p.BufferAttach(0); err != nil {
			return err
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		if err := wantClass(mpi.Bsend(c, []byte{1}, 1, 9), mpi.ErrBuffer); err != nil {
			return fmt.Errorf("a buffer without room: %w", err)
		}
		return second(p.BufferDetach())
	})
}

// A communicator that is none has no buffer either.
func TestBufferIflush_none(t *testing.T) {
	var none *mpi.Comm
	if err := wantClass(second(none.BufferIflush()), mpi.ErrComm); err != nil {
		t.Error(err)
	}
}

// Short messages are sent at once, and need no memory; the memory of those that wait for their
// receives is used again. The program's may be changed in any case.
func TestAllocs_bsend(t *testing.T) {
	procs := nearPair(t, mpi.Config{Receives: 24, Sends: 8, EagerNear: 4096})
	if err := procs[0].BufferAttach(40_000); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 8, 4096, 16384} {
		out, want, in := make([]byte, n), make([]byte, n), make([]byte, n)
		round := func() {
			for i := range out {
				out[i]++
			}
			if err := mpi.Bsend(procs[0].World(), out, 1, 5); err != nil {
				t.Fatal(err)
			}
			copy(want, out)
			clear(out)
			if _, err := mpi.Recv(procs[1].World(), in, 0, 5); err != nil || !bytes.Equal(in, want) {
				t.Fatalf("%d bytes: wrong ones, or %v", n, err)
			}
		}
		for range 10 { // pools fill
			round()
		}
		if got := testing.AllocsPerRun(100, round); got > 0 {
			t.Errorf("%d bytes: %v allocations", n, got)
		}
	}
}

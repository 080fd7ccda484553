package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// A synchronous send is not complete before its receive is posted, whatever its
// length; the receiver says when it posts.
func TestSsend_waitsForReceive(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		for _, n := range []int{0, 1, 100, 100_000} {
			buf := make([]byte, n)
			if c.Rank() == 1 {
				if _, err := mpi.Recv(c, make([]int, 1), 0, 1); err != nil { // the sender has looked
					return err
				}
				if _, err := mpi.Recv(c, buf, 0, 0); err != nil {
					return err
				}
				continue
			}
			r, err := mpi.Issend(c, buf, 1, 0)
			if err != nil {
				return err
			}
			for range 100 {
				if _, done, err := r.Test(); done || err != nil {
					return fmt.Errorf("%d bytes: complete without a receive: %w", n, err)
				}
			}
			if err := mpi.Send(c, []int{n}, 1, 1); err != nil {
				return err
			}
			if _, err := r.Wait(); err != nil {
				return err
			}
		}
		// To the own rank.
		r, err := mpi.Issend(c, []int{5}, c.Rank(), 2)
		if err != nil {
			return err
		}
		if _, done, _ := r.Test(); done {
			return errors.New("complete without a receive at the own rank")
		}
		v := make([]int, 1)
		if _, err := mpi.Recv(c, v, c.Rank(), 2); err != nil || v[0] != 5 {
			return fmt.Errorf("got %d: %w", v[0], err)
		}
		_, err = r.Wait()
		return err
	})
}

func TestBsend_buffer(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 1 {
			for want := range 4 {
				v := make([]int, 25_000)
				if _, err := mpi.Recv(c, v, 0, mpi.AnyTag); err != nil || v[24_999] != want {
					return fmt.Errorf("got %d, want %d: %w", v[24_999], want, err)
				}
			}
			return nil
		}
		if err := mpi.Bsend(c, []int{1}, 1, 0); mpi.ClassOf(err) != mpi.ErrBuffer {
			return fmt.Errorf("without a buffer: %w", err)
		}
		size := 4 * (200_000 + mpi.BsendOverhead)
		if err := p.BufferAttach(size); err != nil {
			return err
		}
		if err := p.BufferAttach(1); mpi.ClassOf(err) != mpi.ErrBuffer {
			return fmt.Errorf("twice: %w", err)
		}
		v := make([]int, 25_000)
		for i := range 4 {
			v[24_999] = i
			send := mpi.Bsend[int]
			if i == 2 {
				send = func(c *mpi.Comm, buf []int, dest, tag int) error {
					r, err := mpi.Ibsend(c, buf, dest, tag)
					if err == nil {
						_, err = r.Wait()
					}
					return err
				}
			}
			if err := send(c, v, 1, i); err != nil {
				return err
			}
		}
		if err := mpi.Bsend(c, make([]byte, size), 1, 9); mpi.ClassOf(err) != mpi.ErrBuffer {
			return fmt.Errorf("too large: %w", err)
		}
		if n, err := p.BufferDetach(); n != size || err != nil {
			return fmt.Errorf("detached %d: %w", n, err)
		}
		if _, err := p.BufferDetach(); mpi.ClassOf(err) != mpi.ErrBuffer {
			return fmt.Errorf("detached twice: %w", err)
		}
		return nil
	})
}

// What Mprobe has found nobody else receives.
func TestMprobe_takesMessage(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		for _, n := range []int{1, 100_000} {
			if c.Rank() == 0 {
				for i := range 2 {
					v := make([]int, n)
					v[n-1] = i
					if err := mpi.Send(c, v, 1, 7); err != nil {
						return err
					}
				}
				continue
			}
			m, st, err := c.Mprobe(mpi.AnySource, 7)
			if err != nil || mpi.Count[int](st) != n || st.Source != 0 {
				return fmt.Errorf("found %+v: %w", st, err)
			}
			later := make([]int, n)
			other, err := mpi.Irecv(c, later, 0, 7)
			if err != nil {
				return err
			}
			first := make([]int, n)
			if _, err := mpi.Mrecv(m, first); err != nil || first[n-1] != 0 {
				return fmt.Errorf("first is %d: %w", first[n-1], err)
			}
			if _, err := other.Wait(); err != nil || later[n-1] != 1 {
				return fmt.Errorf("second is %d: %w", later[n-1], err)
			}
			if _, err := mpi.Mrecv(m, first); mpi.ClassOf(err) != mpi.ErrRequest {
				return fmt.Errorf("received twice: %w", err)
			}
		}
		m, st, err := c.Mprobe(mpi.ProcNull, 0)
		if err != nil || st.Source != mpi.ProcNull {
			return fmt.Errorf("ProcNull: %+v: %w", st, err)
		}
		if st, err := mpi.Mrecv(m, []int{0}); err != nil || st.Bytes() != 0 || st.Source != mpi.ProcNull {
			return fmt.Errorf("ProcNull: %+v: %w", st, err)
		}
		if _, _, found, err := c.Improbe(1-c.Rank(), 99); found || err != nil {
			return fmt.Errorf("found nothing: %v: %w", found, err)
		}
		return nil
	})
}

func TestCancel_receive(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		r, err := mpi.Irecv(c, make([]int, 1), 1-c.Rank(), 5)
		if err != nil {
			return err
		}
		if err := r.Cancel(); err != nil {
			return err
		}
		if st, err := r.Wait(); err != nil || !st.Cancelled() {
			return fmt.Errorf("%+v: %w", st, err)
		}
		if err := r.Cancel(); mpi.ClassOf(err) != mpi.ErrRequest {
			return fmt.Errorf("null: %w", err)
		}
		// The next message goes to the next receive.
		v := []int{0}
		if st, err := mpi.Sendrecv(c, []int{c.Rank()}, 1-c.Rank(), 5, v, 1-c.Rank(), 5); err != nil || v[0] != 1-c.Rank() || st.Cancelled() {
			return fmt.Errorf("got %d: %w", v[0], err)
		}
		return nil
	})
}

// A send that waits for its receive is taken back, unless there is one: for another rank
// and the own one, synchronous and long.
func TestCancel_send(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		for _, to := range []int{0, 1} {
			for _, n := range []int{1, 1 << 20} {
				for _, taken := range []bool{true, false} {
					if err := errors.Join(cancelSend(c, to, n, taken), c.Barrier()); err != nil {
						return fmt.Errorf("%d bytes to rank %d, to be taken back %v: %w", n, to, taken, err)
					}
				}
			}
		}
		return nil
	})
}

// cancelSend cancels a send of n bytes from rank 0, which has met no receive if it is to
// be taken back. The next message comes in any case.
func cancelSend(c *mpi.Comm, to, n int, taken bool) error {
	want, in := []byte{1, 2}, make([]byte, n)
	if taken {
		want = want[1:]
	}
	var r, s, next mpi.Request
	var err error
	if c.Rank() == to && !taken {
		r, err = mpi.Irecv(c, in, 0, 5)
	}
	if err = errors.Join(err, c.Barrier()); err != nil {
		return err
	}
	if c.Rank() == 0 {
		if s, err = mpi.Issend(c, bytes.Repeat([]byte{1}, n), to, 5); err != nil {
			return err
		}
		if err = s.Cancel(); err != nil {
			return err
		}
		if st, err := s.Wait(); err != nil || st.Cancelled() != taken {
			return fmt.Errorf("the send ends with %+v, %w", st, err)
		}
	}
	if err = c.Barrier(); err != nil {
		return err
	}
	if c.Rank() == 0 {
		if next, err = mpi.Isend(c, bytes.Repeat([]byte{2}, n), to, 5); err != nil {
			return err
		}
	}
	for i := 0; c.Rank() == to && i < len(want); i++ {
		if r.IsNull() {
			r, err = mpi.Irecv(c, in, 0, 5)
		}
		if _, err2 := r.Wait(); err != nil || err2 != nil || in[n-1] != want[i] {
			return fmt.Errorf("got %d and not %d: %w", in[n-1], want[i], errors.Join(err, err2))
		}
	}
	_, err = next.Wait()
	return err
}

func TestPersistent_ring(t *testing.T) {
	onRanks(t, []int{3}, func(p *mpi.Proc) error {
		c := p.World()
		right, left := (c.Rank()+1)%3, (c.Rank()+2)%3
		for _, n := range []int{1, 50_000} {
			out, in := make([]int, n), make([]int, n)
			send, err := mpi.SendInit(c, out, right, 1)
			if err != nil {
				return err
			}
			recv, err := mpi.RecvInit(c, in, left, 1)
			if err != nil {
				return err
			}
			both := []*mpi.Persistent{recv, send}
			for i := range 20 {
				out[n-1] = 100*c.Rank() + i
				runs, err := mpi.Startall(both, nil)
				if err != nil {
					return err
				}
				if i == 3 {
					if err := second(recv.Start()); mpi.ClassOf(err) != mpi.ErrRequest {
						return fmt.Errorf("started twice: %w", err)
					}
					if err := recv.Free(); err != nil { // the message comes all the same
						return fmt.Errorf("freed under way: %w", err)
					}
					if both[0], err = mpi.RecvInit(c, in, left, 1); err != nil {
						return err
					}
					recv = both[0]
				}
				if err := mpi.Waitall(runs); err != nil {
					return err
				}
				if in[n-1] != 100*left+i {
					return fmt.Errorf("round %d: got %d", i, in[n-1])
				}
			}
			if err := send.Free(); err != nil {
				return err
			}
			if err := second(send.Start()); mpi.ClassOf(err) != mpi.ErrRequest {
				return fmt.Errorf("freed: %w", err)
			}
		}
		_, err := mpi.SendInit(c, []int{1}, 77, 0)
		if mpi.ClassOf(err) != mpi.ErrRank {
			return err
		}
		return nil
	})
}

func TestCompletion_someAnyAll(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		const n = 6
		if c.Rank() == 0 {
			for i := n - 1; i >= 0; i-- { // the last receive first
				if _, err := mpi.Recv(c, make([]int, 1), 1, 100); err != nil {
					return err
				}
				if err := mpi.Send(c, []int{i}, 1, i); err != nil {
					return err
				}
			}
			return nil
		}
		v, reqs := make([][1]int, n), make([]mpi.Request, n)
		for i := range reqs {
			var err error
			if reqs[i], err = mpi.Irecv(c, v[i][:], 0, i); err != nil {
				return err
			}
		}
		if done, err := mpi.Testall(reqs); done || err != nil {
			return fmt.Errorf("all: %v: %w", done, err)
		}
		if _, _, done, err := mpi.Testany(reqs); done || err != nil {
			return fmt.Errorf("any: %v: %w", done, err)
		}
		next := func() error { return mpi.Send(c, []int{0}, 0, 100) }
		if err := next(); err != nil {
			return err
		}
		for done := false; !done; {
			if st, there, err := reqs[n-1].GetStatus(); err != nil || there && st.Tag != n-1 {
				return fmt.Errorf("looked at: %+v: %w", st, err)
			} else {
				done = there
			}
		}
		i, st, done, err := mpi.Testany(reqs)
		if i != n-1 || !done || st.Tag != n-1 || v[n-1][0] != n-1 || err != nil {
			return fmt.Errorf("any: %d %+v: %w", i, st, err)
		}
		if err := errors.Join(next(), next()); err != nil {
			return err
		}
		var some []mpi.Some
		for len(some) < 2 {
			some, _ = mpi.Waitsome(reqs, some)
		}
		for _, s := range some {
			if s.Index != n-2 && s.Index != n-3 || s.Err != nil || s.Status.Tag != s.Index {
				return fmt.Errorf("some: %+v", some)
			}
		}
		if err := errors.Join(next(), next(), next()); err != nil {
			return err
		}
		statuses := make([]mpi.Status, n)
		if err := mpi.WaitallStatus(reqs, statuses); err != nil || statuses[1].Tag != 1 || v[0][0] != 0 {
			return fmt.Errorf("all: %+v: %w", statuses, err)
		}
		if done, err := mpi.Testall(reqs); !done || err != nil {
			return fmt.Errorf("null ones: %v: %w", done, err)
		}
		if i, _, done, err := mpi.Testany(reqs); i != mpi.Undefined || !done || err != nil {
			return fmt.Errorf("null ones: %d %v: %w", i, done, err)
		}
		if _, active := mpi.Waitsome(reqs, nil); active {
			return errors.New("null ones are active")
		}
		return nil
	})
}

func TestSendrecvReplace(t *testing.T) {
	onRanks(t, []int{3}, func(p *mpi.Proc) error {
		c := p.World()
		v := []int{c.Rank()}
		left := (c.Rank() + 2) % 3
		if _, err := mpi.SendrecvReplace(c, v, (c.Rank()+1)%3, 0, left, 0); err != nil || v[0] != left {
			return fmt.Errorf("got %d: %w", v[0], err)
		}
		return nil
	})
}

package mpi_test

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// lengths are around every change of protocol: inline, buffered, rendezvous.
var lengths = []int{0, 1, 8, 239, 240, 241, 4096, 16383, 16384, 16385, 100_000, 1 << 20}

func TestSend_everyLengthExpectedAndNot(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		for i, n := range lengths {
			buf := make([]byte, n)
			if c.Rank() == 0 {
				pattern(buf, i)
				if err := mpi.Send(c, buf, 1, i); err != nil {
					return err
				}
				continue
			}
			if i%2 == 0 { // let it arrive before the receive is posted
				st, err := c.Probe(mpi.AnySource, mpi.AnyTag)
				if err := wantStatus(st, err, 0, i, n); err != nil {
					return fmt.Errorf("Probe: %w", err)
				}
			}
			st, err := mpi.Recv(c, buf, 0, i)
			if err := wantStatus(st, err, 0, i, n); err != nil {
				return err
			}
			if err := checkPattern(buf, i); err != nil {
				return fmt.Errorf("length %d: %w", n, err)
			}
		}
		return nil
	})
}

func TestSend_toSelf(t *testing.T) {
	simulate(t, sim.Config{}, 1, func(p *mpi.Proc) error {
		c := p.World()
		for i, n := range lengths {
			out, in := make([]byte, n), make([]byte, n)
			pattern(out, i)
			// First the send, then the receive; then the other way round.
			s, err := mpi.Isend(c, out, 0, i)
			if err != nil {
				return err
			}
			st, err := mpi.Recv(c, in, mpi.AnySource, mpi.AnyTag)
			if err := wantStatus(st, err, 0, i, n); err != nil {
				return err
			}
			if _, err := s.Wait(); err != nil {
				return err
			}
			if err := checkPattern(in, i); err != nil {
				return err
			}
			clear(in)
			r, err := mpi.Irecv(c, in, 0, i)
			if err != nil {
				return err
			}
			if err := mpi.Send(c, out, 0, i); err != nil {
				return err
			}
			if _, err := r.Wait(); err != nil {
				return err
			}
			if err := checkPattern(in, i); err != nil {
				return err
			}
		}
		// A large blocking send with no receive would wait for ever.
		return wantClass(mpi.Send(c, make([]byte, 1<<20), 0, 0), mpi.ErrOther)
	})
}

func TestRecv_truncation(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		for i, n := range []int{9, 300, 100_000} {
			for _, expected := range []bool{false, true} {
				if c.Rank() == 0 {
					buf := make([]byte, n)
					pattern(buf, i)
					if err := c.Barrier(); err != nil {
						return err
					}
					if err := mpi.Send(c, buf, 1, 7); err != nil {
						return fmt.Errorf("the sender must not notice: %w", err)
					}
					if err := c.Barrier(); err != nil {
						return err
					}
					continue
				}
				guarded := make([]byte, n)
				buf := guarded[:n-1]
				var err error
				if expected {
					var r mpi.Request
					if r, err = mpi.Irecv(c, buf, 0, 7); err != nil {
						return err
					}
					if err = c.Barrier(); err != nil {
						return err
					}
					_, err = r.Wait()
				} else {
					if err = c.Barrier(); err != nil {
						return err
					}
					if _, err = c.Probe(0, 7); err != nil {
						return err
					}
					_, err = mpi.Recv(c, buf, 0, 7)
				}
				if err := wantClass(err, mpi.ErrTruncate); err != nil {
					return err
				}
				if err := checkPattern(buf, i); err != nil {
					return err
				}
				if guarded[n-1] != 0 {
					return fmt.Errorf("%d bytes: the byte behind the buffer was written", n)
				}
				if err := c.Barrier(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestSend_orderAcrossProtocols(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		const rounds = 50
		sizes := []int{100_000, 8, 20_000, 1000, 0, 17_000, 300}
		var requests []mpi.Request
		var bufs [][]byte
		for i := range rounds * len(sizes) {
			n := sizes[i%len(sizes)]
			buf := make([]byte, n+4)
			var r mpi.Request
			var err error
			if c.Rank() == 0 {
				pattern(buf[:n], i)
				r, err = mpi.Isend(c, buf[:n], 1, 3)
			} else {
				r, err = mpi.Irecv(c, buf[:n], 0, 3)
			}
			if err != nil {
				return err
			}
			requests, bufs = append(requests, r), append(bufs, buf[:n])
		}
		for i := range requests {
			st, err := requests[i].Wait()
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				continue
			}
			if st.Bytes() != len(bufs[i]) {
				return fmt.Errorf("message %d has %d bytes, want %d: overtaken", i, st.Bytes(), len(bufs[i]))
			}
			if err := checkPattern(bufs[i], i); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		return nil
	})
}

func TestSendrecv_ringOfLargeMessages(t *testing.T) {
	simulate(t, sim.Config{}, 5, func(p *mpi.Proc) error {
		c := p.World()
		right, left := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		out, in := make([]byte, 70_000), make([]uint16, 40_000)
		pattern(out, c.Rank())
		st, err := mpi.Sendrecv(c, out, right, 1, in, left, 1)
		if err := wantStatus(st, err, left, 1, 70_000); err != nil {
			return err
		}
		if got := mpi.Count[uint16](st); got != 35_000 {
			return fmt.Errorf("Count = %d", got)
		}
		if got := mpi.Count[complex128](mpi.Status{}); got != 0 {
			return fmt.Errorf("Count of nothing = %d", got)
		}
		return nil
	})
}

func TestProcNull(t *testing.T) {
	simulate(t, sim.Config{}, 1, func(p *mpi.Proc) error {
		c := p.World()
		buf := []int32{1, 2, 3}
		if err := mpi.Send(c, buf, mpi.ProcNull, 1); err != nil {
			return err
		}
		st, err := mpi.Recv(c, buf, mpi.ProcNull, 1)
		if err := wantStatus(st, err, mpi.ProcNull, mpi.AnyTag, 0); err != nil {
			return err
		}
		r, err := mpi.Irecv(c, buf, mpi.ProcNull, 1)
		if err != nil {
			return err
		}
		st, err = r.Wait()
		if err := wantStatus(st, err, mpi.ProcNull, mpi.AnyTag, 0); err != nil {
			return err
		}
		st, err = mpi.Sendrecv(c, buf, mpi.ProcNull, 1, buf, mpi.ProcNull, 1)
		if err := wantStatus(st, err, mpi.ProcNull, mpi.AnyTag, 0); err != nil {
			return err
		}
		st, found, err := c.Iprobe(mpi.ProcNull, 1)
		if !found {
			return fmt.Errorf("Iprobe of ProcNull found nothing")
		}
		return wantStatus(st, err, mpi.ProcNull, mpi.AnyTag, 0)
	})
}

func TestTags_wholeRange(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		for _, tag := range []int{0, 1, mpi.MaxTag - 1, mpi.MaxTag} {
			b := []int{tag}
			if c.Rank() == 0 {
				if err := mpi.Send(c, b, 1, tag); err != nil {
					return err
				}
				continue
			}
			st, err := mpi.Recv(c, b, 0, mpi.AnyTag)
			if err := wantStatus(st, err, 0, tag, 8); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestArguments(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		b := []byte{1}
		_, recvRank := mpi.Recv(c, b, 2, 0)
		_, recvTag := mpi.Recv(c, b, 0, -7)
		_, isend := mpi.Isend(c, b, -1, 0)
		_, irecv := mpi.Irecv(c, b, -9, 0)
		_, sendrecv := mpi.Sendrecv(c, b, 0, 0, b, 9, 0)
		_, probe := c.Probe(5, 0)
		_, _, iprobe := c.Iprobe(0, -5)
		_, alloc := mpi.Alloc[int](p, -1)
		_, huge := mpi.Alloc[byte](p, 1<<50)
		big, moreThanArena := mpi.Alloc[byte](p, 1<<30)
		if moreThanArena != nil {
			return moreThanArena
		}
		big[len(big)-1] = 1
		if err := mpi.Free(p, big); err != nil {
			return err
		}
		for name, check := range map[string]struct {
			err   error
			class mpi.ErrorClass
		}{
			"Send rank":        {mpi.Send(c, b, 2, 0), mpi.ErrRank},
			"Send any":         {mpi.Send(c, b, mpi.AnySource, 0), mpi.ErrRank},
			"Send tag":         {mpi.Send(c, b, 1, -1), mpi.ErrTag},
			"Send any tag":     {mpi.Send(c, b, 1, mpi.AnyTag), mpi.ErrTag},
			"Send huge tag":    {mpi.Send(c, b, 1, mpi.MaxTag+1), mpi.ErrTag},
			"Send null tag":    {mpi.Send(c, b, mpi.ProcNull, -1), mpi.ErrTag},
			"Recv rank":        {recvRank, mpi.ErrRank},
			"Recv tag":         {recvTag, mpi.ErrTag},
			"Isend":            {isend, mpi.ErrRank},
			"Irecv":            {irecv, mpi.ErrRank},
			"Sendrecv":         {sendrecv, mpi.ErrRank},
			"Probe":            {probe, mpi.ErrRank},
			"Iprobe":           {iprobe, mpi.ErrTag},
			"Bcast":            {mpi.Bcast(c, b, 2), mpi.ErrRoot},
			"Allreduce op":     {mpi.Allreduce(c, b, b, nil), mpi.ErrOp},
			"Allreduce length": {mpi.Allreduce(c, b, []byte{1, 2}, mpi.Sum), mpi.ErrCount},
			"Alloc":            {alloc, mpi.ErrArg},
			"Alloc huge":       {huge, mpi.ErrNoMem},
			"Free":             {mpi.Free(p, b), mpi.ErrBase},
			"Free twice":       {mpi.Free(p, big), mpi.ErrBase},
		} {
			if err := wantClass(check.err, check.class); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

func TestAlloc(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		v, err := mpi.Alloc[float64](p, 20_000)
		if err != nil {
			return err
		}
		for i := range v {
			if v[i] != 0 {
				return fmt.Errorf("element %d is %v", i, v[i])
			}
			v[i] = float64(i * (c.Rank() + 1))
		}
		if c.Rank() == 0 {
			err = mpi.Send(c, v, 1, 0)
		} else {
			_, err = mpi.Recv(c, v, 0, 0)
		}
		if err != nil {
			return err
		}
		for i := range v {
			if v[i] != float64(i) {
				return fmt.Errorf("element %d is %v after the message", i, v[i])
			}
		}
		if err := wantClass(mpi.Free(p, v[1:]), mpi.ErrBase); err != nil {
			return err
		}
		if err := mpi.Free(p, v); err != nil {
			return err
		}
		return wantClass(mpi.Free(p, v), mpi.ErrBase)
	})
}

// TestIsend_moreThanTheQueuesHold starts so many operations that every queue of
// the layers below is full, and receives them in the other order.
func TestIsend_moreThanTheQueuesHold(t *testing.T) {
	for _, length := range []int{8, 3000, 20_000} {
		simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
			c := p.World()
			const n = 1500
			requests := make([]mpi.Request, n)
			bufs := make([][]byte, n)
			for i := range n {
				bufs[i] = make([]byte, length)
				var err error
				if c.Rank() == 0 {
					pattern(bufs[i], i)
					requests[i], err = mpi.Isend(c, bufs[i], 1, i)
				} else {
					requests[i], err = mpi.Irecv(c, bufs[i], 0, n-1-i)
				}
				if err != nil {
					return err
				}
			}
			if err := mpi.Waitall(requests); err != nil {
				return err
			}
			for i := range n {
				if c.Rank() == 1 {
					if err := checkPattern(bufs[i], n-1-i); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

func TestNew_ranksWithDifferentEagerLimits(t *testing.T) {
	w := newSimWorld(sim.Config{}, 2)
	limits := []int{-1, 65536}
	w.Launch(w.nodes, func(task *sim.Task, r *sim.Rank) error {
		ctx, err := w.open(task, r)
		if err != nil {
			return err
		}
		p, err := mpi.New(r, ctx, mpi.Config{Transport: w.mpi.Transport, EagerMax: limits[r.Rank()], Receives: 32})
		if err != nil {
			return err
		}
		c := p.World()
		for i, n := range lengths {
			out, in := make([]byte, n), make([]byte, n)
			pattern(out, i)
			st, err := mpi.Sendrecv(c, out, 1-c.Rank(), i, in, 1-c.Rank(), i)
			if err := wantStatus(st, err, 1-c.Rank(), i, n); err != nil {
				return err
			}
			if err := checkPattern(in, i); err != nil {
				return err
			}
		}
		return p.Finalize()
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

func TestNew_impossibleConfig(t *testing.T) {
	w := newSimWorld(sim.Config{}, 1)
	w.Launch(w.nodes, func(task *sim.Task, r *sim.Rank) error {
		ctx, err := w.open(task, r)
		if err != nil {
			return err
		}
		_, err = mpi.New(r, ctx, mpi.Config{EagerMax: 1 << 30})
		return wantClass(err, mpi.ErrOther)
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

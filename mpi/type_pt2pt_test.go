package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// sendModes are all ways to send data.
func sendModes() []func(c *mpi.Comm, d mpi.Data, dest, tag int) error {
	return []func(c *mpi.Comm, d mpi.Data, dest, tag int) error{
		(*mpi.Comm).Send,
		(*mpi.Comm).Ssend,
		(*mpi.Comm).Rsend,
		(*mpi.Comm).Bsend,
		func(c *mpi.Comm, d mpi.Data, dest, tag int) error { return wait(c.Isend(d, dest, tag)) },
		func(c *mpi.Comm, d mpi.Data, dest, tag int) error { return wait(c.Issend(d, dest, tag)) },
		func(c *mpi.Comm, d mpi.Data, dest, tag int) error { return wait(c.Ibsend(d, dest, tag)) },
		func(c *mpi.Comm, d mpi.Data, dest, tag int) error { return wait(c.Irsend(d, dest, tag)) },
		func(c *mpi.Comm, d mpi.Data, dest, tag int) error { return startOnce(c.SendInit(d, dest, tag)) },
		func(c *mpi.Comm, d mpi.Data, dest, tag int) error { return startOnce(c.SsendInit(d, dest, tag)) },
		func(c *mpi.Comm, d mpi.Data, dest, tag int) error { return startOnce(c.BsendInit(d, dest, tag)) },
		func(c *mpi.Comm, d mpi.Data, dest, tag int) error { return startOnce(c.RsendInit(d, dest, tag)) },
		func(c *mpi.Comm, d mpi.Data, dest, tag int) error {
			_, err := c.Sendrecv(d, dest, tag, mpi.Data{}, mpi.ProcNull, 0)
			return err
		},
	}
}

func startOnce(o *mpi.Persistent, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(wait(o.Start()), o.Free())
}

// recvModes are all ways to receive data.
func recvModes() []func(c *mpi.Comm, d mpi.Data, source, tag int) (mpi.Status, error) {
	finish := func(r mpi.Request, err error) (mpi.Status, error) {
		if err != nil {
			return mpi.Status{}, err
		}
		return r.Wait()
	}
	return []func(c *mpi.Comm, d mpi.Data, source, tag int) (mpi.Status, error){
		(*mpi.Comm).Recv,
		func(c *mpi.Comm, d mpi.Data, source, tag int) (mpi.Status, error) {
			return finish(c.Irecv(d, source, tag))
		},
		func(c *mpi.Comm, d mpi.Data, source, tag int) (mpi.Status, error) {
			o, err := c.RecvInit(d, source, tag)
			if err != nil {
				return mpi.Status{}, err
			}
			return finish(o.Start())
		},
		func(c *mpi.Comm, d mpi.Data, source, tag int) (mpi.Status, error) {
			m, _, err := c.Mprobe(source, tag)
			if err != nil {
				return mpi.Status{}, err
			}
			return m.Recv(d)
		},
		func(c *mpi.Comm, d mpi.Data, source, tag int) (mpi.Status, error) {
			m, _, err := c.Mprobe(source, tag)
			if err != nil {
				return mpi.Status{}, err
			}
			return finish(m.Irecv(d))
		},
		func(c *mpi.Comm, d mpi.Data, source, tag int) (mpi.Status, error) {
			return c.Sendrecv(mpi.Data{}, mpi.ProcNull, 0, d, source, tag)
		},
	}
}

// exchangeTyped sends sent elements of one datatype, and receives room elements of
// another with the same signature.
type exchangeTyped struct {
	a, b       layout
	sent, room int
	src        []byte
	send, recv int // modes
}

func (x exchangeTyped) run(c *mpi.Comm, tag int) error {
	if c.Rank() == 0 {
		return sendModes()[x.send](c, mpi.Bytes(x.src, 0, x.sent, x.a.t), 1, tag)
	}
	got, want := blank(x.b.span(x.room)), blank(x.b.span(x.room))
	x.b.unpack(want, x.a.pack(x.src, x.sent), x.room)
	st, err := recvModes()[x.recv](c, mpi.Bytes(got, 0, x.room, x.b.t), 0, tag)
	if x.sent > x.room {
		err = wantClass(err, mpi.ErrTruncate)
	}
	if err != nil {
		return err
	}
	n := min(x.sent, x.room)
	if st.Count(x.b.t) != n || st.Elements(x.b.t) != n*len(x.b.at) || st.Bytes() != n*x.b.size() {
		return fmt.Errorf("count %d, elements %d, %d bytes: sent %d elements of %d", st.Count(x.b.t), st.Elements(x.b.t), st.Bytes(), x.sent, len(x.b.at))
	}
	return sameBytes("received", got, want)
}

// typedMessages sends random datatypes from the first to the second rank of c in all
// modes, short and long, and receives them as others with the same signature: whole,
// with room left, and truncated.
func typedMessages(c *mpi.Comm) error {
	p := c.Proc()
	if err := p.BufferAttach(64 << 20); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 7)) // the same on both ranks
	for i := range len(sendModes()) * len(recvModes()) * 2 {
		x := exchangeTyped{send: i % len(sendModes()), recv: i / 2 % len(recvModes())}
		x.a, x.b = twins(rng)
		x.sent = rng.IntN(4) * (1 + rng.IntN(40))
		if i%5 == 0 {
			x.sent = 3000
		}
		x.room = max(0, x.sent+rng.IntN(4)-1)
		x.src = noise(rng, x.a.span(x.sent))
		if err := x.run(c, i); err != nil {
			return fmt.Errorf("message %d, send mode %d, receive mode %d, %d elements of %d bytes: %w", i, x.send, x.recv, x.sent, x.a.size(), err)
		}
	}
	_, err := p.BufferDetach()
	return err
}

func TestTyped_allModes(t *testing.T) {
	body := func(p *mpi.Proc) error { return typedMessages(p.World()) }
	onRanks(t, []int{2}, body)
	simulate(t, sim.Config{}, 2, body)
}

// suiteData sends data between pairs of ranks, and uses the collectives over data.
func suiteData(p *mpi.Proc) error {
	world := p.World()
	pair, err := world.Split(world.Rank()/2, world.Rank())
	if err != nil {
		return err
	}
	if pair.Size() == 2 {
		if err := typedMessages(pair); err != nil {
			return err
		}
	}
	own := rand.New(rand.NewPCG(3, uint64(world.Rank())))
	kinds := basics()
	for _, f := range []form{blocking, nonblocking, persistent} {
		for _, n := range []int{1, 5} {
			mixed := &typedOracle{world, n, f, []basic{kinds[2], kinds[0], kinds[3], kinds[1]}, own}
			ints := &typedOracle{world, n, f, []basic{{mpi.TypeInt32, 4}, {mpi.TypeInt32, 4}, {mpi.TypeInt32, 4}}, own}
			if err := errors.Join(mixed.all(), ints.reductions()); err != nil {
				return err
			}
		}
	}
	return pair.Free()
}

func TestSendrecvReplace_ofAColumn(t *testing.T) {
	onRanks(t, []int{3}, func(p *mpi.Proc) error {
		c := p.World()
		column := must(mpi.TypeVector(3, 1, 4, mpi.TypeInt32))
		m := make([]int32, 12)
		for i := range m {
			m[i] = int32(100*c.Rank() + i)
		}
		left, right := (c.Rank()+2)%3, (c.Rank()+1)%3
		if _, err := c.SendrecvReplace(mpi.Typed(m[1:], 1, column), right, 0, left, 0); err != nil {
			return err
		}
		for i, v := range m {
			want := int32(100*c.Rank() + i)
			if i%4 == 1 {
				want = int32(100*left + i)
			}
			if v != want {
				return fmt.Errorf("element %d is %d, want %d", i, v, want)
			}
		}
		return nil
	})
}

// TestTyped_toTheOwnRank: a blocking send that nothing can receive is refused, and
// what is posted before is found.
func TestTyped_toTheOwnRank(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		c := p.World()
		column := must(mpi.TypeVector(10_000, 1, 2, mpi.TypeInt32))
		src, dst := make([]int32, 20_000), make([]int32, 10_000)
		for i := range src {
			src[i] = int32(i)
		}
		d := mpi.Typed(src, 1, column)
		if err := wantClass(c.Send(d, 0, 0), mpi.ErrOther); err != nil {
			return err
		}
		r, err := mpi.Irecv(c, dst, 0, 0)
		if err = errors.Join(err, c.Send(d, 0, 0), wait(r, nil)); err != nil {
			return err
		}
		for i, v := range dst {
			if v != int32(2*i) {
				return fmt.Errorf("element %d is %d", i, v)
			}
		}
		return nil
	})
}

func TestTyped_wrongData(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		c := p.World()
		raw, err := mpi.TypeVector(2, 1, 2, mpi.TypeInt)
		if err != nil {
			return err
		}
		column := must(mpi.TypeDup(raw))
		below := must(mpi.TypeHindexed([]int{1}, []int{-4}, mpi.TypeInt))
		v := make([]int32, 3)
		b := make([]byte, 16)
		_, recvErr := c.Recv(mpi.Typed(v[1:], 1, column), 0, 0)
		_, isendErr := c.Isend(mpi.Typed(v, -1, column), 0, 0)
		_, initErr := c.SendInit(mpi.Typed(v, 2, column), 0, 0)
		_, recvInitErr := c.RecvInit(mpi.Typed(v, 1, raw), 0, 0)
		_, plainErr := c.Irecv(mpi.Plain[[2]int32]{}.Slice([][2]int32{{}}), 0, 0)
		_, replaceErr := c.SendrecvReplace(mpi.Bytes(b, 17, 1, mpi.TypeInt), 0, 0, 0, 0)
		for i, want := range []struct {
			class mpi.ErrorClass
			err   error
		}{
			{mpi.ErrType, c.Send(mpi.Typed(v, 1, raw), 0, 0)},
			{mpi.ErrType, c.Send(mpi.Typed(v, 1, mpi.Datatype{}), 0, 0)},
			{mpi.ErrBuffer, c.Send(mpi.Typed(v, 4, mpi.TypeInt32), 0, 0)},
			{mpi.ErrBuffer, c.Ssend(mpi.Typed(v[1:], 1, column), 0, 0)},
			{mpi.ErrBuffer, c.Bsend(mpi.Bytes(b, 0, 1, below), 0, 0)},
			{mpi.ErrBuffer, c.Send(mpi.Bytes(b, 1<<62, 1, mpi.TypeInt), 0, 0)},
			{mpi.ErrBuffer, c.Send(mpi.Bytes(b, -1<<62, 1, mpi.TypeInt), 0, 0)},
			{mpi.ErrCount, c.Send(mpi.Bytes(b, 0, 1<<62, mpi.TypeInt), 0, 0)},
			{mpi.ErrCount, c.Send(mpi.Bytes(b, 0, -1, mpi.TypeInt), 0, 0)},
			{mpi.ErrRank, c.Send(mpi.Typed(v, 1, column), 1, 0)},
			{mpi.ErrTag, c.Send(mpi.Typed(v, 1, column), 0, -1)},
			{mpi.ErrBuffer, recvErr},
			{mpi.ErrCount, isendErr},
			{mpi.ErrBuffer, initErr},
			{mpi.ErrType, recvInitErr},
			{mpi.ErrType, plainErr},
			{mpi.ErrBuffer, replaceErr},
			{mpi.Success, c.Send(mpi.Typed(v, 1, column), mpi.ProcNull, 0)},
			{mpi.Success, c.Ssend(mpi.Typed(v, 1, column), mpi.ProcNull, 0)},
		} {
			if err := wantClass(want.err, want.class); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		return nil
	})
}

// TestStatus_parts: half of an element is no count, but a number of elements.
func TestStatus_parts(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 0 {
			return errors.Join(mpi.Send(c, []int32{1, 2, 3}, 1, 0), mpi.Send(c, []byte{1, 2, 3}, 1, 0))
		}
		pair := must(mpi.TypeContiguous(2, mpi.TypeInt))
		room := make([]int32, 6)
		st, err := c.Recv(mpi.Typed(room, 3, pair), 0, 0)
		if err != nil {
			return err
		}
		if st.Count(pair) != mpi.Undefined || st.Elements(pair) != 3 || st.Count(mpi.TypeInt) != 3 || st.Count(mpi.Datatype{}) != mpi.Undefined {
			return fmt.Errorf("count %d, elements %d of 1 1/2 pairs", st.Count(pair), st.Elements(pair))
		}
		st, err = c.Recv(mpi.Typed(room, 3, pair), 0, 0)
		if err == nil && st.Elements(pair) != mpi.Undefined {
			err = fmt.Errorf("%d elements in 3 bytes", st.Elements(pair))
		}
		return err
	})
}

package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// What the standard says about the edges of what programs do.

// Every operation with ProcNull completes at once, with data of any layout.
func TestProcNull_everywhere(t *testing.T) {
	onRanks(t, []int{1, 2}, func(p *mpi.Proc) error {
		c := p.World()
		column, err := mpi.TypeVector(3, 1, 2, mpi.TypeInt64)
		if err = errors.Join(err, column.Commit()); err != nil {
			return err
		}
		before := []int64{1, 2, 3, 4, 5, 6}
		v := slices.Clone(before)
		for _, d := range []mpi.Data{mpi.Slice(v), mpi.Typed(v, 1, column), {}} {
			null := func(what string, st mpi.Status, err error) error {
				if err := wantStatus(st, err, mpi.ProcNull, mpi.AnyTag, 0); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				return nil
			}
			await := func(what string, r mpi.Request, err error) error {
				if err != nil {
					return err
				}
				st, err := r.Wait()
				return null(what, st, err)
			}
			start := func(what string, o *mpi.Persistent, err error) error {
				if err != nil {
					return err
				}
				r, err := o.Start()
				return errors.Join(await(what, r, err), o.Free())
			}
			const null0, tag = mpi.ProcNull, 3
			errs := []error{c.Send(d, null0, tag), c.Ssend(d, null0, tag), c.Rsend(d, null0, tag), c.Bsend(d, null0, tag)}
			for what, f := range map[string]func(mpi.Data, int, int) (mpi.Request, error){
				"Isend": c.Isend, "Issend": c.Issend, "Ibsend": c.Ibsend, "Irsend": c.Irsend, "Irecv": c.Irecv,
			} {
				r, err := f(d, null0, tag)
				errs = append(errs, await(what, r, err))
			}
			for what, f := range map[string]func(mpi.Data, int, int) (*mpi.Persistent, error){
				"SendInit": c.SendInit, "SsendInit": c.SsendInit, "BsendInit": c.BsendInit, "RsendInit": c.RsendInit, "RecvInit": c.RecvInit,
			} {
				o, err := f(d, null0, tag)
				errs = append(errs, start(what, o, err))
			}
			st, err := c.Recv(d, null0, mpi.AnyTag)
			errs = append(errs, null("Recv", st, err))
			st, err = c.Probe(null0, tag)
			errs = append(errs, null("Probe", st, err))
			m, st, err := c.Mprobe(null0, tag)
			errs = append(errs, null("Mprobe", st, err))
			st, err = m.Recv(d)
			errs = append(errs, null("Mrecv", st, err), wantClass(second(m.Recv(d)), mpi.ErrRequest))
			m, st, found, err := c.Improbe(null0, tag)
			errs = append(errs, null("Improbe", st, err))
			if !found {
				errs = append(errs, errors.New("Improbe has found nothing"))
			}
			r, err := m.Irecv(d)
			errs = append(errs, await("Imrecv", r, err))
			st, err = c.SendrecvReplace(d, null0, tag, null0, mpi.AnyTag)
			errs = append(errs, null("SendrecvReplace", st, err))
			r, err = c.IsendrecvReplace(d, null0, tag, null0, mpi.AnyTag)
			errs = append(errs, await("IsendrecvReplace", r, err))
			if err := errors.Join(errs...); err != nil || !slices.Equal(v, before) {
				return fmt.Errorf("%v: %w", v, err)
			}
		}
		return nil
	})
}

// Counts of 0 and below, and datatypes without bytes.
func TestCounts_edges(t *testing.T) {
	onRanks(t, []int{1, 2}, func(p *mpi.Proc) error {
		c := p.World()
		empty, err := mpi.TypeContiguous(0, mpi.TypeInt)
		raw, err2 := mpi.TypeContiguous(2, mpi.TypeInt)
		if err = errors.Join(err, err2, empty.Commit()); err != nil {
			return err
		}
		v := []int32{1, 2}
		to, from := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		for what, d := range map[string]mpi.Data{
			"nil": mpi.Slice[int32](nil), "no elements": mpi.Slice(v[:0]), "count 0": mpi.Typed(v, 0, mpi.TypeInt),
			"elements without bytes": mpi.Typed(v, 6, empty), "beyond any slice": mpi.Typed(v[:0], 1<<40, empty),
		} {
			st, err := c.Sendrecv(d, to, 0, d, from, mpi.AnyTag)
			if err := wantStatus(st, err, from, 0, 0); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if n := st.Count(mpi.TypeInt); n != 0 || st.Count(empty) != 0 || st.Elements(empty) != 0 {
				return fmt.Errorf("%s: %d elements", what, n)
			}
			if err := errors.Join(c.Bcast(d, 0), c.Allgather(d, d), c.Alltoall(d, d), c.Gather(d, d, 0), c.Scatter(d, d, 0)); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		if err := c.Send(mpi.Typed(v, 1, mpi.TypeInt), c.Rank(), 1); err != nil {
			return err
		}
		st, err := c.Recv(mpi.Typed(v, 1, mpi.TypeInt), c.Rank(), 1)
		if err != nil || st.Count(empty) != mpi.Undefined || st.Count(mpi.TypeDouble) != mpi.Undefined {
			return fmt.Errorf("4 bytes are %d and %d elements: %w", st.Count(empty), st.Count(mpi.TypeDouble), err)
		}
		below := mpi.Typed(v, -1, mpi.TypeInt)
		return errors.Join(
			wantClass(c.Send(below, 0, 0), mpi.ErrCount), wantClass(second(c.Irecv(below, 0, 0)), mpi.ErrCount),
			wantClass(c.Bcast(below, 0), mpi.ErrCount), wantClass(c.Allreduce(mpi.Data{}, below, mpi.OpSum), mpi.ErrCount),
			wantClass(second(c.RecvInit(below, 0, 0)), mpi.ErrCount), wantClass(second(c.PsendInit(below, 1, 0, 0)), mpi.ErrCount),
			wantClass(second(c.Pack(below, make([]byte, 9), 0)), mpi.ErrCount),
			wantClass(c.Send(mpi.Typed(v, 1, raw), 0, 0), mpi.ErrType), wantClass(c.Send(mpi.Typed(v, 0, raw), 0, 0), mpi.ErrType),
			wantClass(c.Send(mpi.Typed(v, 3, mpi.TypeInt), 0, 0), mpi.ErrBuffer),
		)
	})
}

// A rank finds, and receives in order, what it has sent to itself, with wildcards.
func TestSelf_probeAndAnyTag(t *testing.T) {
	onRanks(t, []int{1, 2}, func(p *mpi.Proc) error {
		for _, c := range []*mpi.Comm{p.World(), p.Self()} {
			me := c.Rank()
			if _, found, err := c.Iprobe(me, mpi.AnyTag); found || err != nil {
				return fmt.Errorf("found what nobody has sent: %w", err)
			}
			for _, n := range []int{1, 100_000} {
				out := make([]byte, n)
				r, err := mpi.Isend(c, out, me, mpi.MaxTag)
				if err == nil {
					err = mpi.Send(c, []byte{1, 2}, me, 0)
				}
				if err != nil {
					return err
				}
				st, err := c.Probe(mpi.AnySource, mpi.AnyTag)
				if err := wantStatus(st, err, me, mpi.MaxTag, n); err != nil {
					return err
				}
				st, err = c.Probe(me, 0)
				if err := wantStatus(st, err, me, 0, 2); err != nil {
					return err
				}
				for _, want := range []struct{ tag, bytes int }{{mpi.MaxTag, n}, {0, 2}} {
					st, err := mpi.Recv(c, make([]byte, n+1), mpi.AnySource, mpi.AnyTag)
					if err := wantStatus(st, err, me, want.tag, want.bytes); err != nil {
						return err
					}
				}
				if _, err := r.Wait(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Waitall waits for all, and tells which have failed; statuses can be looked at
// before.
func TestWaitall_tellsWhichHaveFailed(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		c := p.Self()
		requests := make([]mpi.Request, 4)
		for i := range 3 {
			var err error
			if requests[i], err = mpi.Irecv(c, make([]byte, 1+i), 0, i); err != nil {
				return err
			}
		}
		if done, err := mpi.GetStatusAll(requests, nil); done || err != nil {
			return fmt.Errorf("all are done: %v: %w", done, err)
		}
		if i, _, _, err := mpi.GetStatusAny(requests[:3]); i != mpi.Undefined || err != nil {
			return fmt.Errorf("request %d is done: %w", i, err)
		}
		for i := range 3 {
			if err := mpi.Send(c, make([]byte, 2), 0, i); err != nil { // the first is too short
				return err
			}
		}
		i, st, done, err := mpi.GetStatusAny(requests)
		if err := wantClass(err, mpi.ErrTruncate); i != 0 || !done || st.Tag != 0 || err != nil {
			return fmt.Errorf("request %d: %v: %w", i, done, err)
		}
		some, active := mpi.GetStatusSome(requests, nil)
		if !active || len(some) != 3 || some[2].Status.Tag != 2 || mpi.ClassOf(some[0].Err) != mpi.ErrTruncate {
			return fmt.Errorf("some: %+v", some)
		}
		statuses := make([]mpi.Status, 4)
		var failed *mpi.RequestError
		for range 2 {
			done, err = mpi.GetStatusAll(requests, statuses)
			if !done || !errors.As(err, &failed) || failed.Index != 0 || statuses[2].Tag != 2 || statuses[3].Source != mpi.AnySource {
				return fmt.Errorf("all: %v %+v: %w", done, statuses, err)
			}
		}
		if st, done, err := requests[3].GetStatus(); !done || err != nil || st.Bytes() != 0 {
			return fmt.Errorf("the null request: %w", err)
		}
		failed = nil
		err = mpi.WaitallStatus(requests, statuses)
		if !errors.As(err, &failed) || failed.Index != 0 || mpi.ClassOf(err) != mpi.ErrTruncate || statuses[1].Bytes() != 2 || !requests[2].IsNull() {
			return fmt.Errorf("%+v: %w", statuses, err)
		}
		return mpi.Waitall(requests)
	})
}

// A request that is freed ends by itself, a receive that is cancelled has no
// message, and one that has met its message is not cancelled.
func TestRequest_freeAndCancel(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		other := 1 - c.Rank()
		for _, n := range []int{1, 100_000} {
			out, in := make([]byte, n), make([]byte, n)
			pattern(out, c.Rank())
			recv, err := mpi.Irecv(c, in, other, 0)
			if err != nil {
				return err
			}
			send, err := mpi.Isend(c, out, other, 0)
			if err = errors.Join(err, send.Free()); err != nil || !send.IsNull() {
				return err
			}
			if _, err := recv.Wait(); err != nil {
				return err
			}
			if err := errors.Join(checkPattern(in, other), wantClass(send.Free(), mpi.ErrRequest)); err != nil {
				return err
			}
			if err := c.Barrier(); err != nil { // out is the other's until it is here
				return err
			}
		}
		v := []byte{0}
		r, err := mpi.Irecv(c, make([]byte, 1), mpi.AnySource, 8) // never met: Finalize does not wait for it
		if err = errors.Join(err, r.Free()); err != nil {
			return err
		}
		r, err = mpi.Irecv(c, v, c.Rank(), 7)
		if err = errors.Join(err, r.Cancel()); err != nil {
			return err
		}
		if st, err := r.Wait(); err != nil || !st.Cancelled() {
			return fmt.Errorf("it was not cancelled: %+v: %w", st, err)
		}
		if r, err = mpi.Irecv(c, v, c.Rank(), 7); err != nil {
			return err
		}
		if err := errors.Join(mpi.Send(c, []byte{9}, c.Rank(), 7), r.Cancel()); err != nil {
			return err
		}
		st, err := r.Wait()
		if st.Cancelled() || v[0] != 9 {
			return errors.New("a message that was there is gone")
		}
		return errors.Join(wantStatus(st, err, c.Rank(), 7, 1), wantClass(r.Cancel(), mpi.ErrRequest))
	})
}

// Assertions about a communicator are held against what the program does.
func TestComm_brokenAssertions(t *testing.T) {
	onRanks(t, []int{1, 2}, func(p *mpi.Proc) error {
		hints, err := mpi.NewInfo("mpi_assert_no_any_tag", "true", "mpi_assert_no_any_source", "true", "mpi_assert_exact_length", "true")
		if err != nil {
			return err
		}
		c, err := p.World().DupWithInfo(hints)
		if err != nil {
			return err
		}
		me := c.Rank()
		long := make([]byte, 4)
		send := func() error { return mpi.Send(c, []byte{1, 2}, me, 0) }
		if err := errors.Join(
			wantClass(second(mpi.Recv(c, long, mpi.AnySource, 0)), mpi.ErrRank),
			wantClass(second(mpi.Irecv(c, long, me, mpi.AnyTag)), mpi.ErrTag),
			wantClass(second(c.Probe(mpi.AnySource, 0)), mpi.ErrRank),
			send(), wantClass(second(mpi.Recv(c, long, me, 0)), mpi.ErrOther),
			send(), second(mpi.Recv(c, long[:2], me, 0)),
			send(), wantClass(second(mpi.Recv(c, long[:1], me, 0)), mpi.ErrTruncate),
		); err != nil {
			return err
		}
		r, err := mpi.Irecv(c, long, me, 0)
		if err = errors.Join(err, send()); err != nil {
			return err
		}
		_, _, looked := r.GetStatus()
		_, waited := r.Wait()
		if r, err = mpi.Isendrecv(c, long[:2], me, 1, long, me, 1); err != nil {
			return err
		}
		_, exchanged := r.Wait()
		none, err := mpi.NewInfo("mpi_assert_no_any_source", "false", "mpi_assert_exact_length", "false")
		if err = errors.Join(err, wantClass(looked, mpi.ErrOther), wantClass(waited, mpi.ErrOther), wantClass(exchanged, mpi.ErrOther), c.SetInfo(none), send()); err != nil {
			return err
		}
		st, err := mpi.Recv(c, long, mpi.AnySource, 0)
		return errors.Join(wantStatus(st, err, me, 0, 2), c.Free())
	})
}

// Elements of a resized datatype lie an extent apart in collectives too: rows become
// columns.
func TestResized_inCollectives(t *testing.T) {
	onRanks(t, []int{1, 3, 4}, func(p *mpi.Proc) error {
		c := p.World()
		n, me := c.Size(), c.Rank()
		column, err := mpi.TypeVector(n, 1, n, mpi.TypeInt64)
		if err == nil {
			column, err = mpi.TypeResized(column, 0, 8)
		}
		if err = errors.Join(err, column.Commit()); err != nil {
			return err
		}
		row := make([]int64, n)
		for i := range row {
			row[i] = int64(100*me + i)
		}
		all, gathered, mine := make([]int64, n*n), make([]int64, n*n), make([]int64, n)
		if err := errors.Join(
			c.Allgather(mpi.Slice(row), mpi.Typed(all, n, column)),
			c.Gather(mpi.Slice(row), mpi.Typed(gathered, n, column), n-1),
			c.Scatter(mpi.Typed(gathered, n, column), mpi.Slice(mine), n-1),
		); err != nil {
			return err
		}
		if !slices.Equal(mine, row) {
			return fmt.Errorf("scattered back: %v, want %v", mine, row)
		}
		for i, v := range all {
			if want := int64(100*(i%n) + i/n); v != want {
				return fmt.Errorf("row %d, column %d is %d, want %d", i/n, i%n, v, want)
			}
		}
		// In place: the transposition of a matrix of which each rank has a row.
		if err := mpi.Alltoall(c, mpi.InPlace[int64](), mine); err != nil {
			return err
		}
		for i, v := range mine {
			if v != int64(100*i+me) {
				return fmt.Errorf("element %d of column %d is %d", i, me, v)
			}
		}
		return nil
	})
}

// Alltoallv is in place where neither send nor its counts are given, and only there.
func TestAlltoallv_inPlaceOrNothingToSend(t *testing.T) {
	onRanks(t, []int{1, 3}, func(p *mpi.Proc) error {
		c := p.World()
		n, me := c.Size(), c.Rank()
		ones, v := slices.Repeat([]int{1}, n), make([]int, n)
		for i := range v {
			v[i] = 10*me + i
		}
		if err := mpi.Alltoallv(c, nil, nil, nil, v, ones, nil); err != nil {
			return err
		}
		for i := range v {
			if v[i] != 10*i+me {
				return fmt.Errorf("in place: %v", v)
			}
		}
		// Only rank 0 sends: the others have nil, and counts.
		var send []int
		counts, from := make([]int, n), make([]int, n)
		from[0] = 1
		if me == 0 {
			send, counts = slices.Repeat([]int{7}, n), ones
		}
		in := []int{-1}
		if err := mpi.Alltoallv(c, send, counts, nil, in, from, nil); err != nil || in[0] != 7 {
			return fmt.Errorf("got %v: %w", in, err)
		}
		return errors.Join(
			wantClass(mpi.Alltoallv(c, []int{1}, nil, nil, in, from, nil), mpi.ErrArg),
			wantClass(mpi.Alltoallv(c, nil, ones, nil, in, from, nil), mpi.ErrCount),
		)
	})
}

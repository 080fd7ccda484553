package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// onRanksAndThreads is onRanks with and without ThreadMultiple.
func onRanksAndThreads(t *testing.T, sizes []int, body func(p *mpi.Proc) error) {
	t.Helper()
	onRanks(t, sizes, body)
	for _, n := range sizes {
		if err := mpi.RunWith(n, mpi.Config{Threads: mpi.ThreadMultiple}, body); err != nil {
			t.Fatalf("%d ranks that may have goroutines: %v", n, err)
		}
	}
}

// Several Idups, and what makes communicators and waits, are under way at a time,
// in another order on each rank as far as that is allowed.
func TestIdup_manyAtATime(t *testing.T) {
	onRanksAndThreads(t, []int{1, 2, 5}, func(p *mpi.Proc) error {
		w := p.World()
		half, err := w.Split(w.Rank()%2, 0)
		if err != nil {
			return err
		}
		for range 3 {
			var made []*mpi.Comm
			var requests []mpi.Request
			start := func(c *mpi.Comm) error {
				d, r, err := c.Idup()
				made, requests = append(made, d), append(requests, r)
				if err != nil || c.Size() == 1 {
					return err
				}
				return errors.Join(wantClass(mpi.Send(d, []int{1}, 0, 0), mpi.ErrComm), wantClass(d.Free(), mpi.ErrComm))
			}
			order := []*mpi.Comm{w, half, w}
			if w.Rank()%2 == 1 {
				order = []*mpi.Comm{half, w, w}
			}
			for _, c := range order {
				if err := start(c); err != nil {
					return err
				}
			}
			blocking, err := w.Dup()
			if err != nil {
				return err
			}
			if err := mpi.Waitall(requests); err != nil {
				return err
			}
			if w.Rank()%2 == 1 {
				made[0], made[1] = made[1], made[0]
			}
			for i, c := range append(made, blocking) {
				if got := c.Compare(w); i != 1 && got != mpi.Congruent {
					return fmt.Errorf("communicator %d compares %d with that which it was made of", i, got)
				}
				if err := ring(c); err != nil {
					return fmt.Errorf("communicator %d: %w", i, err)
				}
				if err := c.Free(); err != nil {
					return err
				}
			}
		}
		return half.Free()
	})
}

func TestIdup_intercommunicatorAttributesAndHints(t *testing.T) {
	onRanksAndThreads(t, []int{2, 5}, func(p *mpi.Proc) error {
		w := p.World()
		half, err := w.Split(w.Rank()%2, 0)
		if err != nil {
			return err
		}
		inter, err := half.CreateInter(0, w, 1-w.Rank()%2, 3)
		if err != nil {
			return err
		}
		key := &mpi.Keyval{Copy: mpi.CopyAttr}
		hint, err := mpi.NewInfo("mpi_assert_no_any_tag", "true")
		if err = errors.Join(err, inter.SetAttr(key, 1)); err != nil {
			return err
		}
		d, r, err := inter.IdupWithInfo(hint)
		if err = errors.Join(err, inter.SetAttr(key, 2)); err != nil {
			return err
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		if v, _ := d.Attr(key); v != 1 {
			return fmt.Errorf("the attribute is %v, and was 1 when Idup was called", v)
		}
		info, err := d.Info()
		if given, _ := info.Get("mpi_assert_no_any_tag"); err != nil || given != "true" {
			return fmt.Errorf("the hint is %q: %w", given, err)
		}
		if d.Compare(inter) != mpi.Congruent || d.RemoteSize() != inter.RemoteSize() {
			return errors.New("other groups than those it was made of")
		}
		v := []int{0}
		if err := mpi.Allreduce(d, []int{1}, v, mpi.Sum); err != nil || v[0] != d.RemoteSize() {
			return fmt.Errorf("the other group has %d ranks, counted %d: %w", d.RemoteSize(), v[0], err)
		}
		return errors.Join(d.Free(), inter.Free(), half.Free())
	})
}

// Iagree and Ishrink, with other calls in between.
func TestULFM_agreeAndShrinkThatDoNotWait(t *testing.T) {
	onRanksAndThreads(t, []int{1, 2, 5}, func(p *mpi.Proc) error {
		w := p.World()
		flag := ^uint64(1 << w.Rank())
		agreed, err := w.Iagree(&flag)
		if err != nil {
			return err
		}
		half, err := w.Split(w.Rank()%2, 0)
		if err != nil {
			return err
		}
		shrunk, shrinks, err := half.Ishrink()
		if err != nil {
			return err
		}
		d, err := w.Dup()
		if err != nil {
			return err
		}
		if _, err := agreed.Wait(); err != nil || flag != ^uint64(0)<<w.Size() {
			return fmt.Errorf("the flag is %#x: %w", flag, err)
		}
		if _, err := shrinks.Wait(); err != nil {
			return err
		}
		return errors.Join(ring(shrunk), ring(d), shrunk.Free(), half.Free(), d.Free(), wantClass(second(w.Iagree(nil)), mpi.ErrArg))
	})
}

func TestIsendrecv(t *testing.T) {
	onRanksAndThreads(t, []int{1, 3}, func(p *mpi.Proc) error {
		c := p.World()
		right, left := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		for _, n := range []int{0, 1, 50_000} {
			out, in, both := make([]int, n), make([]int, n), make([]int, n)
			for i := range out {
				out[i], both[i] = c.Rank()+i, 2*c.Rank()+i
			}
			first, err := mpi.Isendrecv(c, out, right, 1, in, mpi.AnySource, 1)
			if err != nil {
				return err
			}
			second, err := mpi.IsendrecvReplace(c, both, right, 2, left, mpi.AnyTag)
			if err != nil {
				return err
			}
			st, err := second.Wait()
			if err := wantStatus(st, err, left, 2, 8*n); err != nil {
				return err
			}
			if err := wantClass(first.Cancel(), mpi.ErrRequest); err != nil {
				return err
			}
			st, err = first.Wait()
			if err := wantStatus(st, err, left, 1, 8*n); err != nil {
				return err
			}
			for i := range in {
				if in[i] != left+i || both[i] != 2*left+i {
					return fmt.Errorf("element %d of %d is %d and %d", i, n, in[i], both[i])
				}
			}
		}
		r, err := mpi.Isendrecv(c, []byte{1}, mpi.ProcNull, 0, []byte{2}, mpi.ProcNull, 0)
		if err != nil {
			return err
		}
		st, err := r.Wait()
		if err := wantStatus(st, err, mpi.ProcNull, mpi.AnyTag, 0); err != nil {
			return err
		}
		r, err = mpi.Isendrecv(c, []byte{1, 2}, c.Rank(), 0, []byte{0}, c.Rank(), 0)
		if err != nil {
			return err
		}
		_, long := r.Wait()
		_, rank := mpi.Isendrecv(c, []byte{1}, c.Size(), 0, []byte{0}, 0, 0)
		return errors.Join(wantClass(long, mpi.ErrTruncate), wantClass(rank, mpi.ErrRank))
	})
}

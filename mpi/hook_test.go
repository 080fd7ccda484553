package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// seen is what hooks have seen of one rank.
type seen struct {
	mu    sync.Mutex
	open  int
	calls []mpi.Call
}

func (s *seen) hooks() *mpi.Hooks {
	return &mpi.Hooks{
		Begin: func(k *mpi.Call) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.open++
			k.Data = s.open
		},
		End: func(k *mpi.Call) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.open--
			s.calls = append(s.calls, *k)
		},
	}
}

func (s *seen) names() (names []string) {
	for _, k := range s.calls {
		names = append(names, k.Name)
	}
	return names
}

func TestHooks_seeCalls(t *testing.T) {
	var ranks [2]seen
	err := mpi.Run(2, func(p *mpi.Proc) error {
		c, me := p.World(), p.World().Rank()
		s := &ranks[me]
		p.SetHooks(s.hooks())
		buf := []int64{1, 2, 3}
		var errs []error
		if me == 0 {
			errs = append(errs, mpi.Send(c, buf, 1, 7), mpi.Ssend(c, buf, 1, 8))
		} else {
			_, err := mpi.Recv(c, buf, 0, 7)
			r, err2 := mpi.Irecv(c, buf, mpi.AnySource, 8)
			_, err3 := r.Wait()
			errs = append(errs, err, err2, err3)
		}
		errs = append(errs, mpi.Allreduce(c, nil, buf, mpi.Sum))
		if class := mpi.ClassOf(mpi.Bcast(c, buf, 99)); class != mpi.ErrRoot {
			return fmt.Errorf("Bcast from nobody: %v", class)
		}
		errs = append(errs, c.Barrier())
		d, err := c.Dup()
		errs = append(errs, err, d.Free())
		p.SetHooks(nil)
		_, err = mpi.Sendrecv(c, buf, 1-me, 0, make([]int64, 3), 1-me, 0)
		return errors.Join(append(errs, err)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := [2][]string{
		{"Send", "Ssend", "Allreduce", "Bcast", "Barrier", "Comm.Dup", "Comm.Free"},
		{"Recv", "Irecv", "Wait", "Allreduce", "Bcast", "Barrier", "Comm.Dup", "Comm.Free"},
	}
	for rank := range ranks {
		s := &ranks[rank]
		if got := s.names(); !slices.Equal(got, want[rank]) || s.open != 0 {
			t.Fatalf("rank %d: %v, %d open", rank, got, s.open)
		}
		at := want[rank]
		for i, k := range s.calls {
			if k.End < k.Begin || i > 0 && k.Begin < s.calls[i-1].End || k.Data != 1 || k.Comm == nil {
				t.Errorf("rank %d: %+v", rank, k)
			}
			if (k.Err != nil) != (at[i] == "Bcast") {
				t.Errorf("rank %d: %s has error %v", rank, k.Name, k.Err)
			}
		}
	}
	if k := ranks[0].calls[0]; k.Peer != 1 || k.Tag != 7 || k.Bytes != 24 {
		t.Errorf("%+v", k)
	}
	if k := ranks[1].calls[1]; k.Peer != mpi.AnySource || k.Tag != 8 {
		t.Errorf("%+v", k)
	}
}

// Hooks may call the package.
func TestHooks_mayCall(t *testing.T) {
	err := mpi.RunWith(2, mpi.Config{Threads: mpi.ThreadMultiple}, func(p *mpi.Proc) error {
		c, err := p.World().Dup()
		if err != nil {
			return err
		}
		inside := false
		p.SetHooks(&mpi.Hooks{End: func(k *mpi.Call) {
			if inside || k.Name != "Allreduce" {
				return
			}
			inside = true
			k.Err = c.Barrier()
			inside = false
		}})
		return mpi.Allreduce(p.World(), nil, []int32{1}, mpi.Sum)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStats_counts(t *testing.T) {
	err := mpi.RunWith(2, mpi.Config{Stats: true}, func(p *mpi.Proc) error {
		world, me := p.World(), p.World().Rank()
		c, err := world.Dup()
		if err != nil {
			return err
		}
		buf := make([]byte, 100_000)
		for i, size := range []int{10, 100_000} {
			if me == 0 {
				err = mpi.Send(c, buf[:size], 1, i)
			} else {
				_, err = mpi.Recv(c, buf, 0, i)
			}
			if err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		s, all, other := c.Stats(), p.Stats(), world.Stats()
		n, bytes := s.SentMessages, s.SentBytes
		if me == 1 {
			n, bytes = s.ReceivedMessages, s.ReceivedBytes
		}
		name := []string{"Send", "Recv"}[me]
		if n <= 2 || bytes != 100_010 || s.Calls[name].Calls != 2 || s.Calls["Barrier"].Calls != 1 || s.Calls["Barrier"].Time <= 0 {
			return fmt.Errorf("%+v", s)
		}
		if me == 0 && (s.Eager == 0 || s.Rendezvous != 1 || s.Near != s.Eager || other.Rendezvous != 0) {
			return fmt.Errorf("%+v; World %+v", s, other)
		}
		for _, s := range []mpi.CommStats{s, other, all.CommStats} { // messages of collectives count
			if s.SentMessages != s.Eager+s.Rendezvous || s.ReceivedMessages == 0 {
				return fmt.Errorf("%+v", s)
			}
		}
		if all.SentBytes != s.SentBytes+other.SentBytes || all.ReceivedMessages != s.ReceivedMessages+other.ReceivedMessages {
			return fmt.Errorf("%+v, World %+v, all %+v", s, other, all)
		}
		if me == 0 && (all.Eager == 0 || all.Rendezvous != 1) {
			return fmt.Errorf("%+v", all)
		}
		named := map[string]uint64{}
		for _, v := range all.Variables() {
			named[v.Name] = v.Value
		}
		if named["call_"+name+"_count"] != 2 || named["messages_sent"] != all.SentMessages {
			return fmt.Errorf("%v", named)
		}
		return c.Free()
	})
	if err != nil {
		t.Error(err)
	}
}

// Whom nobody watches counts nothing but what costs nothing.
func TestStats_unwatched(t *testing.T) {
	err := mpi.Run(2, func(p *mpi.Proc) error {
		if err := p.World().Barrier(); err != nil {
			return err
		}
		if s := p.Stats(); s.Eager == 0 || s.Calls != nil || p.World().Stats().Calls != nil {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

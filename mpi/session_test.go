package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// everyWay runs body on n ranks that reach one another in every way there is inside
// one process, by goroutines of their own too.
func everyWay(t *testing.T, n int, body func(p *mpi.Proc) error) {
	t.Helper()
	everyRealWay(t, n, body)
	t.Run("simulated", func(t *testing.T) { simulate(t, sim.Config{Seed: 3}, n, body) })
}

// everyRealWay is everyWay without the simulator.
func everyRealWay(t *testing.T, n int, body func(p *mpi.Proc) error) {
	t.Helper()
	for _, way := range []struct {
		name string
		cfg  mpi.Config
	}{
		{"shared memory", mpi.Config{}},
		{"rd", mpi.Config{NoShared: true}},
		{"rc", mpi.Config{NoShared: true, Transport: mpi.RC}},
		{"ud", mpi.Config{NoShared: true, Transport: mpi.UD}},
		{"threads", mpi.Config{Threads: mpi.ThreadMultiple}},
		{"rd, threads", mpi.Config{NoShared: true, Threads: mpi.ThreadMultiple}},
	} {
		t.Run(way.name, func(t *testing.T) {
			if err := mpi.RunWith(n, way.cfg, body); err != nil {
				t.Error(err)
			}
		})
	}
}

// works passes a token round and adds up the ranks of a communicator.
func works(c *mpi.Comm) error {
	sum := []int{c.Rank()}
	if err := mpi.Allreduce(c, nil, sum, mpi.Sum); err != nil {
		return err
	}
	if want := c.Size() * (c.Size() - 1) / 2; sum[0] != want {
		return fmt.Errorf("the sum of %d ranks is %d, want %d", c.Size(), sum[0], want)
	}
	return ring(c)
}

// from makes a communicator of a process set.
func from(s *mpi.Session, pset, tag string) (*mpi.Comm, error) {
	g, err := s.GroupFromPset(pset)
	if err != nil {
		return nil, err
	}
	return s.CommCreateFromGroup(g, tag, nil, nil)
}

// Two libraries have sessions of their own, beside the world model.
func TestSession_communicators(t *testing.T) {
	everyWay(t, 5, func(p *mpi.Proc) error {
		first, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		second, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		a, err := from(first, mpi.PsetWorld, "first")
		if err != nil {
			return err
		}
		b, err := from(second, mpi.PsetWorld, "second")
		if err != nil {
			return err
		}
		alone, err := from(second, mpi.PsetSelf, "second")
		if err != nil {
			return err
		}
		if p.World().Compare(a) != mpi.Congruent || a.Compare(b) != mpi.Congruent || p.Self().Compare(alone) != mpi.Congruent {
			return errors.New("they are not of the ranks of World and Self")
		}
		dup, err := a.Dup()
		if err != nil {
			return err
		}
		half, err := b.Split(b.Rank()%2, -b.Rank())
		if err != nil {
			return err
		}
		for _, c := range []*mpi.Comm{p.World(), a, b, alone, dup, half} {
			if err := works(c); err != nil {
				return err
			}
		}
		if _, err := b.Create(half.Group()); err != nil { // ranks of one half, in each
			return err
		}
		return errors.Join(dup.Free(), half.Free(), alone.Free(), a.Free(), first.Finalize(), works(b), second.Finalize(), works(p.World()))
	})
}

// Groups of some ranks, in any order, make communicators at the same time with the
// same tag, when they do not overlap; then intercommunicators.
func TestSession_groups(t *testing.T) {
	everyWay(t, 5, func(p *mpi.Proc) error {
		s, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		all, err := s.GroupFromPset(mpi.PsetWorld)
		if err != nil {
			return err
		}
		even, err := all.RangeIncl(mpi.Range{First: 4, Last: 0, Stride: -2})
		if err != nil {
			return err
		}
		sides := []*mpi.Group{even, all.Difference(even)}
		me := 0
		if even.Rank(p) == mpi.Undefined {
			me = 1
		}
		hints, err := mpi.NewInfo("mpi_assert_no_any_tag", "true")
		if err != nil {
			return err
		}
		for range 3 {
			c, err := s.CommCreateFromGroup(sides[me], "side", hints, nil)
			if err != nil {
				return err
			}
			if c.Group().Compare(sides[me]) != mpi.Ident {
				return fmt.Errorf("it has other ranks: rank %d of %d", c.Rank(), c.Size())
			}
			if _, err := c.Irecv(mpi.Slice([]int{0}), 0, mpi.AnyTag); mpi.ClassOf(err) != mpi.ErrTag {
				return fmt.Errorf("the info says that there is no AnyTag: %w", err)
			}
			inter, err := s.IntercommCreateFromGroups(sides[me], me, sides[1-me], 1-me, "across", nil, nil)
			if err != nil {
				return err
			}
			if inter.RemoteGroup().Compare(sides[1-me]) != mpi.Ident {
				return errors.New("the remote group is another one")
			}
			sum := []int{0}
			if err := mpi.Allreduce(inter, []int{1}, sum, mpi.Sum); err != nil || sum[0] != sides[1-me].Size() {
				return fmt.Errorf("%d ranks in the other group: %w", sum[0], err)
			}
			merged, err := inter.Merge(me == 1)
			if err != nil {
				return err
			}
			if err := errors.Join(works(c), works(merged), inter.Free(), c.Free(), merged.Free()); err != nil {
				return err
			}
		}
		return s.Finalize()
	})
}

func TestSession_psets(t *testing.T) {
	everyWay(t, 3, func(p *mpi.Proc) error {
		s, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		near, err := p.World().SplitType(mpi.TypeShared, 0)
		if err != nil {
			return err
		}
		names, err := s.Psets()
		if err != nil || len(names) != 3 || names[0] != mpi.PsetWorld || names[1] != mpi.PsetSelf || !strings.HasPrefix(names[2], mpi.PsetHost) {
			return fmt.Errorf("process sets %q: %w", names, err)
		}
		for i, like := range []*mpi.Comm{p.World(), p.Self(), near} {
			g, err := s.GroupFromPset([]string{strings.ToLower(names[i]), names[i], strings.ToUpper(names[i])}[i])
			if err != nil || g.Compare(like.Group()) != mpi.Ident {
				return fmt.Errorf("%s has %d ranks: %w", names[i], g.Size(), err)
			}
			info, err := s.PsetInfo(names[i])
			if size, _ := info.Get("mpi_size"); err != nil || size != fmt.Sprint(like.Size()) {
				return fmt.Errorf("%s has mpi_size %s: %w", names[i], size, err)
			}
		}
		info, err := s.Info()
		if level, _ := info.Get("thread_level"); err != nil || level != "MPI_THREAD_"+strings.ToUpper(p.QueryThread().String()) {
			return fmt.Errorf("thread_level is %q: %w", level, err)
		}
		return s.Finalize()
	})
}

func TestSession_misuse(t *testing.T) {
	everyWay(t, 2, func(p *mpi.Proc) error {
		var seen []mpi.ErrorClass
		s, err := p.SessionInit(nil, func(_ *mpi.Session, err error) { seen = append(seen, mpi.ClassOf(err)) })
		if err != nil {
			return err
		}
		other, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		ended, err := p.SessionInit(nil, nil)
		if err == nil {
			err = ended.Finalize()
		}
		if err != nil {
			return err
		}
		mine, err := s.GroupFromPset(mpi.PsetWorld)
		if err != nil {
			return err
		}
		theirs, err := other.GroupFromPset(mpi.PsetWorld)
		if err != nil {
			return err
		}
		self, err := s.GroupFromPset(mpi.PsetSelf)
		if err != nil {
			return err
		}
		c, err := from(s, mpi.PsetWorld, "misuse")
		if err != nil {
			return err
		}
		theirSelf, err := from(other, mpi.PsetSelf, "misuse")
		if err != nil {
			return err
		}
		world, none, rest := p.World(), mpi.GroupEmpty(), mine.Difference(self)
		bad, err := mpi.NewInfo("thread_level", "all")
		if err != nil {
			return err
		}
		create := func(g *mpi.Group, tag string) error {
			_, err := s.CommCreateFromGroup(g, tag, nil, nil)
			return err
		}
		inter := func(local *mpi.Group, leader int, remote *mpi.Group, remoteLeader int) error {
			_, err := s.IntercommCreateFromGroups(local, leader, remote, remoteLeader, "t", nil, nil)
			return err
		}
		for _, x := range []struct {
			name string
			err  error
			want mpi.ErrorClass
		}{
			{"unknown level", second(p.SessionInit(bad, nil)), mpi.ErrInfoValue},
			{"ended: Psets", second(ended.Psets()), mpi.ErrSession},
			{"ended: Info", second(ended.Info()), mpi.ErrSession},
			{"ended: GroupFromPset", second(ended.GroupFromPset(mpi.PsetWorld)), mpi.ErrSession},
			{"ended: CommCreateFromGroup", second(ended.CommCreateFromGroup(mine, "t", nil, nil)), mpi.ErrSession},
			{"ended: Finalize", ended.Finalize(), mpi.ErrSession},
			{"ended: BufferAttach", ended.BufferAttach(100), mpi.ErrSession},
			{"nil", (*mpi.Session)(nil).Finalize(), mpi.ErrSession},
			{"unknown set", second(s.GroupFromPset("mpi://UNIVERSE")), mpi.ErrArg},
			{"unknown host", second(s.PsetInfo(mpi.PsetHost + "no")), mpi.ErrArg},
			{"group of another session", create(theirs, "t"), mpi.ErrGroup},
			{"group of the world model", create(world.Group(), "t"), mpi.ErrGroup},
			{"mixed group", create(self.Union(theirs), "t"), mpi.ErrGroup},
			{"mixed group again", create(theirs.Intersection(mine), "t"), mpi.ErrGroup},
			{"nil group", create(nil, "t"), mpi.ErrGroup},
			{"without this rank", create(rest, "t"), mpi.ErrGroup},
			{"long tag", create(mine, strings.Repeat("t", mpi.MaxStringTag+1)), mpi.ErrArg},
			{"bad hint", second(s.CommCreateFromGroup(mine, "t", hint(p), nil)), mpi.ErrInfoValue},
			{"empty group", create(none, "t"), mpi.Success},
			{"empty group of a union", create(none.Union(none), "t"), mpi.Success},
			{"leader", inter(self, 1, rest, 0), mpi.ErrRank},
			{"remote leader", inter(self, 0, rest, 1), mpi.ErrRank},
			{"overlap", inter(mine, p.World().Rank(), self, 0), mpi.ErrGroup},
			{"no remote group", inter(self, 0, nil, 0), mpi.ErrGroup},
			{"remote group of another session", inter(self, 0, theirs, 0), mpi.ErrGroup},
			{"empty remote group", inter(self, 0, none, 0), mpi.Success},
			{"Create with a group of World", second(c.Create(world.Group())), mpi.ErrGroup},
			{"CreateGroup with one of a session", second(world.CreateGroup(mine, 0)), mpi.ErrGroup},
			{"leaders of another session", second(theirSelf.CreateInter(0, c, 1-c.Rank(), 0)), mpi.ErrComm},
		} {
			if got := mpi.ClassOf(x.err); got != x.want {
				return fmt.Errorf("%s: got %v of class %v, want %v", x.name, x.err, got, x.want)
			}
		}
		if want := []mpi.ErrorClass{mpi.ErrArg, mpi.ErrArg}; !slices.Equal(seen, want) {
			return fmt.Errorf("the handler has seen %v, want %v", seen, want)
		}
		var told []error
		_, err = s.CommCreateFromGroup(theirs, "t", nil, func(_ *mpi.Comm, err error) { told = append(told, err) })
		if len(told) != 1 || told[0] != err {
			return fmt.Errorf("the communicator's handler was told %v, want %w", told, err)
		}
		boom := errors.New("boom")
		s.SetErrhandler(func(of *mpi.Session, err error) { told = append(told, err) })
		if s.Errhandler() == nil || s.CallErrhandler(boom) != boom || told[len(told)-1] != boom {
			return errors.New("the handler is not called")
		}
		return errors.Join(works(c), c.Free(), theirSelf.Free(), other.Finalize(), s.Finalize())
	})
}

// hint returns one that makes no sense.
func hint(p *mpi.Proc) *mpi.Info {
	i := p.InfoEnv()
	if err := i.Set("mpi_assert_exact_length", "perhaps"); err != nil {
		panic(err)
	}
	return i
}

// Communicators that were not freed go with their session, whatever the order in
// which ranks have made them.
func TestSession_finalizeFrees(t *testing.T) {
	everyWay(t, 3, func(p *mpi.Proc) error {
		s, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		all, err := s.GroupFromPset(mpi.PsetWorld)
		if err != nil {
			return err
		}
		me := p.World().Rank()
		var made []*mpi.Comm
		for i := range 3 { // rank 0: with 1, then 2; and so on
			with := (3 + i - me) % 3
			if with == me {
				continue
			}
			g, err := all.Incl(min(me, with), max(me, with))
			if err != nil {
				return err
			}
			c, err := s.CommCreateFromGroup(g, fmt.Sprint(i), nil, nil)
			if err != nil {
				return err
			}
			made = append(made, c)
		}
		slices.Reverse(made)
		c, err := s.CommCreateFromGroup(all, "all", nil, nil)
		if err != nil {
			return err
		}
		gone := 0
		key := &mpi.Keyval{Delete: func(*mpi.Comm, any) error { gone++; return nil }}
		for _, c := range append(made, c) {
			if err := errors.Join(works(c), c.SetAttr(key, 1)); err != nil {
				return err
			}
		}
		r, err := mpi.Irecv(c, []int{0}, mpi.ProcNull, 0)
		if err == nil {
			_, err = r.Wait()
		}
		pending, err2 := mpi.Irecv(c, []int{0}, (me+1)%3, 99)
		if err := errors.Join(err, err2, wantClass(s.Finalize(), mpi.ErrPending)); err != nil {
			return err
		}
		if gone != len(made)+1 {
			return fmt.Errorf("%d attributes were deleted of %d", gone, len(made)+1)
		}
		for _, c := range append(made, c) {
			if err := wantClass(c.Barrier(), mpi.ErrComm); err != nil {
				return err
			}
		}
		if err := pending.Cancel(); err != nil {
			return err
		}
		if st, err := pending.Wait(); err != nil || !st.Cancelled() {
			return fmt.Errorf("cancelled: %v, %w", st.Cancelled(), err)
		}
		return works(p.World())
	})
}

// Sessions go on after Finalize, and the process leaves with the last one.
func TestSession_outlivesFinalize(t *testing.T) {
	everyRealWay(t, 3, func(p *mpi.Proc) error {
		var open [2]*mpi.Session
		for i := range open {
			var err error
			if open[i], err = p.SessionInit(nil, nil); err != nil {
				return err
			}
		}
		world, self := p.World(), p.Self()
		if err := p.Finalize(); err != nil {
			return err
		}
		late, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		if err := errors.Join(wantClass(world.Barrier(), mpi.ErrComm), wantClass(self.Barrier(), mpi.ErrComm), wantClass(p.Finalize(), mpi.ErrOther)); err != nil {
			return err
		}
		for _, s := range append(open[:], late) {
			c, err := from(s, mpi.PsetWorld, "late")
			if err != nil {
				return err
			}
			if err := errors.Join(works(c), c.Free(), s.Finalize()); err != nil {
				return err
			}
		}
		return errors.Join(wantClass(second(p.SessionInit(nil, nil)), mpi.ErrOther), wantClass(second(p.GrequestStart(&mpi.Grequest{})), mpi.ErrOther))
	})
}

func TestSession_neverFinalized(t *testing.T) {
	err := mpi.Run(2, func(p *mpi.Proc) error { return second(p.SessionInit(nil, nil)) })
	if mpi.ClassOf(err) != mpi.ErrSession {
		t.Error(err)
	}
}

// Goroutines of a rank make communicators at the same time, with tags of their own.
func TestSession_goroutines(t *testing.T) {
	multiple(t, 3, func(p *mpi.Proc) error {
		return goroutines(6, func(g int) error {
			s, err := p.SessionInit(nil, nil)
			if err != nil {
				return err
			}
			for i := range 4 {
				c, err := from(s, mpi.PsetWorld, fmt.Sprint("goroutine ", (g+p.World().Rank())%6))
				if err != nil {
					return err
				}
				if err := works(c); err != nil {
					return fmt.Errorf("round %d: %w", i, err)
				}
				if i%2 == 0 {
					if err := c.Free(); err != nil {
						return err
					}
				}
			}
			return s.Finalize()
		})
	})
}

// Of two goroutines that use one tag at the same time, one gets an error.
func TestSession_tagInUse(t *testing.T) {
	multiple(t, 2, func(p *mpi.Proc) error {
		s, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		w := p.World()
		if w.Rank() == 1 {
			if _, err := mpi.Recv(w, []int{0}, 0, 0); err != nil {
				return err
			}
			return errors.Join(second(from(s, mpi.PsetWorld, "x")), s.Finalize())
		}
		ends := make(chan error, 2)
		for range 2 {
			go func() { ends <- second(from(s, mpi.PsetWorld, "x")) }()
		}
		refused := <-ends
		return errors.Join(wantClass(refused, mpi.ErrArg), mpi.Send(w, []int{0}, 1, 0), <-ends, s.Finalize())
	})
}

// Those that are left make communicators of themselves; with a rank that is lost there
// are none, on either side.
func TestSession_lostRank(t *testing.T) {
	for rank, err := range mpi.RunEach(4, func(p *mpi.Proc) error {
		s, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		all, err := s.GroupFromPset(mpi.PsetWorld)
		if err != nil {
			return err
		}
		left, err := all.Excl(3)
		if err != nil {
			return err
		}
		if p.World().Rank() == 3 {
			return errKilled
		}
		if err := wantClass(second(s.CommCreateFromGroup(all, "all", nil, nil)), mpi.ErrProcFailed); err != nil {
			return err
		}
		pair, err := left.Incl(0, 1)
		if err != nil {
			return err
		}
		sides := [2]*mpi.Group{pair, all.Difference(pair)} // ranks 2 and 3
		me := p.World().Rank() / 2
		if err := wantClass(second(s.IntercommCreateFromGroups(sides[me], 0, sides[1-me], 0, "i", nil, nil)), mpi.ErrProcFailed); err != nil {
			return err
		}
		c, err := s.CommCreateFromGroup(left, "left", nil, nil)
		if err != nil {
			return err
		}
		return errors.Join(works(c), s.Finalize())
	}) {
		if rank == 3 && !errors.Is(err, errKilled) || rank < 3 && err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// Bsend uses the buffer of the session for its communicators, and that of the process
// for those of the world model.
func TestSession_buffer(t *testing.T) {
	everyWay(t, 2, func(p *mpi.Proc) error {
		s, err := p.SessionInit(nil, nil)
		if err != nil {
			return err
		}
		c, err := from(s, mpi.PsetWorld, "buffer")
		if err != nil {
			return err
		}
		message, peer := make([]byte, 100_000), 1-c.Rank()
		if err := wantClass(mpi.Bsend(c, message, peer, 0), mpi.ErrBuffer); err != nil {
			return err
		}
		if err := errors.Join(p.BufferAttach(mpi.BufferAutomatic), mpi.Bsend(c, message, peer, 0)); err != nil {
			return err // of the process, when the session has none
		}
		if err := s.BufferAttach(len(message) + mpi.BsendOverhead); err != nil {
			return err
		}
		if err := errors.Join(mpi.Bsend(c, message, peer, 0), mpi.Bsend(p.World(), message, peer, 0)); err != nil {
			return err
		}
		sent, err := s.BufferIflush()
		if err != nil {
			return err
		}
		for _, c := range []*mpi.Comm{c, c, p.World()} {
			if _, err := mpi.Recv(c, message, peer, 0); err != nil {
				return err
			}
		}
		if _, err := sent.Wait(); err != nil {
			return err
		}
		if n, err := s.BufferDetach(); err != nil || n != len(message)+mpi.BsendOverhead {
			return fmt.Errorf("detached %d bytes: %w", n, err)
		}
		return errors.Join(s.BufferFlush(), c.Free(), s.Finalize())
	})
}

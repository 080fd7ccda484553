package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// What the system of which ghosts are an implementation has to keep right, or has got wrong
// (docs/TESTING.md, acceptance). Each item of it runs in the simulator, over bad networks, and in
// processes, on each network.

// trial is what a rank has for an item.
type trial struct {
	c      *mpi.Comm
	me, n  int
	rounds int
	async  string                        // who serves windows, if there are ghosts
	layout string                        // of windows
	checks mpi.WinMode                   // of exclusive locks: ModeNoCheck if there are to be none
	only   string                        // item
	common *rand.Rand                    // is the same on all ranks
	both   func(f [2]func() error) error // does both, at a time if it can
}

var trials = []struct {
	name string
	do   func(x *trial) error
}{
	{"L1", (*trial).loadsBehindLock}, {"L2", (*trial).getsBehindFlush},
	{"two ghosts under an exclusive lock", func(x *trial) error { return x.locksAll(true) }},
	{"a split Put under an exclusive lock", func(x *trial) error { return x.locksAll(false) }},
	{"one location while who serves changes", (*trial).flips},
	{"locks of two ranks of a host", (*trial).twoLocks},
	{"an exclusive lock and all locks", (*trial).exclusiveAndAll},
	{"fences of groups that have nothing in common", (*trial).fencesApart},
	{"windows of communicators that overlap", (*trial).overlap},
	{"fences with assertions of each rank", (*trial).mixedAssertions},
	{"PSCW without checks", (*trial).startsUnchecked},
	{"no memory, and units of each rank", (*trial).oddMemory},
	{"load and store under the own lock", (*trial).ownLock},
}

// run does all of them.
func (x *trial) run(p *mpi.Proc, seed uint64) error {
	x.c, x.me, x.n = p.World(), p.World().Rank(), p.World().Size()
	x.common = rand.New(rand.NewPCG(seed, 1<<40))
	if x.both == nil {
		x.both = func(f [2]func() error) error { return errors.Join(f[0](), f[1]()) }
	}
	x.layout = []string{"table", "overlapping"}[x.common.IntN(2)]
	for _, one := range trials {
		if x.only != "" && x.only != one.name {
			continue
		}
		err := one.do(x)
		if err == nil { // else the others wait for what this rank does not do: its end is theirs
			err = x.c.Barrier()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

// window makes a window, and fails if nobody serves it as it is to be.
func (x *trial) window(c *mpi.Comm, n int) (*mpi.Win, []int64, error) {
	w, memory, err := mpi.WinAllocate[int64](c, n, info("window_layout", x.layout))
	if err == nil && x.async != "" {
		err = wantAsync(w, x.async)
	}
	return w, memory, err
}

// wordsOf returns n of a value.
func wordsOf(v, n int) []int64 { return slices.Repeat([]int64{int64(v)}, n) }

// alike fails unless all words of b are.
func alike(what string, b []int64) error {
	for i, v := range b {
		if v != b[0] {
			return fmt.Errorf("%w: %s: element %d of %d is %d, the first one %d", errData, what, i, len(b), v, b[0])
		}
	}
	return nil
}

// loadsBehindLock: what was put and unlocked before a message was sent is there when the one who
// has got that loads it under a lock of its own.
func (x *trial) loadsBehindLock() error {
	const n = 1100 // long enough for a Write
	w, memory, err := x.window(x.c, n)
	right, left, word := (x.me+1)%x.n, (x.me+x.n-1)%x.n, []int64{0}
	for round := 1; round <= x.rounds && err == nil; round++ {
		v := wordsOf(round, []int{1, n - 1}[round%2])
		err = errors.Join(w.Lock(mpi.LockExclusive, right, 0), mpi.Put(w, v, right, 0), mpi.Put(w, v[:1], right, n-1), w.Unlock(right))
		if err == nil {
			_, err = mpi.Sendrecv(x.c, word, right, 1, word, left, 1)
		}
		err = errors.Join(err, w.Lock(mpi.LockShared, x.me, 0))
		if first, last := memory[0], memory[n-1]; err == nil && (first < int64(round) || first != last) {
			err = fmt.Errorf("%w: round %d: loaded %d and %d", errData, round, first, last)
		}
		err = errors.Join(err, w.Unlock(x.me))
	}
	return errors.Join(err, w.Free())
}

// getsBehindFlush: a Get behind the flush of a Put brings what that has put, whichever ghost does
// it.
func (x *trial) getsBehindFlush() error {
	const n = 1100 // long enough for a Read
	w, _, err := x.window(x.c, x.n*n)
	for round := 1; round <= x.rounds && err == nil; round++ {
		target := x.common.IntN(x.n)
		err = w.Lock(mpi.LockExclusive, target, 0)
		for i := range 3 {
			size := []int{1, n}[(round+i)%2]
			v, got := wordsOf(10*round+i, size), wordsOf(-1, size)
			err = errors.Join(err, mpi.Put(w, v, target, x.me*n), w.Flush(target), mpi.Get(w, got, target, x.me*n), w.Flush(target))
			if err == nil && !slices.Equal(got, v) {
				err = fmt.Errorf("%w: round %d: got %d and %d behind the flush of a Put of %d", errData, round, got[0], got[size-1], v[0])
			}
		}
		err = errors.Join(err, w.Unlock(target))
	}
	return errors.Join(err, w.Free())
}

// locksAll: what a rank writes under an exclusive lock is there as a whole, though several ghosts
// have it to do; of parts only the first and the last word are written, by a Put each.
func (x *trial) locksAll(parts bool) error {
	const n = 700
	sizeOf := func(rank int) int { // so that segments are divided within the memory of a rank
		if rank < 2 {
			return 3 * n
		}
		return n
	}
	w, memory, err := x.window(x.c, sizeOf(x.me))
	look := func(b []int64) []int64 {
		if parts {
			return []int64{b[0], b[len(b)-1]}
		}
		return b
	}
	for round := 1; round <= x.rounds && err == nil; round++ {
		target := x.common.IntN(x.n)
		v, got := wordsOf(1000*round+x.me, sizeOf(target)), wordsOf(-1, sizeOf(target))
		err = w.Lock(mpi.LockExclusive, target, x.checks)
		if parts {
			err = errors.Join(err, mpi.Put(w, v[:1], target, 0), mpi.Put(w, v[:1], target, len(v)-1))
		} else {
			err = errors.Join(err, mpi.Put(w, v, target, 0))
		}
		err = errors.Join(err, w.Unlock(target), w.Lock(mpi.LockExclusive, target, x.checks), mpi.Get(w, got, target, 0), w.Unlock(target))
		err = errors.Join(err, alike("Get", look(got)), w.Lock(mpi.LockExclusive, x.me, x.checks), alike("load", look(memory)), w.Unlock(x.me))
	}
	return errors.Join(err, w.Free())
}

// flips: all operate on one location, while ghosts and the rank serve it in turn. Accumulates have an
// order, though it changes between them.
func (x *trial) flips() error {
	const draws = 4
	w, memory, err := x.window(x.c, 2+x.n)
	drawn, last := make([]int64, x.n*x.rounds*draws), int64(-1)
	err = errors.Join(err, w.LockAll(0))
	for round := 0; round < x.rounds && err == nil; round++ {
		for i := range draws {
			got, is, v, word := int64(-1), int64(-1), wordsOf(round*draws+i, 1), []int64{-1}
			err = errors.Join(err, mpi.FetchAndOp(w, 0, &is, 0, 2+x.me, mpi.OpNoOp), mpi.FetchAndOp(w, 1, &got, 0, 0, mpi.OpSum),
				mpi.Accumulate(w, []int64{3}, 0, 1, mpi.OpSum), w.Flush(0), mpi.Put(w, v, 0, 2+x.me), w.Flush(0), mpi.Get(w, word, 0, 2+x.me), w.Flush(0))
			for range x.common.IntN(2) { // so that it is not always the turn of the same ghost
				err = errors.Join(err, mpi.Get(w, make([]int64, 1), 0, 1))
			}
			err = errors.Join(err, mpi.Accumulate(w, wordsOf(int(v[0])+1, 1), 0, 2+x.me, mpi.OpReplace))
			if err == nil && (got <= last || got >= int64(len(drawn)) || word[0] != v[0] || is != v[0]) {
				err = fmt.Errorf("%w: round %d: ticket %d after %d, and %d behind Accumulate and %d behind Put, want %d", errData, round, got, last, is, word[0], v[0])
			}
			if err != nil {
				return err
			}
			last = got
			drawn[got]++
		}
		hints, bad := mpi.NewInfo("async_config", []string{"on", "off", "auto", "auto-ghosts"}[(x.common.IntN(4)+x.me)%4], "symmetric", "true")
		err = errors.Join(err, bad, w.SetInfo(hints))
	}
	err = errors.Join(err, w.UnlockAll(), mpi.Allreduce(x.c, nil, drawn, mpi.Sum), alike("times that tickets were drawn", drawn))
	if x.me == 0 && err == nil && (drawn[0] != 1 || memory[1] != 3*int64(len(drawn))) {
		err = fmt.Errorf("%w: of %d additions there are %d, and a ticket was drawn %d times", errData, 3*len(drawn), memory[1], drawn[0])
	}
	return errors.Join(err, w.Free())
}

// twoLocks is lockTwo, and two who have an exclusive lock of one of two ranks each at the same
// time.
func (x *trial) twoLocks() error {
	w, memory, err := x.window(x.c, 2)
	if err == nil {
		err = lockTwo(x.c, w, memory)
	}
	if other := 1 - x.me; other >= 0 && err == nil {
		word := []int64{0}
		err = w.Lock(mpi.LockExclusive, 2*x.me, 0) // the ranks 0 and 2 are on one host
		if err == nil {
			_, err = mpi.Sendrecv(x.c, word, other, 1, word, other, 1)
		}
		err = errors.Join(err, mpi.Put(w, word, 2*x.me, 1), w.Unlock(2*x.me))
	}
	return errors.Join(err, w.Free())
}

// exclusiveAndAll: an exclusive lock keeps those out who have all of them, and the other way round.
func (x *trial) exclusiveAndAll() error {
	w, memory, err := x.window(x.c, 1)
	want, v := int64(0), []int64{0}
	for round := 0; round < x.rounds && err == nil; round++ {
		target := round % x.n
		if target == x.me {
			want += int64(3 + x.n - 1)
		}
		if x.me != round/x.n%x.n {
			err = errors.Join(w.LockAll(0), mpi.Accumulate(w, []int64{1}, target, 0, mpi.OpSum), w.UnlockAll())
			continue
		}
		err = w.Lock(mpi.LockExclusive, target, x.checks)
		for range 3 {
			err = errors.Join(err, mpi.Get(w, v, target, 0), w.Flush(target))
			v[0]++
			err = errors.Join(err, mpi.Put(w, v, target, 0), w.Flush(target))
		}
		err = errors.Join(err, w.Unlock(target))
	}
	if err = errors.Join(err, x.c.Barrier()); err == nil && memory[0] != want {
		err = fmt.Errorf("%w: counted to %d, want %d", errData, memory[0], want)
	}
	return errors.Join(err, w.Free())
}

// fencesApart: while one half of the ranks fences, the other one stays in an epoch.
func (x *trial) fencesApart() error {
	first := x.me < 2
	half, err := x.c.Split(map[bool]int{true: 0, false: 1}[first], x.me)
	if err != nil {
		return err
	}
	w, memory, err := x.window(half, 2*half.Size())
	epoch, word := 1, []int64{0}
	put := func() (err error) { // in turn to two places, for others may be one epoch ahead
		for to := range half.Size() {
			err = errors.Join(err, mpi.Put(w, wordsOf(epoch, 1), to, epoch%2*half.Size()+half.Rank()))
		}
		return err
	}
	fence := func() error {
		err := w.Fence(0)
		if got := memory[epoch%2*half.Size():][:half.Size()]; err == nil && !slices.Equal(got, wordsOf(epoch, half.Size())) {
			err = fmt.Errorf("%w: behind fence %d there are %v", errData, epoch, got)
		}
		epoch++
		return errors.Join(err, put())
	}
	err = errors.Join(err, w.Fence(0), put())
	for turn := 0; turn < x.rounds && err == nil; turn++ {
		busy, leader := first == (turn%2 == 0), map[bool]int{true: 2, false: 0}[first]
		if busy {
			err = errors.Join(fence(), fence())
		}
		if half.Rank() == 0 && busy && err == nil {
			err = mpi.Send(x.c, word, leader, 1)
		} else if half.Rank() == 0 && err == nil {
			_, err = mpi.Recv(x.c, word, leader, 1)
		}
	}
	return errors.Join(err, w.Fence(mpi.ModeNoSucceed), w.Free(), half.Free())
}

// overlap makes windows of two communicators of each rank, which together are a circle.
func (x *trial) overlap() error {
	var pairs [2]*mpi.Comm
	var err error
	for i := range pairs {
		pair, bad := x.c.Split((x.me+i)%x.n/2, x.me)
		if err = errors.Join(err, bad); err != nil {
			return err
		}
		pairs[i] = pair
	}
	use := func(c *mpi.Comm, from int) func() error {
		return func() error {
			for round := 0; round < x.rounds; round++ {
				w, memory, err := x.window(c, 10+round)
				if err != nil {
					return err
				}
				err = w.LockAll(0)
				for to := range c.Size() {
					err = errors.Join(err, mpi.Accumulate(w, wordsOf(from+round, 1), to, 1, mpi.OpSum))
				}
				err = errors.Join(err, w.UnlockAll(), c.Barrier())
				if want := int64(c.Size() * (from + round)); err == nil && memory[1] != want {
					err = fmt.Errorf("%w: round %d: added to %d, want %d", errData, round, memory[1], want)
				}
				if err := errors.Join(err, w.Free()); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if err = x.both([2]func() error{use(pairs[0], 100), use(pairs[1], 1000)}); err != nil {
		return err
	}
	a, _, err1 := x.window(pairs[0], 3) // and such that are there at the same time
	b, _, err2 := x.window(pairs[1], 3)
	if err = errors.Join(err1, err2); err != nil {
		return err
	}
	last := pairs[0].Size() - 1
	return errors.Join(a.LockAll(0), b.LockAll(0), mpi.Put(a, wordsOf(1, 1), last, 0), mpi.Put(b, wordsOf(1, 1), 0, 0),
		b.UnlockAll(), a.UnlockAll(), b.Free(), a.Free(), pairs[0].Free(), pairs[1].Free())
}

// mixedAssertions: each rank says of itself in fences whether it has stored, and whether anybody
// will put something there.
func (x *trial) mixedAssertions() error {
	w, memory, err := x.window(x.c, x.n+1)
	quiet := func(rank, round int) bool { return (rank+round)%3 == 0 }
	right := (x.me + 1) % x.n
	for round := 1; round <= x.rounds && err == nil; round++ {
		begin, end := mpi.ModeNoPrecede*mpi.WinMode(round%2), mpi.ModeNoStore|mpi.ModeNoPut|mpi.ModeNoSucceed*mpi.WinMode(round%2)
		if quiet(x.me, round) {
			begin |= mpi.ModeNoStore | mpi.ModeNoPut
		} else {
			memory[x.n] = int64(round)
		}
		got := wordsOf(-1, 1)
		err = errors.Join(w.Fence(begin), mpi.Get(w, got, right, x.n))
		for to := range x.n {
			if !quiet(to, round) {
				err = errors.Join(err, mpi.Put(w, wordsOf(round, 1), to, x.me))
			}
		}
		err = errors.Join(err, w.Fence(end))
		is := round
		for ; is > 0 && quiet(x.me, is); is-- {
		}
		theirs := round
		for ; theirs > 0 && quiet(right, theirs); theirs-- {
		}
		if err == nil && (!slices.Equal(memory[:x.n], wordsOf(is, x.n)) || got[0] != int64(theirs)) {
			err = fmt.Errorf("%w: round %d: there are %v, and the next rank has stored %v", errData, round, memory, got)
		}
	}
	return errors.Join(err, w.Fence(mpi.ModeNoSucceed), w.Free())
}

// startsUnchecked: with MPI_MODE_NOCHECK no target tells that it has posted, but Wait waits for all
// that have started. What is said meanwhile is not for a receive of any tag.
func (x *trial) startsUnchecked() error {
	w, memory, err := x.window(x.c, 3)
	if err != nil {
		return err
	}
	left, right := (x.me+x.n-1)%x.n, (x.me+1)%x.n
	origins, err1 := w.Group().Incl(left, x.me)
	targets, err2 := w.Group().Incl(right, x.me)
	nobody, err3 := w.Group().Incl()
	err = errors.Join(err1, err2, err3)
	for round := 1; round <= x.rounds && err == nil; round++ {
		got, tag := wordsOf(-1, 1), wordsOf(0, 1)
		wild, bad := mpi.Irecv(x.c, tag, mpi.AnySource, mpi.AnyTag)
		err = errors.Join(bad, w.Post(nobody, 0), w.Start(nobody, mpi.ModeNoCheck), w.Complete(), w.Wait())
		memory[2] = int64(100*round + x.me)
		err = errors.Join(err, w.Post(origins, mpi.ModeNoCheck))
		err = errors.Join(err, x.c.Barrier(), w.Start(targets, mpi.ModeNoCheck), mpi.Put(w, wordsOf(round, 1), right, 0),
			mpi.Accumulate(w, wordsOf(1, 1), right, 1, mpi.OpSum), mpi.Get(w, got, right, 2), w.Complete())
		for done := round%2 == 0; !done && err == nil; {
			done, err = w.Test()
		}
		if round%2 == 0 {
			err = errors.Join(err, w.Wait())
		}
		if err == nil && (memory[0] != int64(round) || memory[1] != int64(round) || got[0] != int64(100*round+right)) {
			err = fmt.Errorf("%w: round %d: there are %v behind Wait, and a Get has brought %v", errData, round, memory, got)
		}
		if err = errors.Join(err, mpi.Send(x.c, wordsOf(round, 1), right, 7)); err == nil {
			_, err = wild.Wait()
		}
		if err == nil && tag[0] != int64(round) {
			err = fmt.Errorf("%w: round %d: a receive of any tag has got %v", errData, round, tag)
		}
		// and an epoch that nobody writes in
		err = errors.Join(err, w.Post(origins, mpi.ModeNoPut|mpi.ModeNoStore), w.Start(targets, 0), mpi.Get(w, got, right, 0), w.Complete(), w.Wait())
		if err == nil && got[0] != int64(round) {
			err = fmt.Errorf("%w: round %d: a Get has brought %v", errData, round, got)
		}
	}
	return errors.Join(err, w.Free())
}

// oddMemory: some ranks have no memory, and each has a unit of its own, which those make a long one.
func (x *trial) oddMemory() error {
	unitOf := func(rank int) int { return rank + 1 + (1-rank%2)<<40 }
	units := 100 * (x.me % 2)
	w, memory, err := x.c.WinAllocate(units*unitOf(x.me), unitOf(x.me), info("window_layout", x.layout))
	if err != nil {
		return err
	}
	err = w.Fence(mpi.ModeNoPrecede)
	one := []byte{byte(x.me + 1)}
	for to := range x.n {
		if w.Unit(to) != unitOf(to) {
			err = errors.Join(err, fmt.Errorf("rank %d has a unit of %d bytes, not %d", to, unitOf(to), w.Unit(to)))
		}
		if to%2 == 0 {
			err = errors.Join(err, wantClass(mpi.Put(w, one, to, 0), mpi.ErrRMARange), mpi.Put(w, one[:0], to, 0))
			continue
		}
		err = errors.Join(err, mpi.Put(w, one, to, 50+x.me), mpi.Accumulate(w, []byte{1}, to, 99, mpi.OpSum), wantClass(mpi.Put(w, one, to, 100), mpi.ErrRMARange))
	}
	err = errors.Join(err, w.Fence(0))
	for from := 0; from < x.n && units > 0 && err == nil; from++ {
		if memory[(50+from)*unitOf(x.me)] != byte(from+1) || memory[99*unitOf(x.me)] != byte(x.n) {
			err = fmt.Errorf("%w: rank %d has put %d, and %d were added", errData, from, memory[(50+from)*unitOf(x.me)], memory[99*unitOf(x.me)])
		}
	}
	got := []byte{0}
	if x.n > 1 {
		err = errors.Join(err, mpi.Get(w, got, 1, 50+x.me), w.Fence(mpi.ModeNoSucceed))
	}
	if err == nil && got[0] != one[0] {
		err = fmt.Errorf("%w: a Get of unit 2 has brought %d", errData, got[0])
	}
	return errors.Join(err, w.Free())
}

// ownLock: under the exclusive lock of itself a rank loads and stores, and others read and write
// what it has.
func (x *trial) ownLock() error {
	w, memory, err := x.window(x.c, 2)
	for round := 0; round < x.rounds && err == nil; round++ {
		target := (x.me + round%2) % x.n
		if err = w.Lock(mpi.LockExclusive, target, x.checks); target == x.me {
			memory[0]++
			memory[1]--
		} else {
			v := wordsOf(0, 2)
			err = errors.Join(err, mpi.Get(w, v, target, 0), w.Flush(target))
			v[0], v[1] = v[0]+1, v[1]-1
			err = errors.Join(err, mpi.Put(w, v, target, 0))
		}
		err = errors.Join(err, w.Unlock(target))
	}
	err = errors.Join(err, x.c.Barrier(), w.Lock(mpi.LockShared, x.me, 0))
	if want := int64(x.rounds); err == nil && (memory[0] != want || memory[1] != -want) {
		err = fmt.Errorf("%w: counted to %v, want %d", errData, memory, want)
	}
	return errors.Join(err, w.Unlock(x.me), w.Free())
}

// simulated runs the list in a simulation whose network is as bad as the seed says.
func (x trial) simulated(seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 13))
	w := badWorld(seed, rnd, 3+rnd.IntN(3))
	w.mpi.Transport, w.mpi.PromoteMessages = mpi.Transport(seed%4), 20
	w.mpi.Ghosts.Binding = mpi.GhostBinding(rnd.IntN(5))
	if w.ghosts > 0 {
		w.mpi.Async, w.mpi.AsyncInterval = mpi.Async(rnd.IntN(4)), 50*time.Microsecond
		x.async = w.mpi.Async.String()
	}
	w.launch(func(_ *sim.Task, p *mpi.Proc) error {
		mine := x
		return mine.run(p, seed)
	})
	if err := w.Run(); err != nil {
		return fmt.Errorf("%v, binding %v, async %v, %d ghosts: %w", w.mpi.Transport, w.mpi.Ghosts.Binding, x.async, w.ghosts, err)
	}
	return nil
}

// Where exclusive locks are none, as in the published system until the first operation of a ghost,
// it shows that several do it.
func TestWin_acceptedFindsOut(t *testing.T) {
	oneGoroutine(t)
	for name, binding := range map[string]mpi.GhostBinding{"a split Put under an exclusive lock": mpi.GhostBySegment, "two ghosts under an exclusive lock": mpi.GhostByTurn} {
		found := 0
		for seed := range uint64(8) {
			w := newHostedWorld(sim.Config{Seed: seed, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.05, Reorder: 0.1}}}, 4, 2, 2)
			w.mpi.Ghosts.Binding = binding
			w.launch(func(_ *sim.Task, p *mpi.Proc) error {
				return (&trial{rounds: 8, checks: mpi.ModeNoCheck, only: name}).run(p, seed)
			})
			if err := w.Run(); errors.Is(err, errData) {
				found++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if found < 6 {
			t.Errorf("%s: %d of 8 were found out", name, found)
		}
	}
}

// Over networks that lose, double, reorder and spoil frames, and for a while carry none.
func TestWin_accepted(t *testing.T) {
	for seed := range seeds(t, 60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if err := (trial{rounds: 8}).simulated(uint64(seed)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

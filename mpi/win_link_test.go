package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// linkedWorld is badWorld with connections beside datagrams from the first long message on, which
// break, or fall silent for a while, soon or later.
func linkedWorld(seed uint64, rnd *rand.Rand, ranks int) *simWorld {
	w := badWorld(seed, rnd, ranks)
	w.mpi = mpi.Config{
		Transport: mpi.Hybrid, PromoteMessages: 1, EagerMax: 1000,
		Receives: []int{0, 4, 20}[rnd.IntN(3)], Sends: []int{0, 1, 3}[rnd.IntN(3)],
	}
	w.tcp.SendBuffer, w.tcp.RecvBuffer = 10_000+rnd.IntN(100_000), 10_000+rnd.IntN(100_000)
	w.tcp.Gap = mono.Duration(rnd.IntN(3)) * 10 * mono.Microsecond // so that datagrams overtake
	for conn := range 4 {
		if rnd.IntN(4) == 0 {
			continue
		}
		w.tcp.Faults = append(w.tcp.Faults, sim.StreamFault{
			Conn: conn, Offset: rnd.Int64N(400_000), Heal: 3 * mono.Millisecond,
			Kind: sim.StreamReset + sim.StreamFaultKind(rnd.IntN(5)),
		})
	}
	return w
}

// TestWin_randomOverBreakingConnections is random traffic of which much goes over such connections.
func TestWin_randomOverBreakingConnections(t *testing.T) {
	for seed := range seeds(t, 60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 21))
			x := winTraffic{seed: uint64(seed), rounds: 6, ops: 12, block: 6000, long: true}
			x.simulate(t, linkedWorld(uint64(seed), rnd, 2+seed%3), rnd)
		})
	}
}

// TestWin_epochsOverBreakingConnections: what a Put has written over such a connection is there when
// its epoch has ended, whichever kind that is, and what another rank writes behind it stays.
func TestWin_epochsOverBreakingConnections(t *testing.T) {
	const n, rounds = 3000, 8
	for _, epoch := range []struct {
		name string
		do   func(r *linkedRank, round int) error
	}{{"fence", (*linkedRank).fence}, {"pscw", (*linkedRank).pscw}, {"flush", (*linkedRank).flush}, {"lock", (*linkedRank).lock}} {
		linked := uint64(0)
		for seed := range seeds(t, 25) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 22))
			w := linkedWorld(uint64(seed), rnd, 2+seed%3)
			w.launch(func(_ *sim.Task, p *mpi.Proc) error {
				c := p.World()
				win, memory, err := mpi.WinAllocate[int64](c, n, nil)
				if err != nil {
					return err
				}
				r := &linkedRank{c: c, w: win, memory: memory, buf: make([]int64, n), n: c.Size(), me: c.Rank()}
				for round := range rounds {
					if err := epoch.do(r, round); err != nil {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				err = c.Barrier()
				if epoch.name == "lock" && r.me == 0 {
					err = errors.Join(err, win.Lock(mpi.LockExclusive, 0, 0), r.is(int64(rounds*r.n)), win.Unlock(0))
				}
				linked += mpi.Linked(p)
				return errors.Join(err, win.Free())
			})
			if err := w.Run(); err != nil {
				t.Fatalf("%s, seed %d: %+v, %d ghosts: %v", epoch.name, seed, w.mpi, w.ghosts, err)
			}
		}
		if linked < 20 {
			t.Errorf("%s: only %d Puts and Gets have gone over connections", epoch.name, linked)
		}
	}
}

// linkedRank is a rank of that test.
type linkedRank struct {
	c           *mpi.Comm
	w           *mpi.Win
	memory, buf []int64
	n, me       int
}

// put writes a value to all of the next rank's memory.
func (r *linkedRank) put(v int) error {
	for i := range r.buf {
		r.buf[i] = int64(v)
	}
	return mpi.Put(r.w, r.buf, (r.me+1)%r.n, 0)
}

// is fails unless the memory here has a value everywhere.
func (r *linkedRank) is(v int64) error {
	if i := slices.IndexFunc(r.memory, func(x int64) bool { return x != v }); i >= 0 {
		return fmt.Errorf("rank %d: %w: element %d is %d, want %d", r.me, errData, i, r.memory[i], v)
	}
	return nil
}

func (r *linkedRank) fence(round int) error {
	return errors.Join(r.w.Fence(0), r.put(round), r.w.Fence(0), r.is(int64(round)))
}

func (r *linkedRank) pscw(round int) error {
	origin, err1 := r.w.Group().Incl((r.me + r.n - 1) % r.n)
	target, err2 := r.w.Group().Incl((r.me + 1) % r.n)
	return errors.Join(err1, err2, r.w.Post(origin, 0), r.w.Start(target, 0), r.put(round), r.w.Complete(), r.w.Wait(), r.is(int64(round)))
}

// flush tells the next rank with a message that its memory is written.
func (r *linkedRank) flush(round int) error {
	next, word := (r.me+1)%r.n, []int64{0}
	err := errors.Join(r.c.Barrier(), r.w.LockAll(0), r.put(round), r.w.Flush(next))
	_, got := mpi.Sendrecv(r.c, word, next, 0, word, (r.me+r.n-1)%r.n, 0)
	return errors.Join(err, got, r.w.Sync(), r.is(int64(round)), r.w.UnlockAll())
}

// lock adds one to all of rank 0's memory: what is lost shows.
func (r *linkedRank) lock(int) error {
	err := errors.Join(r.w.Lock(mpi.LockExclusive, 0, 0), mpi.Get(r.w, r.buf, 0, 0), r.w.Flush(0))
	for i := range r.buf {
		r.buf[i]++
	}
	return errors.Join(err, mpi.Put(r.w, r.buf, 0, 0), r.w.Unlock(0))
}

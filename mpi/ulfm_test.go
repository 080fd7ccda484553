package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs"
)

// mortals is a simulated job whose ranks may be killed at any time, in the middle
// of whatever they do.
type mortals struct {
	*simWorld
	killed []mono.Time // by rank; Never
	stops  map[int]stop
	tells  bool // the launcher tells the others
	deaths []int
}

// stop is when a process stands still, and goes on.
type stop struct{ from, until mono.Time }

func newMortals(c sim.Config, n int) *mortals { return mortalsOf(newSimWorld(c, n)) }

func mortalsOf(w *simWorld) *mortals {
	m, n := &mortals{simWorld: w}, len(w.nodes)
	m.dgram = dgram.Config{PeerLost: 300 * mono.Millisecond}
	m.killed = slices.Repeat([]mono.Time{mono.Never}, n)
	return m
}

// errKilled is what unwinds a rank that is killed.
var errKilled = errors.New("killed")

// mortal is the clock and the parker of a rank that is to be killed.
type mortal struct {
	*sim.Task
	m    *mortals
	rank int
}

func (m mortal) Now() mono.Time {
	now := m.Task.Now()
	if s, ok := m.m.stops[m.rank]; ok && now >= s.from && now < s.until {
		m.Task.Sleep(s.until.Sub(now))
		now = m.Task.Now()
	}
	if now >= m.m.killed[m.rank] {
		panic(errKilled)
	}
	return now
}

func (m mortal) Park(until mono.Time, idle mono.Duration) bool {
	until = min(until, m.m.killed[m.rank])
	if s, ok := m.m.stops[m.rank]; ok && m.Task.Now() < s.from {
		until = min(until, s.from)
	}
	slept := m.Task.Park(until, idle)
	m.Now()
	return slept
}

// witness is a job whose launcher tells of deaths.
type witness struct {
	boot.Job
	m *mortals
}

func (w witness) Deaths(known int) []int { return w.m.deaths[known:] }
func (w witness) Ghosts() int            { return w.m.ghosts }
func (w witness) Lost() <-chan struct{}  { return w.m.over }

// play runs body on all ranks, followed by Finalize.
func (m *mortals) play(t *testing.T, body func(*sim.Task, *mpi.Proc) error) {
	t.Helper()
	m.Launch(m.nodes, func(task *sim.Task, r *sim.Rank) (err error) {
		defer func() {
			m.deaths = append(m.deaths, r.Rank())
			if v := recover(); v == errKilled {
				if err = nil; r.Rank() < m.job(r).Size() {
					m.ended()
				}
			} else if v != nil {
				panic(v)
			}
		}()
		life := mortal{task, m, r.Rank()}
		ctx, err := m.openWith(task, r, life, life)
		if err != nil {
			return err
		}
		p, err := m.join(r, ctx)
		switch {
		case err != nil:
			return err
		case r.Rank() >= m.job(r).Size():
			if err = mpi.ServeAsGhost(p); m.stops != nil {
				return wantClass(err, mpi.ErrGhostFailed)
			}
			return err
		}
		if err := body(task, p); err != nil {
			return err
		}
		return m.leave(task, p)
	})
	if err := m.Run(); err != nil {
		t.Fatal(err)
	}
}

func (m *mortals) join(r *sim.Rank, ctx *verbs.Context) (*mpi.Proc, error) {
	if m.tells {
		return mpi.New(witness{m.job(r), m}, ctx, m.mpi)
	}
	return mpi.New(m.job(r), ctx, m.mpi)
}

// minutes is what ranks have agreed upon, to be compared by all: also those who
// die later.
type minutes map[string]string

func (m minutes) note(what, is string) error {
	if was, ok := m[what]; ok && was != is {
		return fmt.Errorf("%s: %s here, %s elsewhere", what, is, was)
	}
	m[what] = is
	return nil
}

// survive computes in rounds on a communicator that loses ranks: who gets an error
// makes all meet; they decide together whether the round counts, and go on with
// those that are left. It returns the last communicator.
func survive(doing func(string), c *mpi.Comm, rounds int, work func(c *mpi.Comm, round int) error, m minutes) (*mpi.Comm, error) {
	name, votes := "0", 0
	for round := 0; round < rounds; {
		doing(fmt.Sprintf("round %d of communicator %s", round, name))
		err := work(c, round)
		ok := uint64(1)
		if err != nil {
			if class := mpi.ClassOf(err); class != mpi.ErrProcFailed && class != mpi.ErrRevoked {
				return nil, fmt.Errorf("round %d: %w", round, err)
			}
			ok = 0
			if err := c.Revoke(); err != nil {
				return nil, err
			}
		}
		doing(fmt.Sprintf("Agree after round %d of communicator %s", round, name))
		all, err := c.Agree(ok)
		if class := mpi.ClassOf(err); err != nil && class != mpi.ErrProcFailed {
			return nil, err
		}
		votes++
		if err := m.note(fmt.Sprintf("vote %d of %s", votes, name), fmt.Sprint(round, all, mpi.ClassOf(err))); err != nil {
			return nil, err
		}
		if all == 1 && err == nil {
			round++
			continue
		}
		doing("Shrink of communicator " + name)
		next, err := c.Shrink()
		if err != nil {
			return nil, err
		}
		who := ""
		for r := range next.Size() {
			w, err := next.Group().TranslateRank(r, c.Proc().World().Group())
			if err != nil {
				return nil, err
			}
			who += fmt.Sprint(" ", w)
		}
		name += "'"
		if err := m.note("ranks of "+name, who); err != nil {
			return nil, err
		}
		doing("Free")
		if c != c.Proc().World() {
			if err := c.Free(); err != nil {
				return nil, err
			}
		}
		c, votes = next, 0
	}
	return c, nil
}

// sums is a round of collectives and messages with a result that is known.
func sums(c *mpi.Comm, round int) error {
	v := make([]int64, []int{1, 50, 5000, 40_000}[round%4])
	for i := range v {
		v[i] = int64(c.Rank() + i)
	}
	if err := mpi.Allreduce(c, nil, v, mpi.Sum); err != nil {
		return err
	}
	n := int64(c.Size())
	for i := range v {
		if want := n*(n-1)/2 + n*int64(i); v[i] != want {
			return fmt.Errorf("round %d: element %d of the sum is %d, want %d", round, i, v[i], want)
		}
	}
	right, left := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	in := make([]int64, len(v))
	if _, err := mpi.Sendrecv(c, v, right, round, in, left, round); err != nil {
		return err
	}
	if !slices.Equal(in, v) {
		return fmt.Errorf("round %d: %w", round, errData)
	}
	r, err := mpi.Ialltoall(c, nil, make([]int32, 100*c.Size()))
	if err != nil {
		return err
	}
	_, err = r.Wait()
	return err
}

// TestULFM_ranksAreKilledAtAnyTime kills ranks at random moments of collectives,
// messages, Revoke, Agree, Shrink, Free and Finalize, on a network that falls apart
// for a while and heals. Those that are left finish their work, agree about
// everything with all others, and hang nowhere.
func TestULFM_ranksAreKilledAtAnyTime(t *testing.T) {
	for seed := range seeds(t, 60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 7))
			n := 2 + rnd.IntN(7)
			m := newMortals(sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: sim.Faults{Loss: float64(seed%3) / 50}}}, n)
			// Without a launcher, keep-alives of reliable datagrams notice a loss.
			m.tells = seed%2 == 0 || m.mpi.Transport == mpi.RC || m.mpi.Transport == mpi.UD
			if seed%4 >= 2 {
				m.mpi.Rendezvous = mpi.RendezvousRead
			}
			span := []mono.Duration{2, 10, 400, 900}[rnd.IntN(4)] * mono.Millisecond
			for i := range n - 1 { // one lives
				if rnd.IntN(3) == 0 {
					m.killed[i] = mono.Time(rnd.Int64N(int64(span)))
				}
			}
			for range rnd.IntN(3) {
				cut := mono.Time(rnd.Int64N(int64(span)))
				m.At(cut, func() {
					m.Partition(cut.Add(mono.Duration(rnd.Int64N(int64(100*mono.Millisecond)))), m.nodes[rnd.IntN(n)])
				})
			}
			said := minutes{}
			m.play(t, func(task *sim.Task, p *mpi.Proc) error {
				c, err := survive(task.Doing, p.World(), 8, sums, said)
				if err == nil {
					err = said.note("at the end", fmt.Sprint(c.Size()))
				}
				return err
			})
		})
	}
}

// TestULFM_agreeIsRightAfterLosses: the flag is the AND of what the living give, and
// the error goes once all have acknowledged the loss.
func TestULFM_agreeIsRightAfterLosses(t *testing.T) {
	m := newMortals(sim.Config{}, 5)
	m.tells = true
	m.killed[2] = mono.Time(5 * mono.Millisecond)
	m.play(t, func(task *sim.Task, p *mpi.Proc) error {
		c := p.World()
		flag, err := c.Agree(^uint64(1 << c.Rank()))
		if err != nil || flag != ^uint64(0b11111) {
			return fmt.Errorf("first: %x, %v", flag, err)
		}
		if _, err := mpi.Recv(c, make([]byte, 1), 2, 0); mpi.ClassOf(err) != mpi.ErrProcFailed {
			return fmt.Errorf("receive from the dead: %v", err)
		}
		if c.Rank() != 3 {
			c.FailureAck()
			if g := c.FailureGetAcked(); g.Size() != 1 {
				return fmt.Errorf("%d ranks are acknowledged", g.Size())
			}
		}
		flag, err = c.Agree(^uint64(1 << c.Rank()))
		if mpi.ClassOf(err) != mpi.ErrProcFailed || flag != ^uint64(0b11011) {
			return fmt.Errorf("second: %x, %v", flag, err)
		}
		if got := c.AckFailed(1); got != 1 || c.GetFailed().Size() != 1 {
			return fmt.Errorf("%d of %d acknowledged", got, c.GetFailed().Size())
		}
		if flag, err = c.Agree(7); err != nil || flag != 7 {
			return fmt.Errorf("third: %x, %v", flag, err)
		}
		return nil
	})
}

// TestULFM_anySource: a receive from any source is interrupted by a loss, and goes
// on when that is acknowledged.
func TestULFM_anySource(t *testing.T) {
	m := newMortals(sim.Config{}, 3)
	m.tells = true
	m.killed[2] = mono.Time(5 * mono.Millisecond)
	m.play(t, func(task *sim.Task, p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 1 {
			if _, err := mpi.Recv(c, make([]byte, 1), 0, 1); err != nil {
				return err
			}
			return mpi.Send(c, []byte{42}, 0, 2)
		}
		b := make([]byte, 1)
		r, err := mpi.Irecv(c, b, mpi.AnySource, 2)
		if err != nil {
			return err
		}
		if c.Rank() == 2 {
			_, err := r.Wait() // until it is killed
			return err
		}
		_, err = r.Wait()
		_, _, testErr := r.Test()
		_, _, _, anyErr := mpi.Testany([]mpi.Request{r})
		_, blocking := mpi.Recv(c, b, mpi.AnySource, 7)
		_, probe := c.Probe(mpi.AnySource, 7)
		for i, err := range []error{
			wantClass(err, mpi.ErrProcFailedPending), wantClass(testErr, mpi.ErrProcFailedPending), wantClass(anyErr, mpi.ErrProcFailedPending),
			wantClass(blocking, mpi.ErrProcFailed), wantClass(probe, mpi.ErrProcFailed),
		} {
			if err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		c.FailureAck()
		if err := mpi.Send(c, b, 1, 1); err != nil {
			return err
		}
		st, err := r.Wait()
		if err := wantStatus(st, err, 1, 2, 1); err != nil || b[0] != 42 {
			return fmt.Errorf("%v, data %v", err, b)
		}
		return nil
	})
}

// TestULFM_sendrecvAnySource: a Sendrecv that a loss makes doubtful leaves no receive
// behind that would take the next message.
func TestULFM_sendrecvAnySource(t *testing.T) {
	m := newMortals(sim.Config{}, 3)
	m.tells = true
	m.killed[2] = mono.Time(5 * mono.Millisecond)
	m.play(t, func(task *sim.Task, p *mpi.Proc) error {
		c := p.World()
		b := make([]byte, 1)
		switch c.Rank() {
		case 1:
			if _, err := mpi.Recv(c, b, 0, 1); err != nil {
				return err
			}
			if _, err := mpi.Recv(c, b, 0, 3); err != nil {
				return err
			}
			return mpi.Send(c, []byte{42}, 0, 2)
		case 2:
			_, err := mpi.Recv(c, b, 0, 1) // until it is killed
			return err
		}
		_, err := mpi.Sendrecv(c, b, 1, 1, b[:0], mpi.AnySource, 2)
		if err := wantClass(err, mpi.ErrProcFailed); err != nil {
			return err
		}
		c.FailureAck()
		if err := mpi.Send(c, b, 1, 3); err != nil {
			return err
		}
		if _, err := mpi.Recv(c, b, 1, 2); err != nil || b[0] != 42 {
			return fmt.Errorf("data %v: %w", b, err)
		}
		return nil
	})
}

// TestULFM_othersGoOn: communicators without the lost rank do not notice.
func TestULFM_othersGoOn(t *testing.T) {
	m := newMortals(sim.Config{}, 4)
	m.tells = true
	m.killed[3] = mono.Time(20 * mono.Millisecond)
	m.play(t, func(task *sim.Task, p *mpi.Proc) error {
		c := p.World()
		half, err := c.Split(c.Rank()/2, 0)
		if err != nil {
			return err
		}
		for round := 0; task.Now() < mono.Time(200*mono.Millisecond); round++ {
			if err := sums(half, round); err != nil {
				if c.Rank() == 2 {
					return wantClass(err, mpi.ErrProcFailed)
				}
				return fmt.Errorf("round %d: %w", round, err)
			}
			if stop, err := half.Agree(1); c.Rank() < 2 && (err != nil || stop != 1) {
				return err
			}
		}
		if err := wantClass(c.Barrier(), mpi.ErrProcFailed); err != nil {
			return err
		}
		// A part without the lost rank can do without the others.
		g, err := c.Group().Incl(0, 1)
		if err != nil {
			return err
		}
		part, err := c.CreateGroup(g, 5)
		if err != nil {
			return err
		}
		return sums(part, 1)
	})
}

// TestULFM_revoke frees ranks that wait for what never comes.
func TestULFM_revoke(t *testing.T) {
	for _, rendezvous := range []mpi.Rendezvous{mpi.RendezvousWrite, mpi.RendezvousRead} {
		t.Run(rendezvous.String(), func(t *testing.T) { revokeWhileAllWait(t, rendezvous) })
	}
}

func revokeWhileAllWait(t *testing.T, rendezvous mpi.Rendezvous) {
	w := newSimWorld(sim.Config{}, 9)
	w.mpi.Rendezvous = rendezvous
	w.launch(func(_ *sim.Task, p *mpi.Proc) error {
		c, err := p.World().Dup()
		if err != nil {
			return err
		}
		switch c.Rank() {
		case 4:
			err = c.Revoke()
			if err == nil && !c.IsRevoked() {
				err = errors.New("it is not revoked")
			}
		case 5:
			err = wantClass(mpi.Send(c, make([]byte, 1<<20), 4, 9), mpi.ErrRevoked)
		case 6, 7:
			err = wantClass(c.Barrier(), mpi.ErrRevoked)
		default:
			_, err = mpi.Recv(c, make([]byte, 1), mpi.AnySource, 3)
			err = wantClass(err, mpi.ErrRevoked)
		}
		if err != nil {
			return err
		}
		n, err := c.Shrink()
		if err != nil || n.Size() != 9 {
			return fmt.Errorf("Shrink without losses: %v", err)
		}
		if err := sums(n, 3); err != nil {
			return err
		}
		return errors.Join(sums(p.World(), 2), wantClass(mpi.Send(c, []byte{1}, 0, 0), mpi.ErrRevoked), n.Free(), c.Free())
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

// TestULFM_intercommunicator shrinks one, and goes on with it.
func TestULFM_intercommunicator(t *testing.T) {
	m := newMortals(sim.Config{}, 6)
	m.tells = true
	m.killed[1] = mono.Time(20 * mono.Millisecond)
	m.play(t, func(task *sim.Task, p *mpi.Proc) error {
		w := p.World()
		half, err := w.Split(w.Rank()/3, 0)
		if err != nil {
			return err
		}
		inter, err := half.CreateInter(0, w, 3*(1-w.Rank()/3), 1)
		if err != nil {
			return err
		}
		for err == nil {
			err = inter.Barrier()
		}
		if err := wantClass(err, mpi.ErrProcFailed); err != nil {
			return err
		}
		if err := inter.Revoke(); err != nil {
			return err
		}
		n, err := inter.Shrink()
		if err != nil {
			return err
		}
		if n.Size()+n.RemoteSize() != 5 {
			return fmt.Errorf("%d and %d ranks are left", n.Size(), n.RemoteSize())
		}
		v := []int64{1}
		if err := mpi.Allreduce(n, []int64{1}, v, mpi.Sum); err != nil || v[0] != int64(n.RemoteSize()) {
			return fmt.Errorf("sum %v, %w", v, err)
		}
		merged, err := n.Merge(w.Rank() < 3)
		if err != nil {
			return err
		}
		return sums(merged, 2)
	})
}

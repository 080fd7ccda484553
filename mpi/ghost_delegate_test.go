package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// A message that lies in a window, and whose sender computes, is there before the sender calls
// MPI again if there are ghosts, and behind that if not, or if the window is none of theirs.
func TestDelegate_whileSenderComputes(t *testing.T) {
	oneGoroutine(t)
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD, mpi.RC, mpi.Hybrid} {
		for _, rendezvous := range []mpi.Rendezvous{mpi.RendezvousWrite, mpi.RendezvousRead} {
			for _, way := range []struct {
				ghosts, hosts int
				mode, layout  string
				then          string // who serves behind a call of SetInfo
				want          bool
			}{
				{1, 2, "on", "table", "on", true}, {1, 1, "on", "table", "on", true}, {2, 2, "on", "overlapping", "on", true}, {1, 2, "auto", "table", "on", true},
				{1, 2, "off", "table", "off", false}, {1, 2, "on", "table", "off", false}, {0, 2, "on", "table", "on", false},
			} {
				what := fmt.Sprintf("%v, %v, %+v", transport, rendezvous, way)
				var called, ended mono.Time
				playHosted(t, what, way.hosts, way.ghosts, transport, rendezvous, func(task *sim.Task, p *mpi.Proc) error {
					c := p.World()
					how, bad := mpi.NewInfo("async_config", way.mode, "window_layout", way.layout)
					win, memory, err := mpi.WinAllocate[byte](c, 3<<20, how)
					if err = errors.Join(bad, err); err != nil {
						return err
					}
					then, bad := mpi.NewInfo("async_config", way.then, "symmetric", "true")
					if err = errors.Join(bad, win.SetInfo(then), win.Fence(0)); err != nil {
						return err
					}
					data := memory[1<<20-3:][:1<<20]
					if c.Rank() == 1 {
						if _, err = mpi.Recv(c, data, 0, 5); err == nil {
							ended, err = task.Now(), checkPattern(data, 3)
						}
						return errors.Join(err, win.Free())
					}
					pattern(data, 3)
					r, err := mpi.Isend(c, data, 1, 5)
					if err != nil {
						return err
					}
					task.Sleep(300 * mono.Millisecond)
					called = task.Now()
					_, err = r.Wait()
					clear(data)
					if n := p.Stats().Delegated; (n == 1) != way.want {
						err = errors.Join(err, fmt.Errorf("%d messages were delegated", n))
					}
					return errors.Join(err, win.Free())
				})
				if (ended < called) != way.want {
					t.Errorf("%s: the message was there at %v, and its sender called MPI at %v", what, ended, called)
				}
			}
		}
	}
}

// playHosted plays a program on 2 ranks of so many hosts, with so many ghosts on each.
func playHosted(t *testing.T, what string, hosts, ghosts int, transport mpi.Transport, rendezvous mpi.Rendezvous, program func(*sim.Task, *mpi.Proc) error) {
	t.Helper()
	w := newHostedWorld(sim.Config{Seed: 1, Limit: 20 * mono.Second}, 2, hosts, ghosts)
	w.mpi.Transport, w.mpi.Rendezvous = transport, rendezvous
	w.launch(program)
	if err := w.Run(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// posting is messages between random ranks, from windows and into them, while some compute.
type posting struct {
	rounds, most int  // messages of a round at most
	allocates    bool // memory of Alloc, in place of windows
	kill         func(round int)
}

const (
	postingSlot  = 400_000
	postingSlots = 6
)

type posted struct {
	from, to, n, room, seed int
	sync                    bool
}

func (x posting) run(task *sim.Task, p *mpi.Proc, seed uint64) error {
	c := p.World()
	common, own := rand.New(rand.NewPCG(seed, 7)), rand.New(rand.NewPCG(seed, uint64(c.Rank())))
	for round := range x.rounds {
		memory, free, err := memoryOf(p, x.allocates, 2*postingSlots*postingSlot)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		x.kill(round)
		for range 3 {
			if err = x.exchange(task, c, memory, common, own); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		if err = free(); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// memoryOf returns memory that ghosts send from: of Alloc, or of a window. All ranks of World call it.
func memoryOf(p *mpi.Proc, allocates bool, n int) (memory []byte, free func() error, err error) {
	if allocates {
		memory, err = mpi.Alloc[byte](p, n)
		return memory, func() error { return mpi.Free(p, memory) }, err
	}
	w, memory, err := mpi.WinAllocate[byte](p.World(), n, nil)
	return memory, w.Free, err
}

// exchange posts sends and receives in some order, and waits for them in some order.
func (x posting) exchange(task *sim.Task, c *mpi.Comm, memory []byte, common, own *rand.Rand) error {
	all := make([]posted, 1+common.IntN(x.most))
	for i := range all {
		m := &all[i]
		m.from, m.to = common.IntN(c.Size()), common.IntN(c.Size()-1)
		if m.to >= m.from {
			m.to++
		}
		m.n, m.seed, m.sync = common.IntN(postingSlot), common.IntN(1000), common.IntN(4) == 0
		if common.IntN(5) == 0 {
			m.n /= 1000
		}
		if m.room = m.n; common.IntN(5) == 0 {
			m.room = common.IntN(m.n + 1)
		}
	}
	var requests []mpi.Request
	var checks []func() error
	sent, received := 0, postingSlots
	for i, m := range all {
		tag := i % 2
		switch {
		case m.from == c.Rank():
			data := memory[sent*postingSlot:][:m.n]
			if sent++; own.IntN(2) == 0 {
				data = make([]byte, m.n)
			}
			pattern(data, m.seed)
			start := mpi.Isend[byte]
			if m.sync {
				start = mpi.Issend[byte]
			}
			r, err := start(c, data, m.to, tag)
			if err != nil {
				return err
			}
			requests = append(requests, r)
			checks = append(checks, func() error { pattern(data, 1); return nil }) // whoever sends it still sends garbage
		case m.to == c.Rank():
			data := make([]byte, m.room)
			if own.IntN(3) > 0 {
				data = memory[received*postingSlot:][:m.room]
				received++
			}
			r, err := mpi.Irecv(c, data, m.from, tag)
			if err != nil {
				return err
			}
			if own.IntN(6) == 0 {
				if r, err = changeMind(c, r, data, m.from, tag); err != nil {
					return err
				}
			}
			requests = append(requests, r)
			whole := make([]byte, m.n)
			pattern(whole, m.seed)
			checks = append(checks, func() error {
				defer pattern(data, 2) // whoever writes there still writes over it
				for k := range data {
					if data[k] != whole[k] {
						return fmt.Errorf("%w: byte %d of %d of message %d from rank %d, %+v", errData, k, m.n, i, m.from, m)
					}
				}
				return nil
			})
		}
		if own.IntN(3) == 0 {
			task.Sleep(mono.Duration(own.IntN(int(2 * mono.Millisecond))))
		}
	}
	for _, i := range own.Perm(len(requests)) {
		if _, err := requests[i].Wait(); err != nil && mpi.ClassOf(err) != mpi.ErrTruncate {
			return err
		}
		if err := checks[i](); err != nil {
			return err
		}
	}
	return nil
}

// changeMind cancels a receive, and posts it again if that was in time. Else the request is null, and the
// message is there.
func changeMind(c *mpi.Comm, r mpi.Request, data []byte, source, tag int) (mpi.Request, error) {
	err := r.Cancel()
	st, bad := r.Wait()
	if st.Cancelled() && err == nil && bad == nil {
		pattern(data, 4)
		return mpi.Irecv(c, data, source, tag)
	}
	if mpi.ClassOf(bad) == mpi.ErrTruncate {
		bad = nil
	}
	return r, errors.Join(err, bad)
}

// Messages in windows, with losses, and ghosts that are lost at any time: each comes once, in its
// order, and no sender has its memory back before.
func TestDelegate_random(t *testing.T) {
	delegated, invited, met, fell := [2]uint64{}, [2]uint64{}, [2]uint64{}, 0 // in windows, and in memory of Alloc
	for seed := range seeds(t, 60) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 5))
		ranks, hosts, ghosts := 2+rnd.IntN(3), 1+rnd.IntN(2), 1+rnd.IntN(2)
		m := mortalsOf(newHostedWorld(sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.02, Reorder: 0.05, Dup: 0.02}}, Limit: 60 * mono.Second}, ranks, hosts, ghosts))
		m.mpi.Transport, m.mpi.Ghosts.Failure = mpi.Transport(seed%4), mpi.GhostFallback
		m.tells = m.mpi.Transport != mpi.RD || rnd.IntN(2) == 0
		at, dies := mono.Duration(rnd.IntN(int(30*mono.Millisecond))), rnd.IntN(3) > 0
		allocates := rnd.IntN(2) == 0
		if dies {
			fell++
		}
		m.play(t, func(task *sim.Task, p *mpi.Proc) error {
			x := posting{rounds: 3, most: postingSlots, allocates: allocates, kill: func(round int) {
				if round == 0 && p.World().Rank() == 0 && dies {
					m.killed[ranks] = task.Now().Add(at)
				}
			}}
			err := x.run(task, p, uint64(seed))
			where := 0
			if allocates {
				where = 1
			}
			delegated[where] += p.Stats().Delegated
			invited[where] += p.Stats().Invited
			met[where] += p.Stats().Met
			if err != nil {
				return fmt.Errorf("seed %d, %+v, %d ranks, %d hosts, allocates %v: %w", seed, m.mpi, ranks, hosts, allocates, err)
			}
			return nil
		})
	}
	if slices.Contains(delegated[:], 0) || slices.Contains(invited[:], 0) || slices.Contains(met[:], 0) {
		t.Error("no message was delegated, or written to a ghost, or by one to another, in windows or elsewhere")
	}
	t.Logf("%d messages were delegated, %d of them written to a ghost; %d were written to a ghost by a rank; a ghost was lost in %d jobs", delegated, met, invited, fell)
}

// recalling is a world of two hosts with a ghost each, on which a message is taken back: by Revoke or not, in memory
// of Alloc or a window, at some time.
func recalling(seed, stream uint64) (w *simWorld, revokes, allocates bool, sleeps [3]mono.Duration) {
	rnd := rand.New(rand.NewPCG(seed, stream))
	w = newHostedWorld(sim.Config{Seed: seed, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.02, Reorder: 0.05}}, Limit: 60 * mono.Second}, 2, 2, 1)
	w.mpi.Transport = mpi.Transport(seed % 4)
	revokes, allocates = rnd.IntN(2) == 0, rnd.IntN(2) == 0
	for i := range sleeps {
		sleeps[i] = mono.Duration(rnd.IntN(int(2*mono.Millisecond)) * rnd.IntN(2))
	}
	return w, revokes, allocates, sleeps
}

// A communicator is revoked, or a send is cancelled, while a ghost has the message, or sends it: the sender has its
// memory back when its request is done, and nothing of what it writes there then reaches a receiver.
func TestDelegate_recalled(t *testing.T) {
	const size = 300_000
	var came, gone int
	for seed := range seeds(t, 100) {
		w, revokes, allocates, sleeps := recalling(uint64(seed), 6)
		w.launch(func(task *sim.Task, p *mpi.Proc) error {
			memory, free, err := memoryOf(p, allocates, size)
			if err != nil {
				return err
			}
			c, err := p.World().Dup()
			if err = errors.Join(err, c.Barrier()); err != nil {
				return err
			}
			if c.Rank() == 1 {
				task.Sleep(sleeps[0])
				data := make([]byte, size)
				if !revokes {
					_, err = mpi.Recv(c, data, 0, 1)
					if bytes.Equal(data, make([]byte, size)) { // the second one
						gone++
						return errors.Join(err, free())
					}
					came++
					_, second := mpi.Recv(c, make([]byte, size), 0, 1)
					return errors.Join(err, checkPattern(data, 5), second, free())
				}
				r, err := mpi.Irecv(c, data, 0, 1)
				if err != nil {
					return err
				}
				task.Sleep(sleeps[1])
				if _, err = r.Wait(); err == nil {
					came++
					return errors.Join(checkPattern(data, 5), free())
				}
				gone++
				return errors.Join(wantClass(err, mpi.ErrRevoked), free())
			}
			pattern(memory, 5)
			r, err := mpi.Isend(c, memory, 1, 1)
			if err != nil {
				return err
			}
			task.Sleep(sleeps[2])
			if revokes {
				bad := c.Revoke()
				if _, err = r.Wait(); err != nil {
					err = wantClass(err, mpi.ErrRevoked)
				}
				clear(memory)
				return errors.Join(bad, err, free())
			}
			if err = r.Cancel(); err != nil {
				return err
			}
			_, err = r.Wait()
			clear(memory)
			return errors.Join(err, mpi.Send(c, memory, 1, 1), free())
		})
		if err := w.Run(); err != nil {
			t.Fatalf("seed %d, revokes %v, allocates %v: %v", seed, revokes, allocates, err)
		}
	}
	if came == 0 || gone == 0 {
		t.Errorf("%d messages came and %d did not: nothing was tested", came, gone)
	}
}

// Nonblocking collectives are made of messages: where a rank that computes only sends, or only receives, others do not
// wait for it; where it has to do with what comes, they do.
func TestDelegate_collectives(t *testing.T) {
	const ranks, n = 3, 1 << 20
	type start func(c *mpi.Comm, in, all []byte) (mpi.Request, error)
	for name, x := range map[string]struct {
		computes int
		start    start
		want     bool
	}{
		"Ibcast, the root": {0, func(c *mpi.Comm, in, _ []byte) (mpi.Request, error) { return mpi.Ibcast(c, in, 0) }, true},
		"Ibcast, another":  {1, func(c *mpi.Comm, in, _ []byte) (mpi.Request, error) { return mpi.Ibcast(c, in, 0) }, true},
		"Igather":          {1, func(c *mpi.Comm, in, all []byte) (mpi.Request, error) { return mpi.Igather(c, in, all, 0) }, true},
		"Ialltoall": {1, func(c *mpi.Comm, _, all []byte) (mpi.Request, error) {
			return mpi.Ialltoall(c, all, make([]byte, ranks*n))
		}, false},
	} {
		w := newHostedWorld(sim.Config{Seed: 1, Limit: 20 * mono.Second}, ranks, ranks, 1)
		var called mono.Time
		ended := make([]mono.Time, ranks)
		w.launch(func(task *sim.Task, p *mpi.Proc) error {
			c := p.World()
			win, memory, err := mpi.WinAllocate[byte](c, (ranks+1)*n, nil)
			if err = errors.Join(err, win.Fence(0)); err != nil {
				return err
			}
			r, err := x.start(c, memory[:n], memory[n:])
			if err != nil {
				return err
			}
			if c.Rank() == x.computes {
				task.Sleep(300 * mono.Millisecond)
				called = task.Now()
			}
			_, err = r.Wait()
			ended[c.Rank()] = task.Now()
			return errors.Join(err, win.Free())
		})
		if err := w.Run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		early := true
		for rank, at := range ended {
			early = early && (rank == x.computes || at < called)
		}
		if early != x.want {
			t.Errorf("%s: others are done at %v, and the rank that computes calls MPI at %v", name, ended, called)
		}
	}
}

package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs/device"
)

// overTransports are the ways that connect, and when Hybrid does.
var overTransports = []struct {
	name string
	mpi  mpi.Config
}{
	{"rc", mpi.Config{Transport: mpi.RC}},
	{"rcFewBuffers", mpi.Config{Transport: mpi.RC, Receives: 4, Sends: 2, EagerMax: 2000}},
	{"hybridSoon", mpi.Config{Transport: mpi.Hybrid, PromoteMessages: 1}},
	{"hybrid", mpi.Config{Transport: mpi.Hybrid, PromoteMessages: 20}},
	{"hybridBytes", mpi.Config{Transport: mpi.Hybrid, PromoteBytes: 1 << 20, Receives: 4, Sends: 2}},
	{"hybridOne", mpi.Config{Transport: mpi.Hybrid, PromoteMessages: 5, Connections: 1}},
}

// runWith runs body on n ranks over the kernel's sockets on loopback.
func runWith(t *testing.T, n int, c mpi.Config, body func(*mpi.Proc) error) {
	t.Helper()
	c.NoShared = true
	spec := device.Spec{Fabric: "udp", RC: true, Arena: 20 << 20}
	if c.Transport == mpi.RC {
		spec.Fabric = "tcp"
	}
	spec.Poller.Ranks, spec.Poller.Goroutines = n, true
	jobs := boot.Local(n)
	errs := make([]error, n)
	var group sync.WaitGroup
	for rank, job := range jobs {
		group.Go(func() {
			s := spec
			s.Key = job.Key()
			ctx, err := device.Open(s)
			if err == nil {
				var p *mpi.Proc
				if p, err = mpi.New(job, ctx, c); err == nil {
					if err = body(p); err == nil {
						err = p.Finalize()
					}
				}
			}
			if errs[rank] = err; err != nil {
				job.Abort(1, err.Error())
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestRandom_messagesOverConnections is the random traffic over kernel TCP, and
// over datagrams that become TCP in the middle of it.
func TestRandom_messagesOverConnections(t *testing.T) {
	for _, c := range overTransports {
		t.Run(c.name, func(t *testing.T) {
			for seed := range seeds(t, 5) {
				runWith(t, 2+seed%3, c.mpi, func(p *mpi.Proc) error {
					return exercise{seed: uint64(seed), messages: 4000, maxLen: 1 << 20, tags: 1 + seed%4, wild: float64(seed%5) / 8}.run(p)
				})
			}
		})
	}
}

// TestRandom_messagesOverSimulatedConnections is the same in virtual time:
// streams are cut into segments anywhere, and datagrams are lost, doubled,
// reordered and spoilt.
func TestRandom_messagesOverSimulatedConnections(t *testing.T) {
	bad := sim.Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.05, Corrupt: 0.005}
	for _, c := range overTransports {
		for seed := range seeds(t, 5) {
			t.Run(fmt.Sprint(c.name, seed), func(t *testing.T) {
				t.Parallel()
				n := 2 + seed%4
				w := newSimWorld(sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: bad}}, n)
				w.mpi = c.mpi
				rng := rand.New(rand.NewPCG(uint64(seed), 9))
				if seed%2 == 1 {
					w.tcp.Segment = func(_ int, _ int64, _ int) int { return 1 + rng.IntN(3000) }
				}
				if seed%3 == 2 {
					w.tcp.SendBuffer, w.tcp.RecvBuffer = 3001, 2003
				}
				w.launch(func(_ *sim.Task, p *mpi.Proc) error {
					return exercise{seed: uint64(seed), messages: 2500, maxLen: 300_000, tags: 1 + seed%4, wild: float64(seed%5) / 8}.run(p)
				})
				if err := w.Run(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// Connections beside datagrams are a gain and no need: where nobody can listen, RD has none and
// goes on. Who has asked for them is told.
func TestRD_withoutListener(t *testing.T) {
	for _, transport := range []mpi.Transport{mpi.RD, mpi.Hybrid} {
		w := newSimWorld(sim.Config{Seed: 2}, 2)
		w.mpi.Transport, w.deaf, w.mpi.PromoteMessages = transport, true, 1
		w.launch(func(_ *sim.Task, p *mpi.Proc) error {
			return exercise{seed: 2, messages: 100, maxLen: 300_000, tags: 3}.run(p)
		})
		if err := w.Run(); (err == nil) != (transport == mpi.RD) || err != nil && !errors.Is(err, errDeaf) {
			t.Errorf("%v: %v", transport, err)
		}
	}
}

// The end that has accepted a connection may use it at once, though the other one has nothing to
// send: its messages do not wait for a timer.
func TestHybrid_acceptingEndSpeaksAtOnce(t *testing.T) {
	w := newSimWorld(sim.Config{Seed: 1}, 2)
	w.mpi = mpi.Config{Transport: mpi.Hybrid, PromoteMessages: 1, NoCalibrate: true}
	var longest mono.Duration
	w.launch(func(task *sim.Task, p *mpi.Proc) error {
		b := make([]byte, 200_000)
		if p.World().Rank() == 0 { // it connects
			if err := mpi.Send(p.World(), b, 1, 0); err != nil {
				return err
			}
		} else if _, err := mpi.Recv(p.World(), b, 0, 0); err != nil {
			return err
		}
		for range 40 {
			if p.World().Rank() == 0 {
				if _, err := mpi.Recv(p.World(), b, 1, 0); err != nil {
					return err
				}
				continue
			}
			began := task.Now()
			if err := mpi.Send(p.World(), b, 0, 0); err != nil {
				return err
			}
			longest = max(longest, task.Now().Sub(began)) // on virtual time
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	if longest >= 50*mono.Millisecond {
		t.Errorf("a message took %v", longest)
	}
	if n := w.opened[1].Stats().TxBytes; n < 30*200_000 {
		t.Errorf("%d bytes went over the connection", n)
	}
}

// TestRC_sameSeedSameTrace runs one seed twice, byte for byte.
func TestRC_sameSeedSameTrace(t *testing.T) {
	for _, c := range overTransports {
		var hashes [2]uint64
		for i := range hashes {
			w := newSimWorld(sim.Config{Seed: 3, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.05}}}, 3)
			w.mpi = c.mpi
			w.launch(func(_ *sim.Task, p *mpi.Proc) error {
				return exercise{seed: 3, messages: 300, maxLen: 200_000, tags: 3, wild: 0.3}.run(p)
			})
			if err := w.Run(); err != nil {
				t.Fatal(err)
			}
			hashes[i] = w.TraceHash()
		}
		if hashes[0] != hashes[1] {
			t.Errorf("%s: two runs of one seed differ: %x, %x", c.name, hashes[0], hashes[1])
		}
	}
}

// TestRC_lostRank lets one rank of three die, before and after it has
// connections: what goes to it fails with its loss, and the others go on.
func TestRC_lostRank(t *testing.T) {
	for _, c := range overTransports {
		for _, talked := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, talked), func(t *testing.T) {
				w := newSimWorld(sim.Config{}, 3)
				w.mpi, w.dgram = c.mpi, dgram.Config{PeerLost: 300 * mono.Millisecond}
				w.Launch(w.nodes, func(task *sim.Task, r *sim.Rank) error {
					ctx, err := w.open(task, r)
					if err != nil {
						return err
					}
					p, err := mpi.New(r, ctx, w.mpi)
					if err != nil {
						return err
					}
					if err := besidesTheDead(p, talked); err != nil || p.World().Rank() == 2 {
						return errors.Join(err, ctx.Close()) // as the kernel does for a process that dies
					}
					return p.Finalize()
				})
				if err := w.Run(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// besidesTheDead is a rank of three, of which rank 2 dies.
func besidesTheDead(p *mpi.Proc, talked bool) error {
	c := p.World()
	buf, in := make([]byte, 100_000), make([]byte, 100_000)
	if talked {
		for range 60 {
			if err := c.Barrier(); err != nil {
				return err
			}
		}
	}
	if c.Rank() == 2 {
		return nil
	}
	var err error
	for range 100_000 { // what the network has taken has succeeded
		if err = mpi.Send(c, buf, 2, 0); err != nil {
			break
		}
	}
	if err := wantLost(err, 2); err != nil {
		return fmt.Errorf("Send: %w", err)
	}
	_, err = mpi.Recv(c, in, 2, 0)
	if err := wantLost(err, 2); err != nil {
		return fmt.Errorf("Recv: %w", err)
	}
	for i := range 10 {
		pattern(buf, i)
		if _, err := mpi.Sendrecv(c, buf, 1-c.Rank(), i, in, 1-c.Rank(), i); err != nil {
			return fmt.Errorf("the others: %w", err)
		}
		if err := checkPattern(in, i); err != nil {
			return err
		}
	}
	return nil
}

// connectedPair makes two ranks over kernel TCP that have met, both for one
// goroutine.
func connectedPair(t testing.TB, c mpi.Config) [2]*mpi.Proc {
	t.Helper()
	c.NoShared = true
	spec := device.Spec{Fabric: "udp", RC: true, Arena: 20 << 20}
	if c.Transport == mpi.RC {
		spec.Fabric = "tcp"
	}
	var procs [2]*mpi.Proc
	var errs [2]error
	var group sync.WaitGroup
	for i, job := range boot.Local(2) {
		group.Go(func() {
			s := spec
			s.Key, s.Poller.NoSpin = job.Key(), false
			ctx, err := device.Open(s)
			if err == nil {
				procs[i], err = mpi.New(job, ctx, c)
			}
			errs[i] = err
		})
	}
	group.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	bufs := exchangeBuffers(100)
	for range 50 { // they connect
		exchange(procs, bufs)
	}
	return procs
}

// TestAllocs_connections counts what messages allocate over kernel TCP, and after
// a promotion.
func TestAllocs_connections(t *testing.T) {
	for _, c := range []mpi.Config{
		{Transport: mpi.RC, Receives: 24, Sends: 8},
		{Transport: mpi.Hybrid, PromoteMessages: 10, Receives: 24, Sends: 8},
	} {
		procs := connectedPair(t, c)
		for _, n := range []int{0, 8, 240, 241, 16384, 20_000, 1 << 20} {
			bufs := exchangeBuffers(n)
			for range 20 { // what is kept to be used again grows
				exchange(procs, bufs)
			}
			if got := testing.AllocsPerRun(50, func() { exchange(procs, bufs) }); got != 0 {
				t.Errorf("%v, %d bytes: %v allocations per exchange, want none", c.Transport, n, got)
			}
		}
	}
}

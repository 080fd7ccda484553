package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/mpi"
)

// Over unreliable datagrams MPI is what makes them reliable.

// simulateUD is simulate over unreliable datagrams.
func simulateUD(t *testing.T, c sim.Config, n int, body func(*mpi.Proc) error) *simWorld {
	t.Helper()
	w := newSimWorld(c, n)
	w.mpi.Transport = mpi.UD
	w.launch(func(_ *sim.Task, p *mpi.Proc) error { return body(p) })
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestUD_messagesOverBadNetwork(t *testing.T) {
	for seed := range seeds(t, 10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			bad := sim.Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.05, Corrupt: 0.005}
			if seed%3 == 2 {
				bad.Loss = 0.2
			}
			e := exercise{seed: uint64(seed), messages: 4000, maxLen: 2 << 20, tags: 1 + seed%6, wild: float64(seed%5) / 8}
			simulateUD(t, sim.Config{Seed: uint64(seed), MTU: []int{0, 1500, 4000}[seed%3], Up: sim.LinkConfig{Faults: bad}}, 2+seed%4, func(p *mpi.Proc) error {
				return e.run(p)
			})
		})
	}
}

func TestUD_collectivesOverBadNetwork(t *testing.T) {
	for _, ranks := range []int{2, 5, 8} {
		simulateUD(t, sim.Config{Seed: uint64(ranks), Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.02, Reorder: 0.05}}}, ranks, func(p *mpi.Proc) error {
			c := p.World()
			return errors.Join((oracle[int32]{c, 9, blocking}).all(), (oracle[float64]{c, 3000, nonblocking}).all(), inOrder(c, 40))
		})
	}
}

func TestUD_sameSeedSameTrace(t *testing.T) {
	var hashes [2]uint64
	for i := range hashes {
		w := simulateUD(t, sim.Config{Seed: 3, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.05}}}, 3, func(p *mpi.Proc) error {
			return exercise{seed: 3, messages: 300, maxLen: 200_000, tags: 3, wild: 0.3}.run(p)
		})
		hashes[i] = w.TraceHash()
	}
	if hashes[0] != hashes[1] {
		t.Errorf("two runs of one seed differ: %x, %x", hashes[0], hashes[1])
	}
}

// A network that is cut in two for a while costs that while and no message.
func TestUD_partitionHeals(t *testing.T) {
	for _, length := range []mono.Duration{50 * mono.Millisecond, mono.Second, 60 * mono.Second} {
		w := newSimWorld(sim.Config{Seed: 1}, 3)
		w.mpi.Transport = mpi.UD
		w.dgram = dgram.Config{PeerLost: 10 * 60 * mono.Second}
		w.At(mono.Time(2*mono.Millisecond), func() { w.Partition(w.Now().Add(length), w.nodes[0]) })
		w.launch(func(_ *sim.Task, p *mpi.Proc) error {
			return exercise{seed: 9, messages: 2000, maxLen: 500_000, tags: 3, wild: 0.2}.run(p)
		})
		if err := w.Run(); err != nil {
			t.Fatalf("a partition of %v: %v", length, err)
		}
		if took := mono.Duration(w.Now()); took < length || took > length+length/2+2*mono.Second {
			t.Errorf("a partition of %v: the end is at %v", length, took)
		}
	}
}

// A peer that has died becomes an error of everything with it, and of nothing
// else that is no collective.
func TestUD_lostPeer(t *testing.T) {
	w := newSimWorld(sim.Config{}, 3)
	w.mpi.Transport = mpi.UD
	w.dgram = dgram.Config{PeerLost: 300 * mono.Millisecond}
	w.Launch(w.nodes, func(task *sim.Task, r *sim.Rank) error {
		ctx, err := w.open(task, r)
		if err != nil {
			return err
		}
		p, err := mpi.New(r, ctx, w.mpi)
		if err != nil {
			return err
		}
		c, buf := p.World(), make([]byte, 100_000)
		switch c.Rank() {
		case 2:
			return nil // and never calls anything again
		case 0:
			_, recvErr := mpi.Sendrecv(c, buf, 2, 0, buf[:1], 2, 0)
			if err := wantLost(recvErr, 2); err != nil {
				return err
			}
			if err := mpi.Send(c, buf, 1, 1); err != nil {
				return err
			}
		case 1:
			if _, err := mpi.Recv(c, buf, 0, 1); err != nil {
				return err
			}
		}
		return p.Finalize()
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

func TestAllocs_UD(t *testing.T) {
	procs := pipePair(t, mpi.Config{Transport: mpi.UD, Receives: 24, Sends: 8})
	for _, n := range []int{0, 8, 240, 241, 4096, 16384} {
		buf := make([]byte, n)
		if n := testing.AllocsPerRun(200, func() { pingPong(procs, buf) }); n != 0 {
			t.Errorf("%d bytes: %v allocations per round trip, want none", len(buf), n)
		}
	}
	for _, n := range []int{8, 4096, 20_000, 1 << 20} {
		bufs := exchangeBuffers(n)
		if got := testing.AllocsPerRun(50, func() { exchange(procs, bufs) }); got != 0 {
			t.Errorf("%d bytes: %v allocations per exchange, want none", n, got)
		}
	}
}

func BenchmarkPipe_pingPong8UD(b *testing.B) {
	procs := pipePair(b, mpi.Config{Transport: mpi.UD, Receives: 24, Sends: 8})
	buf := make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		pingPong(procs, buf)
	}
}

func BenchmarkPipe_exchangeUD(b *testing.B) {
	for _, n := range []int{4 << 10, 16 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			procs := pipePair(b, mpi.Config{Transport: mpi.UD, Receives: 24, Sends: 8})
			bufs := exchangeBuffers(n)
			b.SetBytes(int64(2 * n))
			b.ReportAllocs()
			for b.Loop() {
				exchange(procs, bufs)
			}
		})
	}
}

// BenchmarkPipe_rate8UD sends windows of small messages one way, as
// BenchmarkPipe_rate8 does over RD.
func BenchmarkPipe_rate8UD(b *testing.B) {
	const window = 64
	procs := pipePair(b, mpi.Config{Transport: mpi.UD, EagerMax: 256, Receives: 24, Sends: 8})
	var requests [2][window]mpi.Request
	buf := make([]byte, 8)
	for b.Loop() {
		for i := range window {
			requests[1][i], _ = mpi.Irecv(procs[1].World(), buf, 0, 5)
		}
		for i := range window {
			requests[0][i], _ = mpi.Isend(procs[0].World(), buf, 1, 5)
		}
		for done := false; !done; { // the last one comes last
			procs[0].Engine().Step()
			_, done, _ = requests[1][window-1].Test()
		}
		for i := range procs {
			if err := mpi.Waitall(requests[i][:]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*window), "ns/msg")
}

package mpi_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/mpi"
)

// nearPair is pipePair for two ranks that know that they are on one host: their
// engines can be woken, so that they use shared memory.
func nearPair(t testing.TB, cfg mpi.Config) [2]*mpi.Proc {
	t.Helper()
	var parkers [2]progress.Parker
	for i := range parkers {
		p, err := progress.NewPoller(mono.Real{}, progress.PollerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		parkers[i] = p
	}
	procs := parkedPair(t, cfg, parkers)
	exchange(procs, exchangeBuffers(1)) // the channels are made
	return procs
}

func TestAllocs_channel(t *testing.T) {
	// Both ranks are of one goroutine, so that a blocking send must not wait for its
	// receive: the limit is not to follow what copies take.
	procs := nearPair(t, mpi.Config{Receives: 24, Sends: 8, EagerNear: 16 << 10})
	for _, n := range []int{0, 8, 240, 4096, 16384} {
		buf := make([]byte, n)
		if n := testing.AllocsPerRun(200, func() { pingPong(procs, buf) }); n != 0 {
			t.Errorf("%d bytes: %v allocations per round trip, want none", len(buf), n)
		}
	}
	procs = nearPair(t, mpi.Config{Receives: 24, Sends: 8})
	for _, n := range []int{8, 4096, 16384, 20_000, 3 << 20} {
		bufs := exchangeBuffers(n)
		if got := testing.AllocsPerRun(50, func() { exchange(procs, bufs) }); got != 0 {
			t.Errorf("%d bytes: %v allocations per exchange, want none", n, got)
		}
	}
}

// TestChannel_everyRankWithEveryOther has more neighbours than a rank looks at in
// each step, and messages of all lengths.
func TestChannel_everyRankWithEveryOther(t *testing.T) {
	for _, shared := range []string{"1", "0"} {
		t.Setenv(mpi.EnvShared, shared)
		err := mpi.Run(13, func(p *mpi.Proc) error {
			w := p.World()
			for _, n := range []int{1, 300, 20_000} {
				var requests []mpi.Request
				in := make([][]byte, w.Size())
				for peer := range w.Size() {
					in[peer] = make([]byte, n)
					r, err := mpi.Irecv(w, in[peer], peer, n)
					if err != nil {
						return err
					}
					s, err := mpi.Isend(w, bytes.Repeat([]byte{byte(w.Rank() + n)}, n), peer, n)
					if err != nil {
						return err
					}
					requests = append(requests, r, s)
				}
				if err := mpi.Waitall(requests); err != nil {
					return err
				}
				for peer, got := range in {
					if !bytes.Equal(got, bytes.Repeat([]byte{byte(peer + n)}, n)) {
						return fmt.Errorf("%d bytes from %d are not what it sent", n, peer)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s=%s: %v", mpi.EnvShared, shared, err)
		}
	}
}

func TestRun_sharedIsOneOrZero(t *testing.T) {
	t.Setenv(mpi.EnvShared, "perhaps")
	if err := mpi.Run(1, func(*mpi.Proc) error { return nil }); err == nil {
		t.Errorf("%s=perhaps is accepted", mpi.EnvShared)
	}
}

// BenchmarkChannel_pingPong is a round trip between two ranks in one thread: what
// our own code takes, without the way from one core to another. For that see the
// benchmark of the same name in internal/carrier/shm.
func BenchmarkChannel_pingPong(b *testing.B) {
	for _, n := range []int{8, 1024, 16384} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			procs := nearPair(b, mpi.Config{Receives: 24, Sends: 8, EagerNear: 16 << 10})
			buf := make([]byte, n)
			for b.Loop() {
				pingPong(procs, buf)
			}
		})
	}
}

// windowSize is how many messages a window of short ones has.
const windowSize = 64

// window sends a window of short messages from the first rank to the second.
func window(procs [2]*mpi.Proc, requests *[2][windowSize]mpi.Request, buf []byte) {
	for i := range windowSize {
		requests[1][i], _ = mpi.Irecv(procs[1].World(), buf, 0, 5)
	}
	for i := range windowSize {
		requests[0][i], _ = mpi.Isend(procs[0].World(), buf, 1, 5)
	}
	for i := range procs {
		if err := mpi.Waitall(requests[i][:]); err != nil {
			panic(err)
		}
	}
}

func TestAllocs_channelWindow(t *testing.T) {
	procs := nearPair(t, mpi.Config{Receives: 24, Sends: 8})
	var requests [2][windowSize]mpi.Request
	buf := make([]byte, 8)
	if n := testing.AllocsPerRun(50, func() { window(procs, &requests, buf) }); n != 0 {
		t.Errorf("%v allocations per window, want none", n)
	}
}

// BenchmarkChannel_rate8 is windows of short messages, as BenchmarkChannel_pingPong has them.
func BenchmarkChannel_rate8(b *testing.B) {
	procs := nearPair(b, mpi.Config{Receives: 24, Sends: 8})
	var requests [2][windowSize]mpi.Request
	buf := make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		window(procs, &requests, buf)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*windowSize), "ns/msg")
}

package mpi_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/conform"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs"
)

// yield is a parker for two ranks in one thread, or on few cores.
type yield struct{}

func (yield) Park(mono.Time, mono.Duration) bool {
	runtime.Gosched()
	return false
}

// pipePair makes two ranks that are joined by a cable in memory. A message
// that one of them sends eagerly is there when the other one looks, so that
// both may be used by one goroutine, and nothing but our own code takes time.
func pipePair(t testing.TB, cfg mpi.Config) [2]*mpi.Proc {
	t.Helper()
	return parkedPair(t, cfg, [2]progress.Parker{yield{}, yield{}})
}

// parkedPair is pipePair with parkers of the caller's.
func parkedPair(t testing.TB, cfg mpi.Config, parkers [2]progress.Parker) [2]*mpi.Proc {
	t.Helper()
	a, b, err := conform.NewPipe(conform.PipeConfig{Frames: 4096, Chunks: []int{4096}})
	if err != nil {
		t.Fatal(err)
	}
	hops := inet.Fixed{}
	locals := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:18700"), netip.MustParseAddrPort("10.0.0.2:18700")}
	macs := [2]inet.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	for i, local := range locals {
		hops[local.Addr()] = inet.Hop{MAC: macs[i], Source: locals[1-i].Addr(), MTU: 9000}
	}
	var procs [2]*mpi.Proc
	var errs [2]error
	var group sync.WaitGroup
	jobs := boot.Local(2)
	for i, port := range []*conform.Pipe{a, b} {
		ep, err := inet.New(inet.Config{Port: port, Resolver: hops, Local: locals[i], MAC: macs[i]})
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := verbs.New(verbs.Config{Datagram: ep, Engine: progress.New(mono.Real{}, parkers[i]), Key: 1, Epoch: uint32(i + 1)})
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() { procs[i], errs[i] = mpi.New(jobs[i], ctx, cfg) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 50 { // the ranks meet
		for _, p := range procs {
			p.Engine().Step()
		}
	}
	return procs
}

// pingPong sends a message there and back. It reports errors by panic: it is
// measured.
func pingPong(procs [2]*mpi.Proc, buf []byte) {
	for i := range procs {
		if err := mpi.Send(procs[i].World(), buf, 1-i, 5); err != nil {
			panic(err)
		}
		if _, err := mpi.Recv(procs[1-i].World(), buf, i, 5); err != nil {
			panic(err)
		}
	}
}

// exchange moves one message each way with both receives posted before.
func exchange(procs [2]*mpi.Proc, bufs *[2][2][]byte) {
	var requests [2][2]mpi.Request
	for i := range procs {
		var err error
		if requests[i][0], err = mpi.Irecv(procs[i].World(), bufs[i][0], mpi.AnySource, 5); err != nil {
			panic(err)
		}
	}
	for i := range procs {
		var err error
		if requests[i][1], err = mpi.Isend(procs[i].World(), bufs[i][1], 1-i, 5); err != nil {
			panic(err)
		}
	}
	for left := 4; left > 0; {
		for i := range requests {
			procs[i].Engine().Step() // the other one may wait for our acknowledgement
			for k := range requests[i] {
				r := &requests[i][k]
				if r.IsNull() {
					continue
				}
				_, done, err := r.Test()
				if err != nil {
					panic(err)
				}
				if done {
					left--
				}
			}
		}
	}
}

func exchangeBuffers(n int) *[2][2][]byte {
	return &[2][2][]byte{{make([]byte, n), make([]byte, n)}, {make([]byte, n), make([]byte, n)}}
}

func TestAllocs_pingPong(t *testing.T) {
	procs := pipePair(t, mpi.Config{Receives: 24, Sends: 8})
	for _, n := range []int{0, 8, 240, 241, 4096, 16384} {
		buf := make([]byte, n)
		if n := testing.AllocsPerRun(200, func() { pingPong(procs, buf) }); n != 0 {
			t.Errorf("%d bytes: %v allocations per round trip, want none", len(buf), n)
		}
	}
}

func TestAllocs_exchange(t *testing.T) {
	procs := pipePair(t, mpi.Config{Receives: 24, Sends: 8})
	for _, n := range []int{8, 4096, 20_000, 1 << 20} {
		bufs := exchangeBuffers(n)
		if got := testing.AllocsPerRun(50, func() { exchange(procs, bufs) }); got != 0 {
			t.Errorf("%d bytes: %v allocations per exchange, want none", n, got)
		}
	}
}

func TestAllocs_unexpected(t *testing.T) {
	procs := pipePair(t, mpi.Config{Receives: 24, Sends: 24})
	a, b := procs[0].World(), procs[1].World()
	buf := make([]byte, 3000)
	if n := testing.AllocsPerRun(200, func() {
		for i := range 20 {
			if err := mpi.Send(a, buf[:i*150], 1, i); err != nil {
				panic(err)
			}
			procs[1].Engine().Step()
		}
		for i := 19; i >= 0; i-- {
			if _, err := mpi.Recv(b, buf, mpi.AnySource, i); err != nil {
				panic(err)
			}
		}
		if err := mpi.Send(b, buf[:1], 0, 0); err != nil { // and the acknowledgements with it
			panic(err)
		}
		if _, err := mpi.Recv(a, buf, 1, 0); err != nil {
			panic(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for 20 messages that came before their receives, want none", n)
	}
}

func BenchmarkPipe_pingPong8(b *testing.B) {
	procs := pipePair(b, mpi.Config{Receives: 24, Sends: 8})
	buf := make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		pingPong(procs, buf)
	}
}

func BenchmarkPipe_rate8(b *testing.B) {
	const window = 64
	procs := pipePair(b, mpi.Config{EagerMax: 256, Receives: 2 * window}) // receives for all, and buffers: the sender does not step to ask for more
	var requests [2][window]mpi.Request
	buf := make([]byte, 8)
	pingPong(procs, buf) // the sender hears how many receives there are
	b.ReportAllocs()
	for b.Loop() {
		for i := range window {
			requests[1][i], _ = mpi.Irecv(procs[1].World(), buf, 0, 5)
		}
		for i := range window {
			requests[0][i], _ = mpi.Isend(procs[0].World(), buf, 1, 5)
		}
		procs[0].Engine().Step()
		if err := mpi.Waitall(requests[1][:]); err != nil {
			b.Fatal(err)
		}
		procs[0].Engine().Step()
		if err := mpi.Waitall(requests[0][:]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*window), "ns/msg")
}

// BenchmarkPipe_exchange shows where rendezvous begins to pay.
func BenchmarkPipe_exchange(b *testing.B) {
	for _, n := range []int{1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10} {
		for _, c := range []struct {
			protocol string
			eager    int
		}{{"eager", n}, {"rendezvous", -1}} {
			b.Run(fmt.Sprintf("%s/%d", c.protocol, n), func(b *testing.B) {
				procs := pipePair(b, mpi.Config{EagerMax: c.eager, Receives: 8, Sends: 2})
				bufs := exchangeBuffers(n)
				b.SetBytes(int64(2 * n))
				b.ReportAllocs()
				for b.Loop() {
					exchange(procs, bufs)
				}
			})
		}
	}
}

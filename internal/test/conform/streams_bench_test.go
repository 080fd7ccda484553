package conform

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// BenchmarkStreams measures byte streams over a veth pair, two goroutines that
// spin: half a round trip of 8 bytes, and sending 1 MiB. Profile it with
// -cpuprofile; xperf, with two processes, is what counts.
func BenchmarkStreams(b *testing.B) {
	for _, c := range []struct {
		name string
		open opener
	}{
		{"ktcp", kernelTCP},
		{"netstack-generic", userTCP(bpf.Generic, openOurs)},
		{"netstack-driver", userTCP(bpf.Driver, openOurs)},
	} {
		for _, mtu := range []int{1500, 9000} {
			b.Run(fmt.Sprintf("%s/mtu=%d/lat8", c.name, mtu), func(b *testing.B) {
				x, y := streamsOverVeth(b, mtu, c.open)
				defer y.serve(8, true)()
				msg := [][]byte{make([]byte, 8)}
				for b.Loop() {
					x.send(msg, 8)
					x.recv(8)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/half-trip")
			})
			b.Run(fmt.Sprintf("%s/mtu=%d/bw1M", c.name, mtu), func(b *testing.B) {
				x, y := streamsOverVeth(b, mtu, c.open)
				defer y.serve(1<<20, false)()
				msg := [][]byte{make([]byte, 1<<20)}
				b.SetBytes(1 << 20)
				for b.Loop() {
					x.send(msg, 1<<20)
				}
			})
		}
	}
}

// runner is one end of one stream, with a thread of its own.
type runner struct {
	fabric.Streams
	stream fabric.Stream
	ready  []fabric.StreamID
	buf    []byte
	stop   atomic.Bool
}

func streamsOverVeth(b *testing.B, mtu int, open opener) (x, y *runner) {
	b.Helper()
	tb := hosttest.New(b, testbed.Config{MTU: mtu})
	var ends [2]*runner
	for i, h := range tb.Hosts[:2] {
		ends[i] = &runner{buf: make([]byte, 1<<20)}
		if err := h.Do(func() error {
			s, under, err := open(h)
			if err != nil {
				return err
			}
			ends[i].Streams = s
			for _, u := range under {
				testenv.Closing(b, u)
			}
			testenv.Closing(b, s)
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	x, y = ends[0], ends[1]
	var l fabric.Listener
	if err := tb.Hosts[1].Do(func() (err error) {
		l, err = y.Listen(netip.AddrPortFrom(y.Addr(), 0), 1)
		return err
	}); err != nil {
		b.Fatal(err)
	}
	if err := tb.Hosts[0].Do(func() (err error) {
		x.stream, err = x.Dial(l.Local(), netip.AddrPort{})
		return err
	}); err != nil {
		b.Fatal(err)
	}
	for y.stream == nil || x.stream.State() != fabric.StreamOpen {
		x.step()
		y.step()
		if y.stream == nil {
			y.stream = l.Accept()
		}
		runtime.Gosched()
	}
	return x, y
}

func (r *runner) step() {
	r.ready = r.Poll(mono.Real{}.Now(), r.ready[:0])
	r.Flush()
}

func (r *runner) send(bufs [][]byte, n int) {
	n -= r.stream.Send(bufs)
	r.Flush()
	for n > 0 {
		r.step()
		if len(r.ready) > 0 {
			n -= r.stream.Send([][]byte{bufs[0][len(bufs[0])-n:]})
			r.Flush()
		}
	}
}

// recv receives n bytes, and reports false when it was told to stop before.
func (r *runner) recv(n int) bool {
	for !r.stop.Load() {
		got, _ := r.stream.Recv(r.buf[:min(n, len(r.buf))])
		if n -= got; n == 0 {
			return true
		}
		if got > 0 {
			continue
		}
		for r.step(); len(r.ready) == 0 && !r.stop.Load(); {
			r.step()
		}
	}
	return false
}

// serve receives messages and answers them, until the function that it
// returns is called.
func (r *runner) serve(size int, answer bool) (end func()) {
	done := make(chan struct{})
	msg := [][]byte{make([]byte, 8)}
	go func() {
		defer close(done)
		for r.recv(size) {
			if answer {
				r.send(msg, 8)
			}
		}
	}()
	return func() {
		r.stop.Store(true)
		<-done
	}
}

package xdp_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/xdp"
)

// Both ends of a benchmark spin, each on a processor of its own.
func pin(b *testing.B, cpu int) {
	runtime.LockOSThread() // until the goroutine ends
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		b.Error(err)
	}
}

func benchConfig(arena *mem.Arena) xdp.Config {
	c := config(arena)
	c.RxDepth, c.TxDepth, c.Frames, c.Track = 2048, 1024, 4096, false
	return c
}

// sink receives and counts frames until told to stop; it sends each back when
// echo is set.
func sink(b *testing.B, p fabric.Port, echo bool, frames *atomic.Int64, stop *atomic.Bool) {
	pin(b, 1)
	var bufs [fabric.MaxBufs * 4]fabric.Desc
	for !stop.Load() {
		n := p.Recv(bufs[:])
		if n == 0 {
			p.Flush()
			continue
		}
		if echo {
			swapStations(p.Arena().At(bufs[0].Addr, 12))
			p.Send(bufs[:n])
			p.Flush()
			continue
		}
		got := int64(0)
		for _, d := range bufs[:n] {
			p.Pool().Put(d.Addr)
			got += int64(1 - d.Flags&fabric.More)
		}
		frames.Add(got)
		p.Flush()
	}
}

// swapStations exchanges the source and destination of a frame.
func swapStations(b []byte) {
	for i := range 6 {
		b[i], b[6+i] = b[6+i], b[i]
	}
}

// startSink runs sink on a thread of its own until the benchmark ends.
func startSink(b *testing.B, p fabric.Port, echo bool) (frames *atomic.Int64) {
	frames = new(atomic.Int64)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		sink(b, p, echo, frames, &stop)
	}()
	b.Cleanup(func() {
		stop.Store(true)
		<-done
	})
	return frames
}

// BenchmarkPingPong is the latency of a frame of 64 bytes: half a round trip.
func BenchmarkPingPong(b *testing.B) {
	for _, d := range drivers {
		b.Run(d.name, func(b *testing.B) {
			a, z := newWire(b, d, benchConfig)
			startSink(b, z, true)
			onThread(func() { pingPong(b, a, z) })
		})
	}
}

// BenchmarkSwitch is the same across what can join more than two hosts.
func BenchmarkSwitch(b *testing.B) {
	for _, join := range []testbed.Config{
		{Hosts: 2, Switch: testbed.Cable}, {Hosts: 3, Switch: testbed.Bridge}, {Hosts: 3, Switch: testbed.XDP},
	} {
		b.Run(join.Switch.String(), func(b *testing.B) {
			a, z := wireOn(b, drivers[0], benchConfig, hosttest.New(b, join))
			startSink(b, z, true)
			onThread(func() { pingPong(b, a, z) })
		})
	}
}

// onThread runs fn on a goroutine that may pin its thread.
func onThread(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	<-done
}

func pingPong(b *testing.B, a, z end) {
	pin(b, 0)
	frame, _ := a.Pool().Get()
	putHeaders(a.Arena().At(frame, 64), a.host, z.host, portBase, 64)
	msg := fabric.Desc{Addr: frame, Len: 64}
	var bufs [fabric.MaxBufs]fabric.Desc
	var half []time.Duration
	bounce := func() {
		a.Send([]fabric.Desc{msg})
		a.Flush()
		for a.Recv(bufs[:]) == 0 {
		}
		swapStations(a.Arena().At(bufs[0].Addr, 12))
		msg = bufs[0]
	}
	for range 1000 {
		bounce()
	}
	half = make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		bounce()
		half = append(half, time.Since(start)/2)
	}
	b.StopTimer()
	slices.Sort(half)
	b.ReportMetric(float64(half[0]), "min-ns")
	b.ReportMetric(float64(half[len(half)/2]), "p50-ns")
	b.ReportMetric(float64(half[len(half)*99/100]), "p99-ns")
	b.ReportMetric(0, "ns/op")
}

// shape is how a frame to send is cut into buffers.
type shape struct {
	name string
	size int
	cut  func(size int) []int
}

var shapes = []shape{
	{"64", 64, func(n int) []int { return []int{n} }},
	{"1514/one", 1514, func(n int) []int { return []int{n} }},
	{"1514/header+payload", 1514, func(n int) []int { return []int{64, n - 64} }},
	{"3840/one", 3840, func(n int) []int { return []int{n} }},
	{"9014/3chunks", 9014, func(n int) []int { return []int{4096, 4096, n - 8192} }},
	{"9014/header+aligned", 9014, func(n int) []int { return []int{64, 4096, 4096, n - 8256} }},
	{"9014/header+unaligned", 9014, func(n int) []int { return []int{64, 1000, 4096, n - 5160} }},
	{"9014/header+unaligned+tail", 9014, func(n int) []int { return []int{64, 600, 4096, 4096, n - 8856} }},
}

// BenchmarkBandwidth sends as fast as the other side receives.
func BenchmarkBandwidth(b *testing.B) {
	for _, s := range shapes {
		for _, d := range drivers {
			if s.size > d.mtu+14 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%s", s.name, d.name), func(b *testing.B) {
				a, z := newWire(b, d, benchConfig)
				frames := startSink(b, z, false)
				onThread(func() { flood(b, a, z, s, frames) })
			})
		}
	}
}

// flood sends b.N frames from memory that is not the pool's, so that nothing
// but sending is measured.
func flood(b *testing.B, a, z end, s shape, frames *atomic.Int64) {
	pin(b, 0)
	const variants = 64
	var src [variants][]fabric.Desc
	for i := range src {
		for _, n := range s.cut(s.size) {
			base, err := a.Arena().Alloc(mem.FrameSize, mem.FrameSize)
			if err != nil {
				b.Error(err)
				return
			}
			src[i] = append(src[i], fabric.Desc{Addr: base + mem.FrameSize - mem.Addr(n), Len: uint32(n), Flags: fabric.More})
		}
		src[i][len(src[i])-1].Flags = 0
		putHeaders(a.Arena().At(src[i][0].Addr, 42), a.host, z.host, portBase, s.size)
	}
	b.SetBytes(int64(s.size))
	b.ResetTimer()
	const burst = 16
	for sent := 0; sent < b.N; {
		for sent-int(frames.Load()) > 256 {
			// The receiver must not lose any.
		}
		for range burst {
			a.Send(src[sent%variants])
			sent++
			if sent == b.N {
				break
			}
		}
		a.Flush()
	}
	for int(frames.Load()) < b.N {
		a.Flush()
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)*float64(s.size)*8/float64(b.Elapsed().Nanoseconds()), "Gbit/s")
}

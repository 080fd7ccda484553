package ktcp

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// place is where a carrier is opened : on loopback, or on one of two hosts.
type place struct {
	addr netip.Addr
	do   func(func() error) error
}

// networks runs a benchmark over loopback and over veth pairs.
func networks(b *testing.B, run func(b *testing.B, at [2]place)) {
	b.Run("loopback", func(b *testing.B) {
		here := place{netip.MustParseAddr("127.0.0.1"), func(fn func() error) error { return fn() }}
		run(b, [2]place{here, here})
	})
	for _, mtu := range []int{1500, 9000} {
		b.Run(fmt.Sprint("veth", mtu), func(b *testing.B) {
			tb := hosttest.New(b, testbed.Config{MTU: mtu})
			run(b, [2]place{{tb.Hosts[0].Addr, tb.Hosts[0].Do}, {tb.Hosts[1].Addr, tb.Hosts[1].Do}})
		})
	}
}

// ends opens a carrier at each place, and n streams between them.
func ends(b *testing.B, at [2]place, c Config, n int) (x, y *Stream) {
	b.Helper()
	from, to := open(b, c), open(b, c)
	var l fabric.Listener
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(at[1].do(func() (err error) {
		l, err = to.Listen(netip.AddrPortFrom(at[1].addr, 0), n)
		return err
	}))
	for range n {
		var d, a fabric.Stream
		must(at[0].do(func() (err error) {
			d, err = from.Dial(l.Local(), netip.AddrPort{})
			return err
		}))
		for a == nil || d.State() == fabric.StreamConnecting {
			from.Poll(clock.Now(), nil)
			to.Poll(clock.Now(), nil)
			if s := l.Accept(); s != nil {
				a = s
			}
		}
		x, y = d.(*Stream), a.(*Stream)
	}
	l.Close()
	return x, y
}

// pin ties the calling goroutine to a core.
func pin(cpu int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		panic(err)
	}
}

// await receives at least size bytes as an engine does, which looks after all
// streams that are named.
func await(s *Streams, buf []byte, size int) {
	var names [16]fabric.StreamID
	var on fabric.Streams = s // through the seam
	for got := 0; got < size; {
		for _, id := range on.Poll(0, names[:0]) {
			var c fabric.Stream = s.table[id].stream
			for n := 1; n > 0; got += n {
				n, _ = c.Recv(buf)
			}
		}
	}
}

// awaitPlain does it with a socket alone.
func awaitPlain(fd int, buf []byte, size int) {
	for got := 0; got < size; {
		n, _ := recv(fd, buf)
		got += n
	}
}

// Benchmark_pingPong8 is half a round trip of 8 bytes: the seam beside the bare
// system calls, both spinning.
func Benchmark_pingPong8(b *testing.B) {
	networks(b, func(b *testing.B, at [2]place) {
		msg := [][]byte{make([]byte, 8)}
		for _, v := range []struct {
			name    string
			streams int
		}{{"plain", 0}, {"stream", 1}, {"stream of 8", 8}} {
			b.Run(v.name, func(b *testing.B) {
				x, y := ends(b, at, Config{}, max(1, v.streams))
				turn := func(c *Stream, buf []byte, first bool) {
					s := c.on
					for i := range 2 * b.N {
						switch mine := (i%2 == 0) == first; {
						case mine && v.streams == 0:
							s.iovs[0].Base = &msg[0][0]
							s.iovs[0].SetLen(8)
							s.sendmsg(c.fd, 1)
						case mine:
							c.Send(msg)
						case v.streams == 0:
							awaitPlain(c.fd, buf, 8)
						default:
							await(s, buf, 8)
						}
					}
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					pin(1)
					turn(y, make([]byte, 64), false)
				}()
				pin(0)
				turn(x, make([]byte, 64), true)
				<-done
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/half")
			})
		}
	})
}

// Benchmark_seam8 is the same with one thread at both ends, so that nobody
// spins: the processor time of half a round trip.
func Benchmark_seam8(b *testing.B) {
	networks(b, func(b *testing.B, at [2]place) {
		msg, buf := [][]byte{make([]byte, 8)}, make([]byte, 64)
		for _, v := range []struct {
			name    string
			streams int
		}{{"plain", 0}, {"stream", 1}, {"of 2", 2}, {"of 3", 3}, {"of 4", 4}, {"of 8", 8}} {
			b.Run(v.name, func(b *testing.B) {
				x, y := ends(b, at, Config{}, max(1, v.streams))
				pin(0)
				b.ResetTimer()
				before := threadTime()
				for range 2 * b.N {
					if v.streams == 0 {
						x.on.gather(msg)
						x.on.sendmsg(x.fd, 1)
						awaitPlain(y.fd, buf, 8)
					} else {
						x.Send(msg)
						await(y.on, buf, 8)
					}
					x, y = y, x
				}
				b.ReportMetric(float64(threadTime()-before)/float64(2*b.N), "cpu-ns")
			})
		}
	})
}

// flow sends 1 MiB after the other; send is told how often, and the other end
// receives it all into memory of recvSize bytes.
func flow(b *testing.B, at [2]place, c Config, recvSize int, plain bool, total int, send func(x *Stream)) {
	x, y := ends(b, at, c, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		pin(1)
		buf := make([]byte, recvSize)
		if plain {
			awaitPlain(y.fd, buf, total*b.N)
		} else {
			await(y.on, buf, total*b.N)
		}
	}()
	pin(0)
	b.SetBytes(1 << 20)
	b.ResetTimer()
	for range b.N {
		send(x)
	}
	<-done
	b.ReportMetric(float64(x.on.stats.TxCalls)/float64(b.N), "sends")
	b.ReportMetric(float64(y.on.stats.RxCalls)/float64(b.N), "recvs")
}

// all sends the buffers as an engine does, which polls in between.
func all(x *Stream, bufs [][]byte) {
	var names [16]fabric.StreamID
	for {
		n := x.Send(bufs)
		for len(bufs) > 0 && n >= len(bufs[0]) {
			n -= len(bufs[0])
			bufs = bufs[1:]
		}
		if len(bufs) == 0 {
			return
		}
		bufs[0] = bufs[0][n:]
		x.on.Poll(0, names[:0])
	}
}

// Benchmark_flow1M streams 1 MiB messages: the seam beside bare system calls.
func Benchmark_flow1M(b *testing.B) {
	networks(b, func(b *testing.B, at [2]place) {
		data := make([]byte, 1<<20)
		b.Run("plain", func(b *testing.B) {
			flow(b, at, Config{}, 256<<10, true, len(data), func(x *Stream) {
				for rest := data; len(rest) > 0; {
					x.on.iovs[0].Base = &rest[0]
					x.on.iovs[0].SetLen(len(rest))
					n, _ := x.on.sendmsg(x.fd, 1)
					rest = rest[n:]
				}
			})
		})
		var one [1][]byte
		for _, size := range []int{64 << 10, 256 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("recv %dK", size>>10), func(b *testing.B) {
				flow(b, at, Config{}, size, false, len(data), func(x *Stream) {
					one[0] = data
					all(x, one[:])
				})
			})
		}
	})
}

// Benchmark_segments sends 1 MiB in segments, each behind a header, as FPDUs
// are: as a list of buffers, or copied into one first; "flat" has no headers at
// all. per is how many of them one Send is given. One thread does both ends, so
// that nobody spins, and its processor time is what counts.
func Benchmark_segments(b *testing.B) {
	networks(b, func(b *testing.B, at [2]place) {
		for _, segment := range []int{1424, 8920} {
			for _, per := range []int{8, 44, 176} {
				b.Run(fmt.Sprintf("%d per %d/flat", segment, per), func(b *testing.B) { segments(b, at, segment, per, false, 0) })
				b.Run(fmt.Sprintf("%d per %d/list", segment, per), func(b *testing.B) { segments(b, at, segment, per, false, 24) })
				b.Run(fmt.Sprintf("%d per %d/copy", segment, per), func(b *testing.B) { segments(b, at, segment, per, true, 24) })
			}
		}
	})
}

func segments(b *testing.B, at [2]place, segment, per int, copied bool, header int) {
	x, y := ends(b, at, Config{}, 1)
	data, head, buf := make([]byte, 1<<20), make([]byte, header), make([]byte, 256<<10)
	scratch, list := make([]byte, 0, per*(segment+header)), make([][]byte, 2*per)
	pin(0)
	sent, got := 0, 0
	drain := func() {
		y.on.Poll(0, nil)
		for n := 1; n > 0; got += n {
			n, _ = y.Recv(buf)
		}
	}
	b.SetBytes(int64(len(data)))
	b.ResetTimer()
	before := threadTime()
	for range b.N {
		for rest := data; len(rest) > 0; {
			bufs := list[:0]
			scratch = scratch[:0]
			for i := 0; i < per && len(rest) > 0; i++ {
				n := min(segment, len(rest))
				switch {
				case copied:
					scratch = append(append(scratch, head...), rest[:n]...)
				case header > 0:
					bufs = append(bufs, head, rest[:n])
				case i == 0:
					bufs = append(bufs, rest[:min(per*segment, len(rest))])
				}
				rest = rest[n:]
			}
			if copied {
				bufs = append(bufs, scratch)
			}
			for len(bufs) > 0 {
				n := x.Send(bufs)
				sent += n
				for len(bufs) > 0 && n >= len(bufs[0]) {
					n -= len(bufs[0])
					bufs = bufs[1:]
				}
				if len(bufs) > 0 {
					bufs[0] = bufs[0][n:]
				}
				if len(bufs) > 0 || sent-got >= 128<<10 {
					drain()
				}
			}
		}
	}
	for got < sent {
		drain()
	}
	b.ReportMetric(float64(threadTime()-before)/float64(b.N), "cpu-ns")
}

// threadTime returns how long this thread has run, in ns.
func threadTime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

package conform

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// streamLoads are about bytes, many of them or on many streams.
var streamLoads = []streamCase{
	{"sizes", streamsSizes},
	{"bothWays", streamsBothWays},
	{"backpressure", streamsBackpressure},
	{"crumbs", streamsCrumbs},
	{"many", streamsMany},
	{"quiet", streamsQuiet},
	{"allocs", streamsAllocs},
}

func streamsSizes(r *streamRig) {
	x, y := r.connect()
	for _, cuts := range [][]int{{1}, {24, 1424}, {7, 1, 0, 4001}, {20, 1428, 4}, {65_521}, {4096}, {0, 3}} {
		for _, n := range []int64{1, 2, 7, 8, 1447, 1448, 1449, 4096, 9001, 70_001} {
			if len(cuts) == 1 && cuts[0] == 1 && n > 10_000 {
				continue // streamsCrumbs
			}
			r.exchange(x, y, n, cuts...)
		}
	}
}

func streamsBothWays(r *streamRig) {
	x, y := r.connect()
	n := int64(8 << 20)
	if r.net.Virtual {
		n = 1 << 20
	}
	r.exchange(x, y, n, 14, 1424, 24, 1424)
}

// streamsBackpressure sends to somebody who does not read, and then does.
func streamsBackpressure(r *streamRig) {
	x, y := r.connect()
	y.appetite = 0
	x.offer(everything)
	r.until(func() bool { return x.short })
	if !r.asleep {
		for idle := 0; idle < 300; idle++ {
			if r.a.poll()+r.b.poll() > 0 {
				idle = 0
			}
			r.net.Step(idle)
			if x.sent > 256<<20 {
				r.t.Fatalf("%d bytes are taken, and nobody reads", x.sent)
			}
		}
	}
	// The other direction does not care.
	before := x.got
	y.offer(100_000)
	r.until(func() bool { return x.got == before+100_000 })
	// A sip does not make room for more than itself; then all goes through.
	y.eat(1)
	r.until(func() bool { return y.got == 1 })
	x.offered = x.sent + 1<<20
	y.eat(everything / 2)
	r.until(func() bool { return y.got == x.offered })
}

// streamsCrumbs sends more buffers at once than any system call takes.
func streamsCrumbs(r *streamRig) {
	x, y := r.connect()
	r.exchange(x, y, 5003, 1)
	r.exchange(x, y, 5003, 1, 0, 0)
	// Whoever calls Send with many buffers has them taken in order.
	bufs := make([][]byte, 3000)
	for i := range bufs {
		bufs[i] = []byte{byte(i), byte(i >> 8)}
	}
	n := x.Send(bufs)
	if n == 0 {
		r.t.Fatal("nothing is taken")
	}
	y.appetite = y.got // our own Recv below
	var got []byte
	for idle := 0; len(got) < n; idle++ {
		r.a.poll()
		r.b.poll()
		var b [1000]byte
		m, _ := y.Recv(b[:])
		if got = append(got, b[:m]...); m == 0 {
			r.net.Step(idle)
		}
	}
	for i, c := range got {
		if want := byte(i / 2 >> (8 * (i % 2))); c != want {
			r.t.Fatalf("byte %d is %d, not %d", i, c, want)
		}
	}
}

// streamsMany has many connections at once.
func streamsMany(r *streamRig) {
	n := r.net.Many
	if n == 0 {
		n = 200
	}
	d := r.b.listen(0)
	xs := make([]*conn, n)
	for i := range xs {
		xs[i] = r.a.dial(d.Local(), netip.AddrPort{})
	}
	r.until(func() bool {
		for _, x := range xs {
			if x.State() == fabric.StreamConnecting {
				return false
			}
		}
		return len(d.in) == n
	})
	peer := map[netip.AddrPort]*conn{}
	for _, y := range d.in {
		peer[y.Remote()] = y
	}
	for _, x := range xs {
		y := peer[x.Local()]
		if y == nil {
			r.t.Fatalf("%v was accepted by nobody", x.Local())
		}
		x.join(y)
		if int(x.ID()) > 2*n || int(y.ID()) > 2*n {
			r.t.Errorf("numbers %d and %d of %d streams", x.ID(), y.ID(), n)
		}
	}
	for _, size := range []int64{1, 20_001} {
		for i, x := range xs {
			x.offer(size+int64(i), 24, 1424)
			peer[x.Local()].offer(size, 9000)
		}
		r.until(func() bool {
			for _, x := range xs {
				if y := peer[x.Local()]; x.got != y.offered || y.got != x.offered {
					return false
				}
			}
			return true
		})
	}
	// Half of them end, in different ways, and the other half does not mind.
	for i := 0; i < n; i += 2 {
		xs[i].give(i%4 == 0)
	}
	for i, x := range xs {
		y := peer[x.Local()]
		if i%2 == 0 {
			r.until(func() bool { return y.eof || y.State() == fabric.StreamFailed })
			y.give(false)
		} else {
			r.exchange(x, y, 3000)
		}
	}
}

// streamsQuiet finds nothing to wake up for when nothing happens: else an
// engine that sleeps would not.
func streamsQuiet(r *streamRig) {
	if r.net.Virtual || r.a.FD() < 0 {
		r.t.Skip("there is nothing to wait for with poll(2)")
	}
	d := r.b.listen(0)
	full, deaf := r.connectTo(d)
	deaf.appetite = 0
	full.offer(everything)
	ending, ended := r.connectTo(d)
	ending.CloseWrite()
	r.until(func() bool { return full.short && ended.eof })
	for more := range 6 { // few streams, then many
		for _, e := range []*streamEnd{r.a, r.b} {
			for quiet := false; !quiet; {
				r.a.poll()
				r.b.poll()
				fds := []unix.PollFd{{Fd: int32(e.FD()), Events: unix.POLLIN}}
				n, err := unix.Poll(fds, 0)
				quiet = n == 0 && err == nil
			}
		}
		x, y := r.connectTo(d)
		r.exchange(x, y, int64(1000*more)+1)
	}
}

func streamsAllocs(r *streamRig) {
	if r.net.Allocates {
		r.t.Skip("the carrier may allocate")
	}
	d := r.b.listen(0)
	for _, more := range []int{1, 6} { // few streams, then many
		var x, y *conn
		for range more {
			x, y = r.connectTo(d)
		}
		for _, size := range []int{8, 3000} {
			data := make([]byte, size)
			one, three := [][]byte{data}, [][]byte{data[:1], data[1:5], data[5:]}
			round := func() {
				x.ping(y, one, size)
				y.ping(x, three, size)
			}
			if n := testing.AllocsPerRun(200, round); n != 0 {
				r.t.Errorf("%v allocations per ping-pong of %d bytes beside %d streams", n, size, more)
			}
		}
	}
}

// ping sends size bytes to the peer, which takes them when it is named.
func (c *conn) ping(to *conn, bufs [][]byte, size int) {
	r := c.end.rig
	if n := c.Send(bufs); n != size {
		r.t.Fatalf("%d bytes of %d are taken", n, size)
	}
	c.end.Flush()
	for idle, got := 0, 0; got < size; idle++ {
		c.end.ready = c.end.Poll(r.net.Clock.Now(), c.end.ready[:0])
		to.end.ready = to.end.Poll(r.net.Clock.Now(), to.end.ready[:0])
		for _, id := range to.end.ready {
			for id == to.ID() {
				n, _ := to.Recv(to.end.buf)
				if got += n; n == 0 {
					break
				}
			}
		}
		to.end.Flush()
		if got < size {
			r.net.Step(idle)
		}
	}
}

package conform

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// streamEnds are about how streams end.
var streamEnds = []streamCase{
	{"eof", streamsEOF},
	{"halfClose", streamsHalfClose},
	{"closeInFlight", streamsCloseInFlight},
	{"closeConnecting", streamsCloseConnecting},
	{"abort", streamsAbort},
	{"unread", streamsUnread},
	{"resetWhileFull", streamsResetWhileFull},
	{"closeCarrier", streamsCloseCarrier},
}

func streamsEOF(r *streamRig) {
	x, y := r.connect()
	x.CloseWrite()
	r.a.Flush()
	r.until(func() bool { return y.eof })
	if n, eof := y.Recv(make([]byte, 10)); n != 0 || !eof {
		r.t.Errorf("Recv behind the end returns %d, %v", n, eof)
	}
	if n := x.Send([][]byte{{1}}); n != 0 {
		r.t.Errorf("Send after CloseWrite takes %d", n)
	}
	x.CloseWrite() // again: nothing happens
	y.CloseWrite()
	r.b.Flush()
	r.until(func() bool { return x.eof })
	if x.State() != fabric.StreamOpen || y.State() != fabric.StreamOpen {
		r.t.Errorf("after an orderly end: states %d and %d, errors %v and %v", x.State(), y.State(), x.Err(), y.Err())
	}
	x.give(false)
	y.give(false)
}

// streamsHalfClose sends on, long after the other direction has ended.
func streamsHalfClose(r *streamRig) {
	x, y := r.connect()
	x.offer(300_001)
	r.until(func() bool { return x.sent == x.offered })
	x.CloseWrite()
	r.a.Flush()
	r.until(func() bool { return y.eof })
	if y.got != x.sent {
		r.t.Errorf("the end comes behind %d bytes of %d", y.got, x.sent)
	}
	y.offer(500_003, 1000, 1, 24)
	r.until(func() bool { return x.got == y.offered })
	y.give(false)
	r.until(func() bool { return x.eof })
	x.give(false)
}

// streamsCloseInFlight closes at once behind what Send has taken.
func streamsCloseInFlight(r *streamRig) {
	for _, closeWrite := range []bool{true, false} {
		x, y := r.connect()
		y.appetite = 0
		x.offer(60_000)
		x.offered = x.sent
		if x.sent == 0 {
			r.t.Fatal("a fresh stream takes nothing")
		}
		if closeWrite {
			x.CloseWrite()
		}
		sent := x.sent
		x.give(false)
		y.eat(everything)
		r.until(func() bool { return y.eof || y.State() == fabric.StreamFailed })
		if y.got != sent || !y.eof {
			r.t.Errorf("%d bytes of %d arrive, end %v, error %v", y.got, sent, y.eof, y.Err())
		}
		y.give(false)
	}
}

func streamsCloseConnecting(r *streamRig) {
	d := r.b.listen(0)
	for _, abort := range []bool{false, true} {
		r.a.dial(d.Local(), netip.AddrPort{}).give(abort)
	}
	x, y := r.a.dial(d.Local(), netip.AddrPort{}), (*conn)(nil)
	r.until(func() bool { // those before may have been accepted, and have ended
		for _, c := range d.in {
			if c.Remote() == x.Local() {
				y = c
			}
		}
		return y != nil && x.State() != fabric.StreamConnecting
	})
	x.join(y)
	r.exchange(x, y, 100)
}

func streamsAbort(r *streamRig) {
	for _, queued := range []int64{0, 50_000} {
		x, y := r.connect()
		r.exchange(x, y, 100)
		y.offer(queued)
		y.give(true)
		r.until(func() bool { return x.State() == fabric.StreamFailed })
		x.wantReset()
		x.give(false)
	}
}

// wantReset checks what a stream tells that the peer has reset.
func (c *conn) wantReset() {
	t := c.end.rig.t
	if !errors.Is(c.Err(), unix.ECONNRESET) {
		t.Errorf("after a reset: %v; want ECONNRESET", c.Err())
	}
	if n, eof := c.Recv(make([]byte, 10)); n != 0 || eof {
		t.Errorf("Recv after a reset returns %d, %v", n, eof)
	}
	if n := c.Send([][]byte{{1}}); n != 0 {
		t.Errorf("Send after a reset takes %d", n)
	}
	c.CloseWrite() // nothing happens
}

// streamsUnread closes a stream with bytes that nobody has read.
func streamsUnread(r *streamRig) {
	x, y := r.connect()
	y.appetite = 1
	x.offer(400)
	r.until(func() bool { return y.got == 1 })
	y.give(false)
	r.until(func() bool { return x.State() == fabric.StreamFailed })
	x.wantReset()
}

// streamsResetWhileFull resets a stream that waits for room.
func streamsResetWhileFull(r *streamRig) {
	x, y := r.connect()
	y.appetite = 0
	x.offer(everything)
	r.until(func() bool { return x.short })
	y.give(true)
	r.until(func() bool { return x.State() == fabric.StreamFailed })
	x.wantReset()
}

// streamsCloseCarrier closes all of one end.
func streamsCloseCarrier(r *streamRig) {
	d := r.b.listen(0)
	var all []*conn
	for range 7 {
		x, _ := r.connectTo(d)
		all = append(all, x)
	}
	r.b.close()
	for _, x := range all {
		r.until(func() bool { return x.State() == fabric.StreamFailed })
		x.wantReset()
	}
}

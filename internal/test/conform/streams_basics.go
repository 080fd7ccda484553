package conform

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// streamBasics are about how streams begin.
var streamBasics = []streamCase{
	{"caps", streamsTell},
	{"connect", streamsConnect},
	{"refused", streamsRefused},
	{"badAddresses", streamsBadAddresses},
	{"localAddress", streamsLocalAddress},
	{"ports", streamsPorts},
	{"everywhere", streamsEverywhere},
	{"acceptLate", streamsAcceptLate},
	{"numbers", streamsNumbers},
	{"stats", streamsStats},
}

func streamsTell(r *streamRig) {
	for _, e := range []*streamEnd{r.a, r.b} {
		if e.Caps().Carrier == "" {
			r.t.Error("the carrier has no name")
		}
		if e.addr.Is6() && !e.Caps().IPv6 {
			r.t.Errorf("%s has no IPv6", e.Caps().Carrier)
		}
		if ids := e.Poll(r.net.Clock.Now(), nil); len(ids) != 0 {
			r.t.Errorf("a carrier without streams names %v", ids)
		}
	}
}

func streamsConnect(r *streamRig) {
	x, y := r.connect()
	if x.Remote() != y.Local() || y.Remote() != x.Local() {
		r.t.Errorf("%v - %v at one end, %v - %v at the other", x.Local(), x.Remote(), y.Local(), y.Remote())
	}
	if x.Local().Addr() != r.a.addr || y.Local().Addr() != r.b.addr {
		r.t.Errorf("local addresses are %v and %v", x.Local(), y.Local())
	}
	for _, c := range []*conn{x, y} {
		if c.Err() != nil {
			r.t.Errorf("an open stream has the error %v", c.Err())
		}
		if mss := c.MSS(); mss < 500 || mss > 65535 {
			r.t.Errorf("MSS is %d", mss)
		}
		if n, eof := c.Recv(make([]byte, 10)); n != 0 || eof {
			r.t.Errorf("Recv returns %d, %v with nothing sent", n, eof)
		}
		if n := c.Send(nil); n != 0 {
			r.t.Errorf("Send of nothing takes %d", n)
		}
		if n := c.Send([][]byte{{}, nil}); n != 0 {
			r.t.Errorf("Send of empty buffers takes %d", n)
		}
	}
	r.exchange(x, y, 1)
}

// exchange sends n bytes both ways, and waits for them.
func (r *streamRig) exchange(x, y *conn, n int64, cuts ...int) {
	x.offer(n, cuts...)
	y.offer(n, cuts...)
	r.until(func() bool { return x.got == y.sent && y.got == x.sent && x.sent == x.offered && y.sent == y.offered })
}

func streamsRefused(r *streamRig) {
	x, y := r.connect()
	nobody := netip.AddrPortFrom(r.b.addr, r.b.freePort(r.b.addr))
	for range 3 {
		s, err := r.a.tryDial(nobody)
		if err == nil {
			c := r.a.adopt(s)
			r.until(func() bool { return c.State() != fabric.StreamConnecting })
			if err = c.Err(); c.State() != fabric.StreamFailed {
				r.t.Fatalf("state %d where nobody listens", c.State())
			}
			if n, eof := c.Recv(make([]byte, 10)); n != 0 || eof {
				r.t.Errorf("Recv of a failed stream returns %d, %v", n, eof)
			}
			if n := c.Send([][]byte{{1}}); n != 0 {
				r.t.Errorf("Send of a failed stream takes %d", n)
			}
			c.give(false)
		}
		if !errors.Is(err, unix.ECONNREFUSED) {
			r.t.Errorf("refused with %v: want ECONNREFUSED", err)
		}
		r.exchange(x, y, 100)
	}
}

func (e *streamEnd) tryDial(to netip.AddrPort) (s fabric.Stream, err error) {
	err = e.rig.net.On(e.host, func() (err error) {
		s, err = e.Dial(to, netip.AddrPort{})
		return err
	})
	return s, err
}

func streamsBadAddresses(r *streamRig) {
	for _, to := range []netip.AddrPort{
		{}, netip.AddrPortFrom(r.b.addr, 0),
		netip.MustParseAddrPort("0.0.0.0:99"), netip.MustParseAddrPort("[::]:99"), netip.MustParseAddrPort("224.1.1.1:99"),
	} {
		if s, err := r.a.tryDial(to); err == nil {
			r.t.Errorf("Dial to %v succeeds", to)
			s.Close(true)
		}
	}
	if _, err := r.a.tryListen(netip.MustParseAddrPort("203.0.113.77:0")); err == nil {
		r.t.Error("Listen at an address of somebody else succeeds")
	}
	x, y := r.connect()
	r.exchange(x, y, 100)
}

func streamsLocalAddress(r *streamRig) {
	d := r.b.listen(0)
	dial := func(from netip.AddrPort) {
		x := r.a.dial(d.Local(), from)
		before := len(d.in)
		r.until(func() bool { return x.State() != fabric.StreamConnecting && len(d.in) > before })
		y := d.in[before]
		x.join(y)
		if got := y.Remote(); got.Addr() != r.a.addr || from.Port() != 0 && got.Port() != from.Port() {
			r.t.Errorf("dialled from %v, the peer sees %v", from, got)
		}
		r.exchange(x, y, 1000)
	}
	dial(netip.AddrPortFrom(r.a.addr, 0))
	// Two connections from one port to the same listener are an error, so the
	// ports must differ: from that of the connection before, which is open, and
	// from each other.
	one, everywhere := r.a.listenAt(netip.AddrPortFrom(r.a.addr, 0)), r.a.listenAt(netip.AddrPort{})
	one.shut()
	everywhere.shut()
	dial(one.Local())
	dial(netip.AddrPortFrom(netip.Addr{}, everywhere.Local().Port()))
}

func streamsPorts(r *streamRig) {
	d := r.b.listen(0)
	if d.Local().Port() == 0 || d.Local().Addr() != r.b.addr {
		r.t.Errorf("listens at %v", d.Local())
	}
	if other := r.b.listen(0); other.Local() == d.Local() {
		r.t.Errorf("two listeners at %v", d.Local())
	}
	l, err := r.b.tryListen(d.Local())
	if !errors.Is(err, unix.EADDRINUSE) {
		r.t.Errorf("second listener at %v: %v, error %v; want EADDRINUSE", d.Local(), l, err)
	}
	x, y := r.connectTo(d)
	port := d.Local().Port()
	d.shut()
	again := r.b.listen(port) // though there is a connection from before
	if again.Local().Port() != port {
		r.t.Errorf("listens at port %d, not %d", again.Local().Port(), port)
	}
	v, w := r.connectTo(again)
	r.exchange(v, w, 100)
	r.exchange(x, y, 100)
}

// streamsEverywhere listens at all addresses.
func streamsEverywhere(r *streamRig) {
	for _, at := range []netip.Addr{{}, netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		if at.Is4() && r.b.addr.Is6() || at.Is6() && !r.b.Caps().IPv6 {
			continue
		}
		d := r.b.listenAt(netip.AddrPortFrom(at, 0))
		x := r.a.dial(netip.AddrPortFrom(r.b.addr, d.Local().Port()), netip.AddrPort{})
		r.until(func() bool { return x.State() != fabric.StreamConnecting && len(d.in) > 0 })
		y := d.in[0]
		x.join(y)
		if y.Local() != x.Remote() || y.Remote() != x.Local() {
			r.t.Errorf("%v - %v at one end, %v - %v at the other", x.Local(), x.Remote(), y.Local(), y.Remote())
		}
		r.exchange(x, y, 100)
	}
}

// streamsAcceptLate sends before the peer has accepted.
func streamsAcceptLate(r *streamRig) {
	if r.net.Greets {
		r.t.Skip("a stream opens when it is accepted")
	}
	d := r.b.listen(0)
	r.b.listeners[d.ID()] = nil // it is named, and nobody looks
	x := r.a.dial(d.Local(), netip.AddrPort{})
	r.until(func() bool { return x.State() == fabric.StreamOpen })
	x.offer(100)
	if x.sent == 0 {
		r.t.Fatal("a fresh stream takes nothing")
	}
	x.offered = x.sent
	for range 50 {
		r.a.poll()
		r.b.poll()
		r.net.Step(1)
	}
	r.b.listeners[d.ID()] = d
	for len(d.in) == 0 { // the event may have been lost on us
		d.open()
		r.a.poll()
		r.b.poll()
		r.net.Step(1)
	}
	y := d.in[0]
	x.join(y)
	x.txAt, y.rxAt = 0, 0 // it was sent before join
	r.until(func() bool { return y.got == x.sent })
}

// streamsNumbers opens and closes many streams, one after the other.
func streamsNumbers(r *streamRig) {
	if r.net.Kept && r.asleep {
		r.t.Skip("the cases before had many streams, whose numbers come again")
	}
	d := r.b.listen(0)
	for range 100 {
		x, y := r.connectTo(d)
		if x.ID() > 16 || y.ID() > 16 {
			r.t.Fatalf("numbers %d and %d where few are in use", x.ID(), y.ID())
		}
		r.exchange(x, y, 10)
		x.CloseWrite()
		r.until(func() bool { return y.eof })
		y.give(false)
		r.until(func() bool { return x.eof })
		x.give(false)
		d.in = d.in[:0]
	}
}

func streamsStats(r *streamRig) {
	here, there := r.a.Stats(), r.b.Stats()
	x, y := r.connect()
	x.offer(1000)
	y.offer(234)
	r.until(func() bool { return y.got == 1000 && x.got == 234 })
	sent, got := since(r.a.Stats(), here), since(r.b.Stats(), there)
	if sent.TxBytes != 1000 || sent.RxBytes != 234 || got.RxBytes != 1000 || got.TxBytes != 234 {
		r.t.Errorf("1000 bytes one way and 234 the other are counted as %+v and %+v", sent, got)
	}
	if sent.Opened != 1 || sent.Accepted != 0 || got.Opened != 0 || got.Accepted != 1 || sent.Failed+got.Failed != 0 {
		r.t.Errorf("one connection is counted as %+v and %+v", sent, got)
	}
	if sent.TxCalls == 0 || got.RxCalls == 0 {
		r.t.Errorf("no calls are counted: %+v and %+v", sent, got)
	}
	y.give(true)
	r.until(func() bool { return x.State() == fabric.StreamFailed })
	if s := since(r.a.Stats(), here); s.Failed != 1 {
		r.t.Errorf("one failure is counted as %d", s.Failed)
	}
}

// since returns what was counted since before.
func since(now, before fabric.StreamStats) fabric.StreamStats {
	now.TxBytes -= before.TxBytes
	now.RxBytes -= before.RxBytes
	now.TxCalls -= before.TxCalls
	now.RxCalls -= before.RxCalls
	now.Opened -= before.Opened
	now.Accepted -= before.Accepted
	now.Failed -= before.Failed
	return now
}

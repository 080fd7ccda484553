package ktcp

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// The contract is held by conform.Streams. These tests are about what only
// this carrier does.

var clock mono.Real

func open(t testing.TB, c Config) *Streams {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, s)
	return s
}

func listen(t testing.TB, s *Streams, at string) *Listener {
	t.Helper()
	l, err := s.Listen(netip.MustParseAddrPort(at), 16)
	if err != nil {
		t.Fatal(err)
	}
	return l.(*Listener)
}

// pair joins two streams of one carrier.
func pair(t testing.TB, s *Streams, l *Listener) (x, y *Stream) {
	t.Helper()
	to := l.Local()
	if to.Addr().IsUnspecified() {
		to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.Port())
	}
	c, err := s.Dial(to, netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	for y == nil || c.State() == fabric.StreamConnecting {
		s.Poll(clock.Now(), nil)
		if a := l.Accept(); a != nil {
			y = a.(*Stream)
		}
		if c.State() == fabric.StreamFailed {
			t.Fatal(c.Err())
		}
	}
	return c.(*Stream), y
}

// receive waits for the bytes of want.
func receive(t testing.TB, c *Stream, want string) {
	t.Helper()
	var got []byte
	for len(got) < len(want) {
		c.on.Poll(clock.Now(), nil)
		b := make([]byte, len(want)-len(got))
		n, eof := c.Recv(b)
		if eof || c.State() != fabric.StreamOpen {
			t.Fatalf("%q, then end %v, error %v", got, eof, c.Err())
		}
		got = append(got, b[:n]...)
	}
	if string(got) != want {
		t.Fatalf("received %q, not %q", got, want)
	}
}

func option(t testing.TB, fd, level, opt int) int {
	t.Helper()
	n, err := unix.GetsockoptInt(fd, level, opt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOpen_rejectsBadConfig(t *testing.T) {
	for _, c := range []Config{{MTU: 575}, {MTU: 65537}, {Local: netip.IPv6Unspecified()}} {
		if s, err := Open(c); err == nil {
			s.Close()
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestClose_twiceIsAnError(t *testing.T) {
	s, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Close() != nil || s.Close() == nil {
		t.Error("want no error, then one")
	}
}

func TestOptions_ofBothEnds(t *testing.T) {
	s := open(t, Config{MTU: 1000, UserTimeout: 17 * time.Second})
	x, y := pair(t, s, listen(t, s, "127.0.0.1:0"))
	for _, c := range []*Stream{x, y} {
		if ms := option(t, c.fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); ms != 17_000 {
			t.Errorf("the stream fails after %d ms without an acknowledgement, want 17000", ms)
		}
		if option(t, c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY) != 1 {
			t.Error("small messages are kept back")
		}
		if mss := c.MSS(); mss < 1000-20-20-40 || mss > 1000-20-20 {
			t.Errorf("MSS is %d at MTU 1000", mss)
		}
	}
}

func TestMSS_asksNowAndThen(t *testing.T) {
	s := open(t, Config{})
	x, _ := pair(t, s, listen(t, s, "127.0.0.1:0"))
	now := clock.Now()
	s.Poll(now, nil)
	x.MSS()
	if err := unix.SetsockoptInt(x.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, 900); err != nil {
		t.Fatal(err)
	}
	known := x.MSS()
	x.mss = 12345 // what it remembers, and no kernel would say
	s.Poll(now.Add(mssEvery-1), nil)
	if got := x.MSS(); got != 12345 {
		t.Errorf("the kernel is asked again at once, and says %d", got)
	}
	s.Poll(now.Add(mssEvery), nil)
	if got := x.MSS(); got == 12345 || got > known {
		t.Errorf("after %v it is still %d; it was %d", mssEvery, got, known)
	}
}

func TestListen_allAddressesOfBothFamilies(t *testing.T) {
	s := open(t, Config{})
	l := listen(t, s, "0.0.0.0:0")
	if !l.Local().Addr().Is6() {
		t.Skip("no IPv6 here")
	}
	for _, to := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1"} {
		addr := netip.MustParseAddr(to)
		c, err := s.Dial(netip.AddrPortFrom(addr, l.Local().Port()), netip.AddrPort{})
		if err != nil {
			t.Fatal(err)
		}
		var in fabric.Stream
		for in == nil || c.State() == fabric.StreamConnecting {
			s.Poll(clock.Now(), nil)
			if a := l.Accept(); a != nil {
				in = a
			}
			if c.State() == fabric.StreamFailed {
				t.Fatal(c.Err())
			}
		}
		if in.Remote() != c.Local() || in.Local() != c.Remote() || in.Remote().Addr() != addr.Unmap() {
			t.Errorf("%s: %v - %v at one end, %v - %v at the other", to, c.Local(), c.Remote(), in.Local(), in.Remote())
		}
	}
}

// A port of our own that nobody listens on: the kernel may give a connection
// to it this very port, and it would be connected with itself.
func TestDial_notToItself(t *testing.T) {
	s := open(t, Config{})
	l := listen(t, s, "127.0.0.1:0")
	self := l.Local()
	l.Close()
	c, err := s.Dial(self, self)
	if err != nil {
		t.Fatal(err)
	}
	for c.State() == fabric.StreamConnecting {
		s.Poll(clock.Now(), nil)
	}
	if !errors.Is(c.Err(), unix.ECONNREFUSED) {
		t.Errorf("connected with itself: state %d, error %v", c.State(), c.Err())
	}
}

func TestErrors_sayWhatToDo(t *testing.T) {
	s := open(t, Config{})
	l := listen(t, s, "127.0.0.1:0")
	dial := func(to, from string) error {
		f, _ := netip.ParseAddrPort(from)
		_, err := s.Dial(netip.MustParseAddrPort(to), f)
		return err
	}
	listenErr := func(at string) error {
		_, err := s.Listen(netip.MustParseAddrPort(at), 1)
		return err
	}
	for _, c := range []struct {
		err  error
		is   error
		want string
	}{
		{listenErr(l.Local().String()), unix.EADDRINUSE, "ss -tanp"},
		{listenErr("203.0.113.77:0"), unix.EADDRNOTAVAIL, "ip addr"},
		{dial("192.0.2.1:7", "203.0.113.77:0"), unix.EADDRNOTAVAIL, "ip addr"},
		{dial("192.0.2.1:7", "127.0.0.1:0"), unix.EINVAL, "local address"},
		{dial("192.0.2.1:7", "[::1]:0"), nil, "both must be IPv4"},
		{dial("[fe80::1%nosuch0]:7", ""), nil, "ip link"},
		{dial("0.0.0.0:7", ""), nil, "want the address"},
	} {
		if c.err == nil || c.is != nil && !errors.Is(c.err, c.is) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("got %v; want %v and a word on %s", c.err, c.is, c.want)
		}
	}
	for errno := unix.Errno(1); errno < 133; errno++ {
		if err := streamError(l.Local(), errno); !errors.Is(err, errno) {
			t.Errorf("%v does not wrap %v", err, errno)
		}
	}
}

// What the peer said before it broke off is received, though sending has found
// out first: in iWARP that is the Terminate message, which says why.
func TestSend_failureLeavesWhatHasArrived(t *testing.T) {
	s := open(t, Config{})
	x, y := pair(t, s, listen(t, s, "127.0.0.1:0"))
	x.Send([][]byte{[]byte("never read")})
	y.Send([][]byte{[]byte("why")})
	for unread := 0; unread == 0; { // they may be on their way still
		unread, _ = unix.IoctlGetInt(y.fd, unix.SIOCINQ)
	}
	y.Close(false) // a reset: there are unread bytes
	for x.sendErr == 0 {
		x.Send([][]byte{[]byte("more")})
	}
	if x.State() != fabric.StreamOpen {
		t.Fatal("failed before everything was received")
	}
	receive(t, x, "why")
	for x.State() == fabric.StreamOpen {
		x.Recv(make([]byte, 10))
		s.Poll(clock.Now(), nil)
	}
	if !errors.Is(x.Err(), unix.ECONNRESET) {
		t.Errorf("failed with %v", x.Err())
	}
	if ids := s.Poll(clock.Now(), nil); len(ids) > 0 { // named once, above
		t.Errorf("%v are named, and nothing is new", ids)
	}
}

// Without descriptors connections wait, and nobody spins on them.
func TestAccept_withoutDescriptors(t *testing.T) {
	s := open(t, Config{})
	l := listen(t, s, "127.0.0.1:0")
	c, err := s.Dial(l.Local(), netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	for c.State() == fabric.StreamConnecting {
		s.Poll(clock.Now(), nil)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	none := old
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	in := l.Accept()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if in != nil {
		t.Fatal("accepted without a descriptor")
	}
	now := s.now
	if d := s.Deadline(); d != now.Add(descriptorWait) {
		t.Fatalf("deadline %v after now", d.Sub(now))
	}
	if ids := s.Poll(now.Add(descriptorWait-1), nil); has(ids, l.id) {
		t.Error("named too early")
	}
	if ids := s.Poll(now.Add(descriptorWait), nil); !has(ids, l.id) {
		t.Error("the listener is not named again")
	}
	if l.Accept() == nil {
		t.Error("the connection is lost")
	}
	if d := s.Deadline(); d != mono.Never {
		t.Errorf("deadline %d when nothing is to be done", d)
	}
}

func has(ids []fabric.StreamID, id fabric.StreamID) bool {
	for _, i := range ids {
		if i == id {
			return true
		}
	}
	return false
}

// With few streams each is named each time; with many, when there is something.
func TestPoll_fewAndMany(t *testing.T) {
	s := open(t, Config{})
	l := listen(t, s, "127.0.0.1:0")
	var all []*Stream
	for range fewStreams / 2 {
		x, y := pair(t, s, l)
		all = append(all, x, y)
	}
	if ids := s.Poll(clock.Now(), nil); len(ids) < fewStreams {
		t.Errorf("of %d streams %v are named", fewStreams, ids)
	}
	x, y := pair(t, s, l)
	all = append(all, x, y)
	for len(s.Poll(clock.Now(), nil)) > 0 {
		continue
	}
	y.Send([][]byte{[]byte("ping")})
	ids := s.Poll(clock.Now(), nil)
	for ; len(ids) == 0; ids = s.Poll(clock.Now(), nil) {
		continue
	}
	if len(ids) != 1 || ids[0] != x.id {
		t.Errorf("%v are named; only %d has something new", ids, x.id)
	}
	receive(t, x, "ping")
	for _, c := range all {
		c.Close(false)
	}
	if len(s.open) != 0 || s.used != 1 {
		t.Errorf("%d streams are open, %d numbers are used", len(s.open), s.used)
	}
}

func TestPoll_costsNothingWithoutStreams(t *testing.T) {
	s := open(t, Config{})
	l := listen(t, s, "127.0.0.1:0")
	x, y := pair(t, s, l)
	x.Close(true)
	for y.State() == fabric.StreamOpen { // so that there is news of it
		y.drained = false
		y.Recv(make([]byte, 1))
	}
	y.Close(true)
	l.retryLater()
	l.Close()
	s.FD()
	if ids := s.Poll(clock.Now(), nil); len(ids) != 0 || !s.ask {
		t.Errorf("%v are named, or epoll was asked", ids)
	}
	if d := s.Deadline(); d != mono.Never {
		t.Errorf("deadline %d when nothing is to be done", d)
	}
}

func TestAllocs_pingPong(t *testing.T) {
	for _, streams := range []int{1, fewStreams + 1} {
		s := open(t, Config{})
		l := listen(t, s, "127.0.0.1:0")
		var x, y *Stream
		for range streams {
			x, y = pair(t, s, l)
		}
		data, buf := make([]byte, 3000), make([]byte, 4096)
		bufs := [][]byte{data[:24], data[24:100], data[100:]}
		ready := make([]fabric.StreamID, 0, 16)
		n := testing.AllocsPerRun(100, func() {
			x.Send(bufs)
			for got := 0; got < len(data); {
				ready = s.Poll(clock.Now(), ready[:0])
				n, _ := y.Recv(buf)
				got += n
			}
			x.MSS()
			s.FD()
			s.Flush()
		})
		if n != 0 {
			t.Errorf("%v allocations per message beside %d streams", n, streams)
		}
	}
}

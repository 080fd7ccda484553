package netstack

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// transfer sends count random bytes from a to b and checks them.
func (p *pair) transfer(a, b *Stream, count int) {
	p.t.Helper()
	want := make([]byte, count)
	for i := range want {
		want[i] = byte(rand.Uint32())
	}
	got := make([]byte, 0, count)
	rest := want
	buf := make([]byte, 64<<10)
	p.until(func() bool {
		if len(rest) > 0 {
			half := len(rest) / 2
			rest = rest[a.Send([][]byte{rest[:half], nil, rest[half:]}):]
		}
		n, eof := b.Recv(buf)
		if eof {
			p.t.Fatal("end of the stream")
		}
		got = append(got, buf[:n]...)
		return len(got) >= count
	})
	if !bytes.Equal(got, want) {
		p.t.Fatal("wrong data")
	}
}

// What arrives on an open connection can be read after the Poll that took its frame from the
// port, and no goroutine of gVisor is let in for it.
func TestPoll_handlesSegmentsOfOpenStreams(t *testing.T) {
	p := newPair(t, 1500, nil)
	a, b := p.connect()
	p.transfer(a, b, 8)
	p.transfer(b, a, 8)
	var got [8]byte
	for i := range 100 {
		p.b.inline.yields = 0 // of the handshake
		a.Send([][]byte{make([]byte, len(got))})
		p.a.Flush()
		p.ready = p.b.Poll(mono.Real{}.Now(), p.ready[:0])
		if n, _ := b.Recv(got[:]); n != len(got) || p.b.inline.yields != 0 {
			t.Fatalf("message %d: %d bytes after one Poll, and %d more let gVisor's goroutines in", i, n, p.b.inline.yields)
		}
		p.b.Flush()
		p.ready = p.a.Poll(mono.Real{}.Now(), p.ready[:0])
	}
}

// families are the changes that put a pair on IPv4 and on IPv6.
var families = map[string]func(*Config){"IPv4": nil, "IPv6": over6}

func TestStream_transfersBytes(t *testing.T) {
	for name, family := range families {
		for _, mtu := range []int{576, 1500, 9000, 65535} {
			if mtu < inet.MinMTU6 && family != nil {
				mtu = inet.MinMTU6
			}
			p := newPair(t, mtu, family)
			a, b := p.connect()
			for _, n := range []int{1, 8, 1000, 100_000, 3 << 20} {
				p.transfer(a, b, n)
				p.transfer(b, a, n)
			}
			if a.Remote() != b.Local() || b.Remote() != a.Local() || a.Local().Addr() != p.a.Addr() {
				t.Errorf("%s: %v to %v, and %v to %v", name, a.Local(), a.Remote(), b.Local(), b.Remote())
			}
		}
	}
}

// The size that MSS tells is that of the segments on the wire.
func TestStream_mssIsWhatIsSent(t *testing.T) {
	for name, family := range families {
		for _, mtu := range []int{1500, 9000} {
			p := newPair(t, mtu, family)
			a, b := p.connect()
			most := 0
			tcp := inet.EthernetLen + p.a.family.headerLen
			p.ports[0].lose = func(frame []byte) bool {
				if frame[tcp+13]&2 == 0 {
					most = max(most, len(frame)-tcp-int(frame[tcp+12]>>4)*4)
				}
				return false
			}
			p.transfer(a, b, 1<<20)
			if a.MSS() != most || b.MSS() != most {
				t.Errorf("%s, MTU %d: MSS is %d and %d, segments are of %d bytes", name, mtu, a.MSS(), b.MSS(), most)
			}
		}
	}
}

func TestStream_survivesLoss(t *testing.T) {
	for _, family := range families {
		p := newPair(t, 1500, family)
		rng := rand.New(rand.NewPCG(1, 1))
		for _, port := range p.ports {
			port.lose = func([]byte) bool { return rng.IntN(50) == 0 }
		}
		a, b := p.connect()
		p.transfer(a, b, 1<<20)
		p.transfer(b, a, 1<<20)
	}
}

func TestStream_endsInOrder(t *testing.T) {
	p := newPair(t, 1500, nil)
	a, b := p.connect()
	a.Send([][]byte{[]byte("last words")})
	a.CloseWrite()
	if n := a.Send([][]byte{[]byte("more")}); n != 0 {
		t.Errorf("%d bytes were taken behind the end", n)
	}
	var got []byte
	buf := make([]byte, 4)
	end := false
	p.until(func() bool {
		n, eof := b.Recv(buf)
		got = append(got, buf[:n]...)
		end = eof
		return end
	})
	if string(got) != "last words" {
		t.Fatalf("%q", got)
	}
	p.transfer(b, a, 1000) // the other direction is open
	b.CloseWrite()
	p.until(func() bool { _, eof := a.Recv(buf); return eof })
	a.Close(false)
	b.Close(false)
	p.until(func() bool { return len(p.a.leaving)+len(p.b.leaving) == 0 })
}

func TestStream_abortResets(t *testing.T) {
	p := newPair(t, 1500, nil)
	a, b := p.connect()
	a.Close(true)
	buf := make([]byte, 4)
	p.until(func() bool { b.Recv(buf); return b.State() == fabric.StreamFailed })
	if err := b.Err(); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("%v, want ECONNRESET", err)
	}
	if n, eof := b.Recv(buf); n != 0 || eof {
		t.Errorf("a failed stream returns %d bytes, end %v", n, eof)
	}
}

func TestStream_closeDeliversWhatWasSent(t *testing.T) {
	p := newPair(t, 1500, nil)
	a, b := p.connect()
	const size = 1 << 20
	sent := a.Send([][]byte{make([]byte, size)})
	a.Close(false)
	got := 0
	buf := make([]byte, 64<<10)
	p.until(func() bool {
		n, eof := b.Recv(buf)
		got += n
		return eof
	})
	if got != sent {
		t.Errorf("%d of %d bytes arrived", got, sent)
	}
}

func TestDial_refused(t *testing.T) {
	p := newPair(t, 1500, nil)
	a, err := p.a.Dial(netip.AddrPortFrom(addrB, 4791), netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	p.until(func() bool { return a.State() != fabric.StreamConnecting })
	if err := a.Err(); a.State() != fabric.StreamFailed || !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("state %d, %v: want ECONNREFUSED", a.State(), err)
	}
	if p.a.Stats().Failed != 1 {
		t.Errorf("%+v", p.a.Stats())
	}
}

func TestDial_badUse(t *testing.T) {
	p := newPair(t, 1500, func(c *Config) { c.PortBase, c.Ports = 1000, 100 })
	at := netip.MustParseAddrPort
	for _, c := range []struct{ to, from netip.AddrPort }{
		{netip.AddrPort{}, netip.AddrPort{}},
		{at("[2001:db8::1]:80"), netip.AddrPort{}},
		{at("10.0.0.2:0"), netip.AddrPort{}},
		{at("10.0.0.9:80"), netip.AddrPort{}}, // the resolver does not know it
		{at("10.0.0.1:80"), netip.AddrPort{}},
		{at("10.0.0.2:80"), at("10.0.0.7:0")},
		{at("10.0.0.2:80"), at("10.0.0.1:80")},
	} {
		if s, err := p.a.Dial(c.to, c.from); err == nil {
			t.Errorf("%v from %v: dialled %v", c.to, c.from, s)
		}
	}
	if _, err := p.a.Dial(at("10.0.0.1:80"), netip.AddrPort{}); !errors.Is(err, ErrOwnAddress) {
		t.Error(err)
	}
	if l, err := p.a.Listen(at("10.0.0.1:99"), 1); err == nil {
		t.Errorf("listens at %v", l.Local())
	}
	l, err := p.a.Listen(at("10.0.0.1:1099"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.a.Listen(at("10.0.0.1:1099"), 1); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("%v, want EADDRINUSE", err)
	}
	l.Close()
	if s, err := p.a.Dial(at("10.0.0.2:80"), at("10.0.0.1:1050")); err != nil || s.Local() != at("10.0.0.1:1050") {
		t.Errorf("%v %v", s, err)
	}
}

// Every ephemeral port is one whose frames come to us.
func TestDial_portsAreSteered(t *testing.T) {
	p := newPair(t, 1500, func(c *Config) { c.PortBase, c.Ports = 1000, 3 })
	to := netip.AddrPortFrom(addrB, 2000)
	seen := map[uint16]bool{}
	for range 3 {
		s, err := p.a.Dial(to, netip.AddrPort{})
		if err != nil {
			t.Fatal(err)
		}
		port := s.Local().Port()
		if port < 1000 || port > 1002 || seen[port] {
			t.Errorf("port %d", port)
		}
		seen[port] = true
	}
	if s, err := p.a.Dial(to, netip.AddrPort{}); err == nil {
		t.Errorf("a fourth connection: %v", s.Local())
	}
}

// Close leaves no goroutine behind, and ids are used again.
func TestClose_leavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	p := newPair(t, 1500, nil)
	for range 10 {
		a, b := p.connect()
		p.transfer(a, b, 10)
		a.Close(false)
		b.Close(false)
	}
	if p.a.idNext > 2 || p.b.idNext > 2 {
		t.Errorf("numbers up to %d and %d", p.a.idNext, p.b.idNext)
	}
	a, _ := p.connect()
	a.Send([][]byte{[]byte("unread")})
	if err := errors.Join(p.a.Close(), p.b.Close()); err != nil {
		t.Fatal(err)
	}
	for runtime.NumGoroutine() > before { // they need a moment to end
		time.Sleep(time.Millisecond)
	}
}

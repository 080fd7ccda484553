package verbs_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// cmEnd is a program that connects, over the kernel's TCP on loopback.
type cmEnd struct {
	t   testing.TB
	ctx *verbs.Context
	ch  *verbs.CMChannel
	pd  *verbs.PD
	cq  *verbs.CQ
}

func newCMEnd(t testing.TB) *cmEnd {
	t.Helper()
	ctx, err := device.Open(device.Spec{Fabric: "tcp", Arena: 1 << 20, Poller: progress.PollerConfig{NoSpin: true}})
	must(t, err)
	t.Cleanup(func() { must(t, ctx.Close()) })
	e := &cmEnd{t: t, ctx: ctx}
	e.ch, err = ctx.CreateCMChannel()
	must(t, err)
	e.pd, err = ctx.AllocPD()
	must(t, err)
	e.cq, err = ctx.CreateCQ(verbs.CQInit{})
	must(t, err)
	return e
}

func (e *cmEnd) qp() *verbs.QP {
	e.t.Helper()
	q, err := e.pd.CreateQP(verbs.QPInit{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, Cap: verbs.QPCap{MaxSendWR: 2, MaxRecvWR: 2}})
	must(e.t, err)
	return q
}

func (e *cmEnd) listen(at string, backlog int) *verbs.CMID {
	e.t.Helper()
	id, err := e.ch.CreateID()
	must(e.t, err)
	must(e.t, id.BindAddr(netip.MustParseAddrPort(at)))
	must(e.t, id.Listen(backlog))
	return id
}

// connect begins to connect; the events of the way there come before others.
func (e *cmEnd) connect(to netip.AddrPort, p verbs.ConnParam) *verbs.CMID {
	e.t.Helper()
	id, err := e.ch.CreateID()
	must(e.t, err)
	must(e.t, id.ResolveAddr(to, 0))
	must(e.t, id.ResolveRoute(0))
	if p.QP == nil {
		p.QP = e.qp()
	}
	must(e.t, id.Connect(p))
	return id
}

// steer steps the ends in turns until one has an event, other than those of
// the way there.
func steer(t testing.TB, ends ...*cmEnd) (verbs.CMEvent, *cmEnd) {
	t.Helper()
	for {
		for _, e := range ends {
			ev, got := e.ch.GetEvent()
			if got && ev.Type != verbs.CMAddrResolved && ev.Type != verbs.CMRouteResolved {
				return ev, e
			}
		}
	}
}

// expect steers until an end has an event, which is to be the next one of all.
func expect(t testing.TB, at *cmEnd, want verbs.CMEventType, ends ...*cmEnd) verbs.CMEvent {
	t.Helper()
	ev, e := steer(t, ends...)
	if e != at || ev.Type != want {
		t.Fatalf("event %v (%v), want %v", ev.Type, ev.Err, want)
	}
	return ev
}

// needIPv6 skips on machines whose loopback has none.
func needIPv6(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("needs IPv6 on loopback: ", err)
	}
	must(t, l.Close())
}

// both steers until each of the two ends has the event that is wanted of it, in
// any order.
func both(t testing.TB, a, b *cmEnd, wantA, wantB verbs.CMEventType) (evA, evB verbs.CMEvent) {
	t.Helper()
	for evA.Type == 0 || evB.Type == 0 {
		ev, e := steer(t, a, b)
		switch {
		case e == a && ev.Type == wantA && evA.Type == 0:
			evA = ev
		case e == b && ev.Type == wantB && evB.Type == 0:
			evB = ev
		default:
			t.Fatalf("event %v (%v), want %v and %v", ev.Type, ev.Err, wantA, wantB)
		}
	}
	return evA, evB
}

// Connect, accept and disconnect over both families, with private data and
// addresses as each end sees them.
func TestCM_loopback(t *testing.T) {
	for _, c := range []struct{ name, at, to string }{
		{"IPv4", "127.0.0.1:0", "127.0.0.1"},
		{"IPv4, any address", "0.0.0.0:0", "127.0.0.1"},
		{"IPv6", "[::1]:0", "::1"},
		{"IPv6, any address", "[::]:0", "::1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := netip.MustParseAddr(c.to)
			if to.Is6() {
				needIPv6(t)
			}
			client, server := newCMEnd(t), newCMEnd(t)
			l := server.listen(c.at, 0)
			id := client.connect(netip.AddrPortFrom(to, l.LocalAddr().Port()), verbs.ConnParam{PrivateData: []byte("hello")})
			ev := expect(t, server, verbs.CMConnectRequest, client, server)
			peer := ev.ID
			if ev.Listener != l || string(ev.Param.PrivateData) != "hello" {
				t.Errorf("%+v", ev)
			}
			must(t, peer.Accept(verbs.ConnParam{QP: server.qp(), PrivateData: []byte("world")}))
			ev, _ = both(t, client, server, verbs.CMEstablished, verbs.CMEstablished)
			if string(ev.Param.PrivateData) != "world" {
				t.Errorf("%+v", ev)
			}
			if id.LocalAddr() != peer.PeerAddr() || id.PeerAddr() != peer.LocalAddr() || id.PeerAddr().Addr() != to {
				t.Errorf("%v to %v, and %v to %v", id.LocalAddr(), id.PeerAddr(), peer.LocalAddr(), peer.PeerAddr())
			}
			must(t, id.Disconnect())
			ev, ev2 := both(t, client, server, verbs.CMDisconnected, verbs.CMDisconnected)
			if ev.Err != nil || ev2.Err != nil {
				t.Errorf("%v, %v", ev.Err, ev2.Err)
			}
		})
	}
}

// The port that a program binds to is the one that it connects from.
func TestCM_boundPort(t *testing.T) {
	client, server := newCMEnd(t), newCMEnd(t)
	l := server.listen("127.0.0.1:0", 0)
	probe, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	free := probe.Addr().(*net.TCPAddr).AddrPort()
	must(t, probe.Close())
	id, err := client.ch.CreateID()
	must(t, err)
	must(t, id.BindAddr(free))
	must(t, id.ResolveAddr(l.LocalAddr(), 0))
	must(t, id.ResolveRoute(0))
	must(t, id.Connect(verbs.ConnParam{QP: client.qp()}))
	if ev := expect(t, server, verbs.CMConnectRequest, client, server); ev.ID.PeerAddr() != free {
		t.Errorf("connected from %v, want %v", ev.ID.PeerAddr(), free)
	}
}

// Where nobody listens, and what the kernel says to that.
func TestCM_nobodyListens(t *testing.T) {
	client := newCMEnd(t)
	probe, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	to := probe.Addr().(*net.TCPAddr).AddrPort()
	must(t, probe.Close())
	client.connect(to, verbs.ConnParam{})
	if ev := expect(t, client, verbs.CMRejected, client); !errors.Is(ev.Err, syscall.ECONNREFUSED) {
		t.Errorf("%v", ev.Err)
	}
	server := newCMEnd(t)
	l := server.listen("127.0.0.1:0", 0)
	other, err := server.ch.CreateID()
	must(t, err)
	must(t, other.BindAddr(l.LocalAddr()))
	if err := other.Listen(0); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v", err)
	}
	if other.State() != verbs.IDBound {
		t.Errorf("state %v", other.State())
	}
}

// A server that says no.
func TestCM_reject(t *testing.T) {
	client, server := newCMEnd(t), newCMEnd(t)
	l := server.listen("127.0.0.1:0", 0)
	client.connect(l.LocalAddr(), verbs.ConnParam{})
	ev := expect(t, server, verbs.CMConnectRequest, client, server)
	must(t, ev.ID.Reject([]byte("go away")))
	must(t, ev.ID.Destroy())
	if ev := expect(t, client, verbs.CMRejected, client, server); string(ev.Param.PrivateData) != "go away" {
		t.Errorf("%+v", ev)
	}
}

// A thousand connections, ended by either end in each way, leave no descriptor
// and no identifier behind.
func TestCM_thousandConnections(t *testing.T) {
	client, server := newCMEnd(t), newCMEnd(t)
	l := server.listen("127.0.0.1:0", 0)
	before := 0
	for i := range 1000 {
		if i == 10 {
			before = testenv.OpenFiles(t)
		}
		id := client.connect(l.LocalAddr(), verbs.ConnParam{})
		peer := expect(t, server, verbs.CMConnectRequest, client, server).ID
		must(t, peer.CreateQP(server.pd, verbs.QPInit{SendCQ: server.cq, RecvCQ: server.cq, Cap: verbs.QPCap{MaxSendWR: 2, MaxRecvWR: 2}}))
		must(t, peer.Accept(verbs.ConnParam{}))
		both(t, client, server, verbs.CMEstablished, verbs.CMEstablished)
		switch i % 4 {
		case 0:
			must(t, id.Disconnect())
			both(t, client, server, verbs.CMDisconnected, verbs.CMDisconnected)
		case 1:
			must(t, id.Disconnect())
			must(t, peer.Disconnect())
			both(t, client, server, verbs.CMDisconnected, verbs.CMDisconnected)
		case 2:
			must(t, peer.Destroy())
			if ev := expect(t, client, verbs.CMDisconnected, client, server); ev.Err == nil {
				t.Fatal("an abort is no end in order")
			}
		case 3:
			must(t, id.Destroy())
			expect(t, server, verbs.CMDisconnected, client, server)
		}
		peer.QP.Destroy()
		for _, x := range []*verbs.CMID{id, peer} {
			if x.State() != verbs.IDDestroyed {
				must(t, x.Destroy())
			}
		}
	}
	if after := testenv.OpenFiles(t); after > before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
	must(t, l.Destroy())
	must(t, server.ch.Close())
	must(t, client.ch.Close())
}

// Many at once, to a server that takes three at a time.
func TestCM_manyAtOnce(t *testing.T) {
	const n = 200
	client, server := newCMEnd(t), newCMEnd(t)
	l := server.listen("127.0.0.1:0", 3)
	for i := range n {
		client.connect(l.LocalAddr(), verbs.ConnParam{PrivateData: fmt.Append(nil, i)})
	}
	heard := map[string]bool{}
	for established := 0; established < 2*n; {
		switch ev, _ := steer(t, client, server); ev.Type {
		case verbs.CMConnectRequest:
			heard[string(ev.Param.PrivateData)] = true
			must(t, ev.ID.Accept(verbs.ConnParam{QP: server.qp()}))
		case verbs.CMEstablished:
			established++
		default:
			t.Fatalf("event %v: %v", ev.Type, ev.Err)
		}
	}
	if len(heard) != n {
		t.Errorf("%d of %d were heard", len(heard), n)
	}
}

// Programs that are no RDMA peers, and one that is slow, come between.
func TestCM_strangers(t *testing.T) {
	client, server := newCMEnd(t), newCMEnd(t)
	l := server.listen("127.0.0.1:0", 0)
	var open []net.Conn
	for _, say := range []string{"", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "MPA ID Req Fra", "MPA ID Rep Frame\x40\x01\x00\x00"} {
		c, err := net.Dial("tcp4", l.LocalAddr().String())
		must(t, err)
		_, err = c.Write([]byte(say))
		must(t, err)
		open = append(open, c)
	}
	client.connect(l.LocalAddr(), verbs.ConnParam{})
	peer := expect(t, server, verbs.CMConnectRequest, client, server).ID
	must(t, peer.Accept(verbs.ConnParam{QP: server.qp()}))
	both(t, client, server, verbs.CMEstablished, verbs.CMEstablished)
	for _, c := range open {
		must(t, c.Close())
	}
	for server.ctx.DroppedStartups() < uint64(len(open)) {
		server.ctx.Engine().Step()
	}
}

// Three hundred connections that say nothing do not keep a listener from serving:
// who has something to say is heard long before all of them have had their time.
func TestCM_manySilent(t *testing.T) {
	client, server := newCMEnd(t), newCMEnd(t)
	l := server.listen("127.0.0.1:0", 0)
	for range 300 {
		c, err := net.Dial("tcp4", l.LocalAddr().String())
		must(t, err)
		defer c.Close()
	}
	client.connect(l.LocalAddr(), verbs.ConnParam{Timeout: 3 * mpa.RequestTimeout})
	peer := expect(t, server, verbs.CMConnectRequest, client, server).ID
	must(t, peer.Accept(verbs.ConnParam{QP: server.qp()}))
	both(t, client, server, verbs.CMEstablished, verbs.CMEstablished)
	if n := server.ctx.DroppedStartups(); n < 300-64 {
		t.Errorf("%d had to go: were they there?", n)
	}
}

// A program that sleeps in poll(2) on the channel's descriptor hears of
// everything, and so does one that waits.
func TestCMChannel_sleeps(t *testing.T) {
	client, server := newCMEnd(t), newCMEnd(t)
	l := server.listen("127.0.0.1:0", 0)
	q, done := server.qp(), make(chan error, 1)
	go func() { // the server sleeps in poll
		for n := 0; ; {
			ev, got := server.ch.GetEvent()
			switch {
			case !got:
				if err := sleepPoll(server.ch.FD()); err != nil {
					done <- err
					return
				}
			case ev.Type == verbs.CMConnectRequest:
				if err := ev.ID.Accept(verbs.ConnParam{QP: q}); err != nil {
					done <- err
					return
				}
			case ev.Type == verbs.CMDisconnected:
				done <- ev.Err
				return
			}
			if n++; n > 10000 {
				done <- errors.New("poll returns for nothing")
				return
			}
		}
	}()
	id := client.connect(l.LocalAddr(), verbs.ConnParam{})
	for _, want := range []verbs.CMEventType{verbs.CMAddrResolved, verbs.CMRouteResolved, verbs.CMEstablished} {
		if ev := client.ch.Wait(); ev.Type != want || ev.ID != id {
			t.Fatalf("event %v: %v, want %v", ev.Type, ev.Err, want)
		}
	}
	must(t, id.Disconnect())
	if ev := client.ch.Wait(); ev.Type != verbs.CMDisconnected || ev.Err != nil {
		t.Fatalf("event %v: %v", ev.Type, ev.Err)
	}
	must(t, <-done)
}

package verbs_test

import (
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/internal/test/conform"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
)

// stillClock is moved by the test alone.
type stillClock struct{ now mono.Time }

func (c *stillClock) Now() mono.Time { return c.now }

// bench is a pipe whose wire and clock are in the test's hands: what it does
// depends on nothing but the test.
type bench struct {
	clock stillClock
	a, b  *end
	lose  func(frame []byte) bool // nil loses nothing
	carry [2]*inet.Datagram
	addrs [2]netip.AddrPort
}

// newBench makes two carriers; ends is how many of them get a context.
func newBench(t testing.TB, mtu, ends, bufSize int) *bench {
	t.Helper()
	x := &bench{}
	wire := func(frame []byte) []byte {
		if x.lose != nil && x.lose(frame) {
			return nil
		}
		return frame
	}
	pa, pb, err := conform.NewPipe(conform.PipeConfig{MTU: mtu, Frames: 2048, Depth: 512, Wire: wire})
	must(t, err)
	x.addrs = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:18700"), netip.MustParseAddrPort("10.0.0.2:18700")}
	macs := []inet.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	hops := inet.Fixed{}
	for i, a := range x.addrs {
		hops[a.Addr()] = inet.Hop{MAC: macs[i], Source: x.addrs[1-i].Addr(), MTU: mtu}
	}
	for i, port := range []*conform.Pipe{pa, pb} {
		x.carry[i], err = inet.New(inet.Config{Port: port, Resolver: hops, Local: x.addrs[i], MAC: macs[i]})
		must(t, err)
	}
	for i, at := range []**end{&x.a, &x.b}[:ends] {
		*at = x.open(t, i, bufSize)
	}
	for range 20 {
		x.step()
	}
	return x
}

func (x *bench) open(t testing.TB, i, bufSize int) *end {
	t.Helper()
	e := &end{}
	var err error
	e.ctx, err = verbs.New(verbs.Config{Datagram: x.carry[i], Engine: progress.New(&x.clock, noPark{}), Key: 42, Epoch: uint32(i + 1)})
	must(t, err)
	e.pd, err = e.ctx.AllocPD()
	must(t, err)
	e.scq, err = e.ctx.CreateCQ(verbs.CQInit{})
	must(t, err)
	e.rcq, err = e.ctx.CreateCQ(verbs.CQInit{})
	must(t, err)
	e.qp, err = e.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: e.scq, RecvCQ: e.rcq})
	must(t, err)
	e.ah, err = e.pd.CreateAH(x.addrs[1-i])
	must(t, err)
	e.mr, err = e.pd.RegMR(make([]byte, bufSize), verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	must(t, err)
	return e
}

// step moves both ends once.
func (x *bench) step() {
	for _, e := range []*end{x.a, x.b} {
		if e != nil {
			e.ctx.Engine().Step()
		}
	}
}

// run moves both ends for a time.
func (x *bench) run(d mono.Duration) {
	for until := x.clock.now.Add(d); x.clock.now < until; {
		x.step()
		next := until
		for _, e := range []*end{x.a, x.b} {
			if e != nil {
				next = min(next, e.ctx.Engine().NextDeadline())
			}
		}
		x.clock.now = max(next, x.clock.now+1000)
	}
	x.step()
}

// liar is an endpoint that sends whatever the test wants: what a peer may do
// that has the job key and bad intentions.
type liar struct {
	t    testing.TB
	x    *bench
	ep   *llp.Endpoint
	peer *llp.Peer
	lsn  serial.U32 // of its first ULPDU
}

// newLiar puts a liar at the second end of a bench, associated with the first.
func newLiar(t testing.TB, x *bench) *liar {
	t.Helper()
	ep, err := llp.New(x.carry[1], llp.Config{Key: 42, Epoch: 2}, x.clock.now)
	must(t, err)
	ep.SetReliable(true)
	remote, path, err := ep.Resolve(x.addrs[0])
	must(t, err)
	l := &liar{t: t, x: x, ep: ep, peer: ep.Associate(remote, path)}
	for range 10 {
		for p := ep.Expire(x.clock.now); p != nil; p = ep.Expire(x.clock.now) {
			ep.Rearm(p, true)
		}
		l.move()
	}
	if !l.peer.Open() {
		t.Fatal("no association")
	}
	l.lsn = l.peer.Snd.Next()
	return l
}

// move flushes what the liar has to say, lets the other end step, and drops
// what it answers.
func (l *liar) move() {
	l.ep.Flush()
	l.x.step()
	l.x.step()
	l.ep.Recv(l.x.clock.now, false)
	var h dgram.Header
	for p, r := l.ep.Next(&h); r != nil; p, r = l.ep.Next(&h) {
		_ = p
	}
	l.ep.Release()
	l.ep.Flush()
}

// say sends one ULPDU as number i of the association.
func (l *liar) say(i int, h ddp.Header, payload []byte) {
	l.t.Helper()
	if !l.ep.Begin(l.peer, l.lsn.Add(int32(i)), h.Len()+len(payload)) {
		l.t.Fatal("no room")
	}
	h.Put(l.ep.ULPDU(h.Len()+len(payload), h.Len()))
	l.ep.Payload(payload)
	l.ep.Commit(l.x.clock.now, l.peer, 63, false)
}

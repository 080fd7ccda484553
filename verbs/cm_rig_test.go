package verbs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// scripted is a carrier of streams whose other ends are the test: it feeds
// bytes, and looks at what was sent.
type scripted struct {
	fabric.Streams
	ipv6    bool
	addr    netip.Addr
	arena   *mem.Arena
	users   []any // *scriptedStream and *scriptedListener by number; nil: free
	news    []fabric.StreamID
	dialErr error
	dialed  []*scriptedStream
	opened  int // streams that were not closed
}

func (c *scripted) Caps() fabric.StreamCaps {
	return fabric.StreamCaps{Carrier: "script", IPv6: c.ipv6}
}
func (c *scripted) Arena() *mem.Arena         { return c.arena }
func (c *scripted) Addr() netip.Addr          { return c.addr }
func (c *scripted) Flush()                    {}
func (c *scripted) Deadline() mono.Time       { return mono.Never }
func (c *scripted) FD() int                   { return -1 }
func (c *scripted) Stats() fabric.StreamStats { return fabric.StreamStats{} }
func (c *scripted) Close() error              { return nil }

func (c *scripted) number(u any) fabric.StreamID {
	if i := slices.Index(c.users, nil); i >= 0 {
		c.users[i] = u
		return fabric.StreamID(i)
	}
	c.users = append(c.users, u)
	return fabric.StreamID(len(c.users) - 1)
}

func (c *scripted) Poll(_ mono.Time, ready []fabric.StreamID) []fabric.StreamID {
	ready = append(ready, c.news...)
	c.news = c.news[:0]
	return ready
}

func (c *scripted) stream(local, remote netip.AddrPort) *scriptedStream {
	s := &scriptedStream{carrier: c, local: local, remote: remote, room: 1 << 20, mss: 1448}
	s.id = c.number(s)
	c.opened++
	return s
}

func (c *scripted) Dial(to, from netip.AddrPort) (fabric.Stream, error) {
	if c.dialErr != nil {
		return nil, c.dialErr
	}
	s := c.stream(netip.AddrPortFrom(c.Addr(), 40000), to)
	c.dialed = append(c.dialed, s)
	return s, nil
}

func (c *scripted) Listen(at netip.AddrPort, backlog int) (fabric.Listener, error) {
	if at.Port() == 0 {
		at = netip.AddrPortFrom(at.Addr(), 50000)
	}
	l := &scriptedListener{carrier: c, at: at}
	l.id = c.number(l)
	return l, nil
}

type scriptedListener struct {
	carrier *scripted
	id      fabric.StreamID
	at      netip.AddrPort
	waiting []*scriptedStream
	closed  bool
}

func (l *scriptedListener) ID() fabric.StreamID   { return l.id }
func (l *scriptedListener) Local() netip.AddrPort { return l.at }

func (l *scriptedListener) Accept() fabric.Stream {
	if len(l.waiting) == 0 {
		return nil
	}
	s := l.waiting[0]
	l.waiting = l.waiting[1:]
	return s
}

func (l *scriptedListener) Close() {
	l.closed = true
	l.carrier.users[l.id] = nil
}

// connect lets a peer connect; it is named once.
func (l *scriptedListener) connect() *scriptedStream {
	s := l.carrier.stream(l.at, netip.MustParseAddrPort("10.0.0.9:1234"))
	s.state = fabric.StreamOpen
	l.waiting = append(l.waiting, s)
	l.carrier.news = append(l.carrier.news, l.id)
	return s
}

type scriptedStream struct {
	carrier       *scripted
	id            fabric.StreamID
	local, remote netip.AddrPort
	state         fabric.StreamState
	err           error
	in            []byte // fed, not received
	ended         bool   // behind in
	sent          []byte
	room          int // bytes that Send takes before it is full
	mss           int
	finished      bool
	closed        bool
	aborted       bool
}

func (s *scriptedStream) ID() fabric.StreamID       { return s.id }
func (s *scriptedStream) State() fabric.StreamState { return s.state }
func (s *scriptedStream) Err() error                { return s.err }
func (s *scriptedStream) Local() netip.AddrPort     { return s.local }
func (s *scriptedStream) Remote() netip.AddrPort    { return s.remote }
func (s *scriptedStream) MSS() int                  { return s.mss }
func (s *scriptedStream) CloseWrite()               { s.finished = true }

func (s *scriptedStream) Recv(dst []byte) (int, bool) {
	s.use()
	if s.state != fabric.StreamOpen {
		return 0, false
	}
	n := copy(dst, s.in)
	s.in = s.in[n:]
	return n, s.ended && len(s.in) == 0
}

func (s *scriptedStream) RecvVector(dst [][]byte) (n int, eof bool) {
	for _, b := range dst {
		var k int
		k, eof = s.Recv(b)
		n += k
	}
	return n, eof
}

func (s *scriptedStream) Send(bufs [][]byte) (n int) {
	s.use()
	if s.state != fabric.StreamOpen {
		return 0
	}
	for _, b := range bufs {
		k := min(len(b), s.room)
		s.sent = append(s.sent, b[:k]...)
		s.room -= k
		n += k
	}
	return n
}

func (s *scriptedStream) use() {
	if s.closed {
		panic("a stream is used after Close")
	}
}

func (s *scriptedStream) Close(abort bool) {
	s.use()
	s.closed, s.aborted = true, abort
	s.carrier.users[s.id] = nil
	s.carrier.opened--
}

// What the test, which is the peer, does.

func (s *scriptedStream) news() { s.carrier.news = append(s.carrier.news, s.id) }

func (s *scriptedStream) open() {
	s.state = fabric.StreamOpen
	s.news()
}

func (s *scriptedStream) feed(b []byte) {
	s.in = append(s.in, b...)
	s.news()
}

func (s *scriptedStream) end() {
	s.ended = true
	s.news()
}

func (s *scriptedStream) fail(err error) {
	s.state, s.err = fabric.StreamFailed, err
	s.news()
}

func (s *scriptedStream) grant(n int) {
	s.room += n
	s.news()
}

// parkless is a parker for tests that step.
type parkless struct{}

func (parkless) Park(mono.Time, mono.Duration) bool { return true }

type testClock struct{ now mono.Time }

func (c *testClock) Now() mono.Time { return c.now }

// cmRig is one end under test, whose peers are scripts.
type cmRig struct {
	testing.TB
	clock   *testClock
	carrier *scripted
	ctx     *Context
	ch      *CMChannel
	pd      *PD
	cq      *CQ
}

func newCMRig(t testing.TB) *cmRig {
	t.Helper()
	r := &cmRig{TB: t, clock: &testClock{now: 1}, carrier: &scripted{addr: netip.MustParseAddr("10.0.0.1"), arena: mem.Over(make([]byte, 1<<16))}}
	var err error
	r.ctx, err = New(Config{Streams: r.carrier, Engine: progress.New(r.clock, parkless{}), ZeroBased: true, Epoch: 1})
	ok(t, err)
	t.Cleanup(func() {
		ok(t, r.ctx.Close())
		if r.carrier.opened != 0 {
			t.Errorf("%d streams are left after Close", r.carrier.opened)
		}
	})
	r.ch, err = r.ctx.CreateCMChannel()
	ok(t, err)
	r.pd = newPD(t, r.ctx)
	r.cq, err = r.ctx.CreateCQ(CQInit{})
	ok(t, err)
	return r
}

// step lets everything happen that can happen now.
func (r *cmRig) step() {
	for i := 0; r.ctx.Engine().Step() > 0; i++ {
		if i == 10000 {
			r.Fatal("there is no end of work")
		}
	}
}

// sleep lets time pass.
func (r *cmRig) sleep(d mono.Duration) {
	r.clock.now = r.clock.now.Add(d)
	r.step()
}

// event takes the one event that there is, and holds it to what it should be.
func (r *cmRig) event(id *CMID, want CMEventType) CMEvent {
	r.Helper()
	r.step()
	e, got := r.ch.GetEvent()
	switch {
	case !got:
		r.Fatalf("no event; want %v", want)
	case e.Type != want || id != nil && e.ID != id:
		r.Fatalf("event %v of %p: %v; want %v of %p", e.Type, e.ID, e.Err, want, id)
	}
	return e
}

func (r *cmRig) noEvent() {
	r.Helper()
	r.step()
	if e, got := r.ch.GetEvent(); got {
		r.Fatalf("event %v: %v", e.Type, e.Err)
	}
}

// expect holds an identifier to a state.
func (r *cmRig) expect(id *CMID, want IDState) {
	r.Helper()
	if id.State() != want {
		r.Fatalf("state %v, want %v", id.State(), want)
	}
}

func (r *cmRig) newID() *CMID {
	r.Helper()
	id, err := r.ch.CreateID()
	ok(r, err)
	return id
}

func (r *cmRig) newQP() *QP {
	r.Helper()
	q, err := r.pd.CreateQP(QPInit{Type: RC, SendCQ: r.cq, RecvCQ: r.cq, Cap: QPCap{MaxSendWR: 4, MaxRecvWR: 4}})
	ok(r, err)
	return q
}

var somePeer = netip.MustParseAddrPort("10.0.0.2:7")

// resolved returns an identifier that may connect, with a queue pair.
func (r *cmRig) resolved() *CMID {
	r.Helper()
	id := r.newID()
	ok(r, id.ResolveAddr(somePeer, 0))
	r.event(id, CMAddrResolved)
	ok(r, id.ResolveRoute(0))
	r.event(id, CMRouteResolved)
	id.QP = r.newQP()
	return id
}

// connecting returns an identifier that connects, and the peer's end.
func (r *cmRig) connecting(p ConnParam) (*CMID, *scriptedStream) {
	r.Helper()
	id := r.resolved()
	ok(r, id.Connect(p))
	r.expect(id, IDConnecting)
	return id, r.carrier.dialed[len(r.carrier.dialed)-1]
}

// requesting returns an identifier that has sent its Request.
func (r *cmRig) requesting(p ConnParam) (*CMID, *scriptedStream) {
	r.Helper()
	id, s := r.connecting(p)
	s.open()
	r.step()
	r.expect(id, IDRequesting)
	return id, s
}

// reply is what the peer of an initiator answers.
func (r *cmRig) reply(s *scriptedStream, c mpa.Config, private string) []byte {
	r.Helper()
	var peer mpa.Responder
	if n, _, err := peer.Request(s.sent); err != nil || n != len(s.sent) {
		r.Fatalf("the Request %x: %d %v", s.sent, n, err)
	}
	b, _, err := peer.Accept(c, []byte(private))
	ok(r, err)
	return b
}

// listener returns an identifier that listens.
func (r *cmRig) listener(backlog int) (*CMID, *scriptedListener) {
	r.Helper()
	id := r.newID()
	ok(r, id.BindAddr(netip.MustParseAddrPort("10.0.0.1:7")))
	ok(r, id.Listen(backlog))
	return id, r.carrier.users[id.listens.carrier.ID()].(*scriptedListener)
}

// request is what an initiator sends first.
func (r *cmRig) request(c mpa.Config, private string) []byte {
	r.Helper()
	var peer mpa.Initiator
	b, err := peer.Start(c, []byte(private))
	ok(r, err)
	return b
}

// asked returns an identifier that the user is to decide on.
func (r *cmRig) asked(l *CMID, carrier *scriptedListener) (*CMID, *scriptedStream) {
	r.Helper()
	s := carrier.connect()
	s.feed(r.request(mpa.Config{}, ""))
	e := r.event(nil, CMConnectRequest)
	if e.Listener != l {
		r.Fatal("the request is not for the listener")
	}
	return e.ID, s
}

// established returns a connected identifier, of either end.
func (r *cmRig) established(initiator bool) (*CMID, *scriptedStream) {
	r.Helper()
	if initiator {
		id, s := r.requesting(ConnParam{})
		s.feed(r.reply(s, mpa.Config{}, ""))
		r.event(id, CMEstablished)
		return id, s
	}
	l, carrier := r.listener(0)
	id, s := r.asked(l, carrier)
	ok(r, id.Accept(ConnParam{QP: r.newQP()}))
	r.event(id, CMEstablished)
	return id, s
}

// types is the kinds of all events that wait.
func (ch *CMChannel) kinds() string {
	var all []string
	for e, got := ch.take(); got; e, got = ch.take() {
		all = append(all, e.Type.String())
	}
	return strings.Join(all, ", ")
}

// states lists a set for people.
func (set idStates) String() string {
	var all []string
	for s := range idStateCount {
		if set.has(s) {
			all = append(all, s.String())
		}
	}
	return fmt.Sprint(all)
}

// startingRTR returns an identifier that has accepted, whose peer is to begin.
func (r *cmRig) startingRTR() (*CMID, *scriptedStream) {
	r.Helper()
	_, carrier := r.listener(0)
	s := carrier.connect()
	s.feed(r.request(mpa.Config{IRD: 1, ORD: 1, RTR: mpa.RTRWrite}, ""))
	e := r.event(nil, CMConnectRequest)
	ok(r, e.ID.Accept(ConnParam{QP: r.newQP()}))
	r.step()
	return e.ID, s
}

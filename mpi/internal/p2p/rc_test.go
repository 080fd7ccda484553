package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// crew is a few ranks over the kernel's sockets, in one goroutine.
type crew struct {
	t    testing.TB
	ctxs []*verbs.Context
	eps  []*Endpoint
}

const crewKey = 0x1122334455667788

func newCrew(t testing.TB, n int, c Config, change ...func(rank int, c *Config)) *crew {
	t.Helper()
	fabric := "udp"
	if c.Transport == RC {
		fabric = "tcp"
	}
	return newCrewOver(t, fabric, n, c, change...)
}

func newCrewOver(t testing.TB, fabric string, n int, c Config, change ...func(rank int, c *Config)) *crew {
	t.Helper()
	w := &crew{t: t}
	cards := make([]string, n)
	for rank := range n {
		ctx, err := device.Open(device.Spec{Fabric: fabric, RC: fabric != "shm", Key: crewKey, Arena: 20 << 20, Poller: progress.PollerConfig{NoSpin: true}})
		must(t, err)
		t.Cleanup(func() { must(t, ctx.Close()) })
		c := c
		c.Rank, c.Size, c.Key = rank, n, crewKey
		for _, f := range change {
			f(rank, &c)
		}
		ep, err := New(ctx, c)
		must(t, err)
		t.Cleanup(func() { must(t, ep.Close()) })
		w.ctxs, w.eps = append(w.ctxs, ctx), append(w.eps, ep)
		cards[rank] = ep.BusinessCard()
		if len(cards[rank]) > 200 {
			t.Errorf("a card of %d bytes: %q", len(cards[rank]), cards[rank])
		}
	}
	for _, ep := range w.eps {
		must(t, ep.Connect(cards, nil))
	}
	return w
}

// turn lets all ranks work, or those that are named, and returns how much that was.
func (w *crew) turn(ranks ...int) (moved int) {
	if ranks == nil {
		for _, ep := range w.eps {
			moved += ep.eng.Step()
		}
	}
	for _, rank := range ranks {
		moved += w.eps[rank].eng.Step()
	}
	return moved
}

func (w *crew) until(so func() bool, ranks ...int) {
	for !so() {
		if w.turn(ranks...) == 0 {
			time.Sleep(time.Microsecond) // goroutines that wait for the kernel make channels
		}
	}
}

// drain ends all ranks in order, in turns as if they ran at the same time.
func (w *crew) drain() {
	w.t.Helper()
	done := make(chan struct{})
	for _, ep := range w.eps {
		go func() {
			ep.Drain()
			done <- struct{}{}
		}()
	}
	for range w.eps {
		<-done
	}
	for rank, ep := range w.eps {
		for peer := range ep.peers {
			if l := ep.peers[peer].link; l != nil && l.state != over || ep.peers[peer].err != nil {
				w.t.Errorf("rank %d has drained, and its connection with %d is in state %+v, %v", rank, peer, l, ep.peers[peer].err)
			}
		}
	}
}

func word(from, to int) match.Envelope { return match.Envelope{Source: int32(from), Tag: int32(to)} }

// talk sends one message and receives it.
func (w *crew) talk(from, to, n int) {
	w.t.Helper()
	out, in := bytes.Repeat([]byte{byte(from + 7*to)}, n), make([]byte, n)
	s := w.eps[from].Isend(word(from, to), to, out)
	r := w.eps[to].Irecv(word(from, to), in)
	w.until(func() bool { return s.Done() && r.Done() })
	_, err := s.Wait()
	must(w.t, err)
	_, err = r.Wait()
	must(w.t, err)
	if !bytes.Equal(in, out) {
		w.t.Errorf("%d bytes from %d to %d are not what was sent", n, from, to)
	}
}

// TestRC_connectsOnFirstUse looks at who has connections with whom.
func TestRC_connectsOnFirstUse(t *testing.T) {
	w := newCrew(t, 4, Config{Transport: RC})
	for range 20 {
		w.turn()
	}
	want := func(counts ...uint64) {
		t.Helper()
		for rank, n := range counts {
			if got := w.eps[rank].Stats.Connections; got != n {
				t.Errorf("rank %d has made %d connections, want %d", rank, got, n)
			}
		}
	}
	want(0, 0, 0, 0)
	for _, n := range []int{0, 8, 5000, 1_000_000} {
		w.talk(1, 2, n)
		w.talk(2, 1, n)
	}
	want(0, 1, 1, 0)
	w.talk(3, 1, 100)
	want(0, 2, 1, 1)
	w.drain()
}

// TestRC_connectionsCross lets two ranks connect to each other at the same time,
// with the steps of both in all kinds of order: there is one connection.
func TestRC_connectionsCross(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		w := newCrew(t, 2, Config{Transport: RC, Receives: 8, Sends: 4})
		var all []*Request
		in := [2][]byte{make([]byte, 5), make([]byte, 5)}
		for rank, ep := range w.eps {
			all = append(all, ep.Isend(word(rank, 1-rank), 1-rank, []byte("hello")), ep.Irecv(word(1-rank, rank), in[rank]))
		}
		w.until(func() bool {
			w.turn(rng.IntN(2))
			for _, r := range all {
				if !r.Done() {
					return false
				}
			}
			return true
		}, rng.IntN(2))
		for _, r := range all {
			_, err := r.Wait()
			must(t, err)
		}
		for rank, ep := range w.eps {
			if ep.Stats.Connections != 1 || ep.net.conn.links != 1 || string(in[rank]) != "hello" {
				t.Errorf("rank %d has made %d connections and has %d, and has received %q", rank, ep.Stats.Connections, ep.net.conn.links, in[rank])
			}
		}
		w.drain()
	}
}

// TestRC_strangers connects to a rank as somebody who has no business there.
func TestRC_strangers(t *testing.T) {
	w := newCrew(t, 3, Config{Transport: RC})
	good := handshake{key: crewKey, from: 1, to: 0}
	change := func(f func(*handshake)) []byte {
		g := good
		f(&g)
		return g.put()
	}
	oldVersion := good.put()
	binary.BigEndian.PutUint16(oldVersion[4:], Version-1)
	calls := map[string][]byte{
		"nothing":       nil,
		"noise":         []byte("GET / HTTP/1.1"),
		"other job":     change(func(g *handshake) { g.key++ }),
		"other rank":    change(func(g *handshake) { g.to = 2 }),
		"own rank":      change(func(g *handshake) { g.from = 0 }),
		"no rank":       change(func(g *handshake) { g.from = 3 }),
		"negative rank": change(func(g *handshake) { g.from = -1 }),
		"old version":   oldVersion,
		"too long":      append(good.put(), 0),
	}
	ctx, err := device.Open(device.Spec{Fabric: "tcp", Poller: progress.PollerConfig{NoSpin: true}})
	must(t, err)
	defer ctx.Close()
	pd, err := ctx.AllocPD()
	must(t, err)
	cq, err := ctx.CreateCQ(verbs.CQInit{})
	must(t, err)
	ch, err := ctx.CreateCMChannel()
	must(t, err)
	for name, private := range calls {
		id, err := ch.CreateID()
		must(t, err)
		must(t, id.ResolveAddr(w.eps[0].net.conn.listener.LocalAddr(), 0))
		must(t, id.ResolveRoute(0))
		must(t, id.CreateQP(pd, verbs.QPInit{SendCQ: cq, RecvCQ: cq}))
		must(t, id.Connect(verbs.ConnParam{PrivateData: private}))
		var e verbs.CMEvent
		w.until(func() bool {
			var ok bool
			e, ok = ch.GetEvent()
			return ok && e.Type != verbs.CMAddrResolved && e.Type != verbs.CMRouteResolved
		})
		var g handshake
		if e.Type != verbs.CMRejected || !g.parse(e.Param.PrivateData) || g.verdict != stranger {
			t.Errorf("%s: event %v with verdict %v, want a rejection of a stranger", name, e.Type, g.verdict)
		}
	}
	if got := w.eps[0].Stats.Strangers; got != uint64(len(calls)) {
		t.Errorf("%d strangers were counted, want %d", got, len(calls))
	}
	w.talk(1, 0, 100)
	w.drain()
}

// TestRC_lostPeer sends to a rank that has gone before anybody has connected
// to it, and to one that has gone since.
func TestRC_lostPeer(t *testing.T) {
	w := newCrew(t, 3, Config{Transport: RC})
	w.talk(0, 1, 10)
	for _, rank := range []int{1, 2} {
		must(t, w.eps[rank].Close())
		must(t, w.ctxs[rank].Close())
	}
	ep := w.eps[0]
	for _, rank := range []int{1, 2} {
		var err error
		for err == nil { // what the stream takes is complete
			s := ep.Isend(word(0, rank), rank, make([]byte, 100))
			w.until(s.Done, 0)
			_, err = s.Wait()
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != PeerLost || e.Peer != rank {
			t.Errorf("sending to a rank that has gone: %v", err)
		}
	}
	ep.Drain()
	w.eps, w.ctxs = w.eps[:1], w.ctxs[:1]
}

// TestRC_slowPeerHoldsUpNobody sends to a rank that does not listen for a while
// more than its connection holds.
func TestRC_slowPeerHoldsUpNobody(t *testing.T) {
	w := newCrew(t, 3, Config{Transport: RC})
	w.talk(0, 1, 10)
	w.talk(0, 2, 10)
	const count, size = 4000, 200
	in, out := make([]byte, size), make([]byte, size)
	var slow []*Request
	for i := range count {
		binary.BigEndian.PutUint32(out, uint32(i))
		slow = append(slow, w.eps[0].Isend(word(0, 1), 1, bytes.Clone(out)))
	}
	for range 200 {
		s := w.eps[0].Isend(word(0, 2), 2, out)
		r := w.eps[2].Irecv(word(0, 2), in)
		w.until(func() bool { return s.Done() && r.Done() }, 0, 2)
		_, err := r.Wait()
		must(t, err)
		_, err = s.Wait()
		must(t, err)
	}
	for i, s := range slow {
		r := w.eps[1].Irecv(word(0, 1), in)
		w.until(func() bool { return s.Done() && r.Done() })
		_, err := r.Wait()
		must(t, err)
		_, err = s.Wait()
		must(t, err)
		if got := binary.BigEndian.Uint32(in); got != uint32(i) {
			t.Fatalf("message %d comes as number %d", got, i)
		}
	}
	w.drain()
}

// stream sends numbered messages of random lengths between all ranks, and checks
// that they arrive in order.
func (w *crew) stream(seed uint64, count int, longest int) {
	w.t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	type channel struct {
		from, to  int
		sent, got int
		s, r      *Request
		in        []byte
	}
	var channels []*channel
	for from := range w.eps {
		for to := range w.eps {
			if from != to {
				channels = append(channels, &channel{from: from, to: to, in: make([]byte, longest+8)})
			}
		}
	}
	for left := len(channels) * count; left > 0; w.turn(rng.IntN(len(w.eps))) {
		for _, l := range channels {
			if l.s != nil && l.s.Done() {
				_, err := l.s.Wait()
				must(w.t, err)
				l.s = nil
			}
			for l.s == nil && l.sent < count && rng.IntN(3) > 0 {
				n := 8 + rng.IntN(100)
				if rng.IntN(20) == 0 {
					n = 8 + rng.IntN(longest)
				}
				b := make([]byte, n)
				binary.BigEndian.PutUint64(b, uint64(l.sent))
				b[n-1] ^= 0x55
				l.sent++
				if l.s = w.eps[l.from].Isend(word(l.from, l.to), l.to, b); l.s.Done() {
					_, err := l.s.Wait()
					must(w.t, err)
					l.s = nil
				}
			}
			if l.r == nil && l.got < count {
				l.r = w.eps[l.to].Irecv(word(l.from, l.to), l.in)
			}
			if l.r != nil && l.r.Done() {
				st, err := l.r.Wait()
				must(w.t, err)
				l.in[st.Bytes-1] ^= 0x55
				if got := binary.BigEndian.Uint64(l.in); got != uint64(l.got) {
					w.t.Fatalf("message %d from %d to %d comes as number %d", got, l.from, l.to, l.got)
				}
				l.got++
				left--
				l.r = nil
			}
		}
	}
}

func TestRC_randomTraffic(t *testing.T) {
	for seed := range uint64(3) {
		w := newCrew(t, 4, Config{Transport: RC, Receives: 6, Sends: 3})
		w.stream(seed, 300, 200_000)
		w.drain()
	}
}

// TestHybrid_connects has ranks talk at random until they are connected, in the
// middle of the traffic in both directions.
func TestHybrid_connects(t *testing.T) {
	for _, c := range []Config{
		{PromoteMessages: 1},
		{PromoteMessages: 4, Calibrate: true},
		{PromoteMessages: 3, Receives: 5, Sends: 2},
		{PromoteMessages: 1 << 30, PromoteBytes: 300_000},
		{PromoteMessages: 1, EagerMax: -1},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			c.Transport = Hybrid
			w := newCrew(t, 3, c)
			w.stream(1, 400, 200_000)
			for rank, ep := range w.eps {
				if s := ep.Stats; s.Linked == 0 || s.Connections != 2 {
					t.Errorf("rank %d has sent %d messages over %d connections, want 2", rank, s.Linked, s.Connections)
				}
			}
			w.drain()
		})
	}
}

// TestHybrid_peerIsLost loses a rank in the middle of transfers over a connection.
func TestHybrid_peerIsLost(t *testing.T) {
	w := newCrew(t, 3, Config{Transport: Hybrid, PromoteMessages: 1})
	w.talk(0, 1, 100_000)
	w.until(func() bool { return w.joined(0, 1) && w.joined(1, 0) })
	s := w.eps[0].Isend(word(0, 1), 1, make([]byte, 8<<20))
	r := w.eps[0].Irecv(word(1, 0), make([]byte, 8<<20))
	w.eps[1].Irecv(word(0, 1), make([]byte, 8<<20))
	w.eps[1].Isend(word(1, 0), 0, make([]byte, 8<<20))
	w.until(func() bool { return w.eps[0].Stats.Linked > 0 && w.eps[1].Stats.Linked > 0 })
	w.eps[0].failures.failPeer(1, w.eps[0].failures.lostError(1, "the test says so"))
	w.until(func() bool { return s.Done() && r.Done() }, 0)
	for _, r := range []*Request{s, r} {
		var e *Error
		if _, err := r.Wait(); !errors.As(err, &e) || e.Code != PeerLost {
			t.Errorf("a transfer with a lost rank ends with %v", err)
		}
	}
	if n := w.eps[0].net.conn.links; n != 0 {
		t.Errorf("%d connections are left", n)
	}
	w.talk(0, 2, 200_000)
}

// joined reports whether a rank has a connection to another one.
func (w *crew) joined(rank, with int) bool {
	l := w.eps[rank].peers[with].link
	return l != nil && l.state == up
}

// cut breaks the connection between two ranks at the end of the first.
func (w *crew) cut(rank, with int) {
	if l := w.eps[rank].peers[with].link; l != nil {
		w.eps[rank].net.conn.ended(l)
	}
}

// TestHybrid_staysWithDatagrams cannot connect, or only to one peer.
func TestHybrid_staysWithDatagrams(t *testing.T) {
	w := newCrew(t, 4, Config{Transport: Hybrid, PromoteMessages: 2, Connections: 1})
	w.stream(1, 100, 150_000)
	for rank, ep := range w.eps {
		if ep.net.conn.links > 1 {
			t.Errorf("rank %d has %d connections, and one is allowed", rank, ep.net.conn.links)
		}
	}
	w.drain()

	w = newCrew(t, 2, Config{Transport: Hybrid, PromoteMessages: 2})
	for _, ep := range w.eps {
		for i := range ep.net.conn.listeners {
			ep.net.conn.listeners[i] = netip.MustParseAddrPort("127.0.0.1:1") // nobody listens there
		}
	}
	w.stream(2, 300, 150_000)
	w.until(func() bool { return !w.eps[0].net.conn.unsettled() && !w.eps[1].net.conn.unsettled() })
	w.talk(0, 1, 100)
	for rank, ep := range w.eps {
		if ep.Stats.Linked != 0 || ep.net.conn.links != 0 || ep.peers[1-rank].err != nil {
			t.Errorf("rank %d has %d connections, error %v", rank, ep.net.conn.links, ep.peers[1-rank].err)
		}
	}
	w.drain()
}

func TestConnect_transportsDiffer(t *testing.T) {
	ep := newEnd(t)
	cards := []string{ep.BusinessCard(), ep.BusinessCard() + " t=rc", ep.BusinessCard()}
	if err := ep.Connect(cards, nil); err == nil {
		t.Error("a rank with another transport was taken for a peer")
	}
}

func FuzzHandshake(f *testing.F) {
	g := handshake{verdict: simultaneous, key: 1 << 60, from: 3, to: 4}
	f.Add(g.put())
	f.Add([]byte("xwMP"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var g handshake
		if g.parse(b) && !bytes.Equal(g.put(), b) {
			t.Errorf("%x is read as %+v", b, g)
		}
	})
}

// TestConnections_areClosed counts descriptors: two ranks that connect to each other at the same time keep one connection,
// and nothing is left of one that has broken, or ended in order, nor of its ranks.
func TestConnections_areClosed(t *testing.T) {
	before := testenv.OpenFiles(t)
	for _, transport := range []Transport{RC, Hybrid} {
		for _, breaks := range []bool{false, true} {
			t.Run(fmt.Sprint(transport, breaks), func(t *testing.T) {
				w := newCrew(t, 2, Config{Transport: transport, PromoteMessages: 1, EagerMax: 1000})
				none := testenv.OpenFiles(t)
				is := func(more int) {
					t.Helper()
					if got := testenv.OpenFiles(t) - none; got != more {
						t.Errorf("%d descriptors more than without connections, want %d", got, more)
					}
				}
				for range 2 { // over a connection, the second time
					var all []*Request
					for rank := range w.eps {
						all = append(all, w.eps[1-rank].Irecv(word(rank, 1-rank), make([]byte, 100_000)), w.eps[rank].Isend(word(rank, 1-rank), 1-rank, make([]byte, 100_000)))
					}
					for _, r := range all {
						w.until(r.Done)
						_, err := r.Wait()
						must(t, err)
					}
					w.until(func() bool { return w.joined(0, 1) && w.joined(1, 0) })
				}
				is(2) // ends
				if breaks {
					w.cut(0, 1)
					w.until(func() bool { return w.eps[1].peers[0].link.state == over })
					is(0)
				}
				if !breaks || transport == Hybrid {
					w.drain()
					is(0)
				}
			})
			if got := testenv.OpenFiles(t); got != before {
				t.Errorf("over %v, breaks %v: %d descriptors are left, and were %d", transport, breaks, got, before)
			}
		}
	}
}

package verbs

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// Connections beyond the backlog wait in the carrier until the user decides.
func TestListen_backlog(t *testing.T) {
	const backlog = 3
	r := newCMRig(t)
	_, carrier := r.listener(backlog)
	request := r.request(mpa.Config{}, "")
	for range 10 {
		carrier.connect().feed(request)
	}
	var ids []*CMID
	for range backlog {
		ids = append(ids, r.event(nil, CMConnectRequest).ID)
	}
	r.noEvent()
	if n := len(carrier.waiting); n != 10-backlog {
		t.Errorf("%d wait in the carrier, want %d", n, 10-backlog)
	}
	decide := []func(id *CMID) error{
		func(id *CMID) error { return id.Accept(ConnParam{QP: r.newQP()}) },
		func(id *CMID) error { return id.Reject(nil) },
		func(id *CMID) error { return id.Destroy() },
	}
	for i := 0; i < 10; i++ {
		ok(t, decide[i%3](ids[i]))
		r.step()
		for e, got := r.ch.take(); got; e, got = r.ch.take() {
			if e.Type == CMConnectRequest {
				ids = append(ids, e.ID)
			}
		}
		if want := min(10, i+1+backlog); len(ids) != want {
			t.Errorf("%d decided: %d requests, want %d", i+1, len(ids), want)
		}
	}
	r.sleep(mpa.ReplyTimeout)
	if d := r.ctx.cm.deadline; d != mono.Never {
		t.Errorf("the engine must step at %v", d)
	}
}

// Strangers that say nothing make room for others after a while, the oldest first,
// and not before there are others.
func TestListen_strangers(t *testing.T) {
	r := newCMRig(t)
	_, carrier := r.listener(1000)
	var silent []*scriptedStream
	for range 3 * strangers {
		silent = append(silent, carrier.connect())
	}
	last := carrier.connect()
	last.feed(r.request(mpa.Config{}, ""))
	for i := range 3 {
		r.noEvent()
		r.sleep(silence - 1)
		if n := len(carrier.waiting); n != (2-i)*strangers+1 {
			t.Fatalf("%d wait in the carrier", n)
		}
		for k, s := range silent {
			if s.closed != (k < i*strangers) || s.closed && !s.aborted {
				t.Fatalf("after %d rounds, connection %d: closed %v, aborted %v", i, k, s.closed, s.aborted)
			}
		}
		r.clock.now = r.clock.now.Add(1)
	}
	r.event(nil, CMConnectRequest)
	if n := r.ctx.DroppedStartups(); n != 2*strangers+1 {
		t.Errorf("%d counted", n)
	}
	r.sleep(mpa.RequestTimeout - silence - 1)
	if n := r.ctx.DroppedStartups(); n != 2*strangers+1 {
		t.Errorf("%d counted: nobody needs the room", n)
	}
	r.sleep(1)
	if d := r.ctx.cm.deadline; d != mono.Never || r.ctx.DroppedStartups() != 3*strangers {
		t.Errorf("the engine must step at %v, %d were counted", d, r.ctx.DroppedStartups())
	}
}

// An address with more than its share makes room first, whoever is the oldest.
func TestListen_strangersOfOne(t *testing.T) {
	r := newCMRig(t)
	_, carrier := r.listener(1000)
	from := func(addr string) *scriptedStream {
		s := carrier.connect()
		s.remote = netip.MustParseAddrPort(addr + ":1")
		return s
	}
	slow := from("10.0.0.8") // and slow it is
	r.step()
	r.sleep(silence)
	var dials []*scriptedStream
	for range 2 * strangers {
		dials = append(dials, from("10.0.0.9"))
	}
	r.step()
	for range 10 {
		r.sleep(silence)
	}
	if slow.closed {
		t.Fatal("the slow one had to go")
	}
	if n := r.ctx.DroppedStartups(); n != 1+strangers || !dials[n-1].closed || dials[n].closed {
		t.Errorf("%d of the peers had to go", n)
	}
	slow.feed(r.request(mpa.Config{}, ""))
	r.event(nil, CMConnectRequest)

	// Of many addresses, with no more than their share, the oldest goes.
	r = newCMRig(t)
	_, carrier = r.listener(1000)
	for i := range strangers + 1 {
		dials[i] = from(fmt.Sprintf("10.0.1.%d", i/strangersOfOne))
	}
	r.step()
	r.sleep(silence)
	if !dials[0].closed || dials[1].closed || len(carrier.waiting) != 0 {
		t.Errorf("closed: %v, %v; %d wait", dials[0].closed, dials[1].closed, len(carrier.waiting))
	}
}

// Those that make room and those whose Request makes no sense go at the same
// time, from one list.
func TestListen_strangersOfAllKinds(t *testing.T) {
	r := newCMRig(t)
	_, carrier := r.listener(1000)
	for range strangers {
		carrier.connect()
	}
	r.step()
	for i := range 5 * strangers {
		if s := carrier.connect(); i%3 != 0 {
			s.feed([]byte("GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n"))
		}
	}
	last := carrier.connect()
	last.feed(r.request(mpa.Config{}, ""))
	r.noEvent()
	for range 5 {
		r.clock.now = r.clock.now.Add(silence)
		r.step()
	}
	r.event(nil, CMConnectRequest)
	r.sleep(mpa.RequestTimeout)
	if n := r.ctx.DroppedStartups(); n != 6*strangers {
		t.Errorf("%d counted", n)
	}
}

// Destroying a listener ends what it has heard of and the user has not; what
// the user knows stays.
func TestListen_destroyWithRequests(t *testing.T) {
	r := newCMRig(t)
	l, carrier := r.listener(0)
	known, knownStream := r.asked(l, carrier)
	raised, silent, refused := carrier.connect(), carrier.connect(), carrier.connect()
	raised.feed(r.request(mpa.Config{}, ""))
	bad := r.request(mpa.Config{}, "")
	bad[19] = 0
	refused.room = 5
	refused.feed(bad[:20])
	r.step()
	ok(t, l.Destroy())
	if !carrier.closed {
		t.Error("the carrier listens")
	}
	r.noEvent()
	if !raised.closed || !silent.closed || knownStream.closed {
		t.Errorf("closed: %v %v %v", raised.closed, silent.closed, knownStream.closed)
	}
	ok(t, known.Accept(ConnParam{QP: r.newQP()}))
	r.event(known, CMEstablished)
	if err := r.ch.Close(); err == nil {
		t.Error("the channel is closed under an identifier")
	}
	ok(t, known.Destroy())
	ok(t, r.ch.Close())
	if !refused.closed {
		t.Error("a stranger is left that is being refused")
	}
}

// A listener that was not bound listens at all addresses, of the family that
// the carrier prefers, and says where.
func TestListen_where(t *testing.T) {
	for addr, want := range map[string]string{"10.0.0.1": "0.0.0.0:50000", "fd00::1": "[::]:50000"} {
		r := newCMRig(t)
		r.carrier.ipv6, r.carrier.addr = true, netip.MustParseAddr(addr)
		id := r.newID()
		ok(t, id.Listen(0))
		if id.LocalAddr().String() != want {
			t.Errorf("listens at %v, want %v", id.LocalAddr(), want)
		}
	}
}

package conform

import (
	"io"
	"net/netip"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/verbs"
)

// rcHost is what a host has on RC: a connection with each other host.
type rcHost struct {
	streams  fabric.Streams
	cm       *verbs.CMChannel
	listener *verbs.CMID   // listens at host.addr
	ids      []*verbs.CMID // by host
	qps      []*verbs.QP   // likewise
	news     []verbs.CMEvent
}

func newRCHost(hosts int) rcHost {
	return rcHost{ids: make([]*verbs.CMID, hosts), qps: make([]*verbs.QP, hosts)}
}

// openStreams opens the carrier of RC.
func (h *host) openStreams(c *verbs.Config) {
	r := h.r
	r.t.Helper()
	var s fabric.Streams
	var under []io.Closer
	r.must(r.on(h, func() (err error) {
		var at netip.Addr
		s, at, under, err = r.net.Streams(h.i)
		if err == nil && !at.IsValid() {
			at = s.Addr()
		}
		h.addr = netip.AddrPortFrom(at, h.addr.Port())
		return err
	}))
	h.rc.streams, h.fd, c.Streams = s, s.FD, s
	h.engine(c, s, under)
}

// listenRC opens what others connect to, at the same port each time.
func (h *host) listenRC() {
	r := h.r
	r.t.Helper()
	var err error
	h.rc.cm, err = h.ctx.CreateCMChannel()
	r.must(err)
	h.rc.listener, err = h.rc.cm.CreateID()
	r.must(err)
	r.must(h.rc.listener.BindAddr(h.addr))
	r.must(r.on(h, func() error { return h.rc.listener.Listen(0) }))
	h.addr = h.rc.listener.LocalAddr()
}

// heard waits for the next connection event of a host. When another has failed to
// connect there will be none, and the test ends.
func (h *host) heard(want verbs.CMEventType) verbs.CMEvent {
	r := h.r
	r.t.Helper()
	r.until(func() bool {
		for _, x := range r.hosts {
			x.collect()
			if e, failed := x.failure(); failed && x != h {
				r.t.Fatalf("host %d waits for %v, but host %d has heard %v (%v)", h.i, want, x.i, e.Type, e.Err)
			}
		}
		return len(h.rc.news) > 0
	})
	e := h.rc.news[0]
	h.rc.news = h.rc.news[1:]
	if e.Type != want {
		r.t.Fatalf("host %d: connection event %v (%v), want %v", h.i, e.Type, e.Err, want)
	}
	return e
}

// collect takes the connection events that are there.
func (h *host) collect() {
	if h.rc.cm == nil {
		return
	}
	for e, ok := h.rc.cm.Poll(); ok; e, ok = h.rc.cm.Poll() {
		h.rc.news = append(h.rc.news, e)
	}
}

// failure returns the first of the collected events that tells of a connection
// that has never been.
func (h *host) failure() (e verbs.CMEvent, found bool) {
	for _, e := range h.rc.news {
		switch e.Type {
		case verbs.CMConnectError, verbs.CMUnreachable, verbs.CMRejected:
			return e, true
		}
	}
	return e, false
}

// dial makes an identifier that is about to connect to a peer.
func (h *host) dial(to netip.AddrPort) *verbs.CMID {
	r := h.r
	r.t.Helper()
	id, err := h.rc.cm.CreateID()
	r.must(err)
	r.must(id.ResolveAddr(to, 0))
	h.heard(verbs.CMAddrResolved)
	r.must(id.ResolveRoute(0))
	h.heard(verbs.CMRouteResolved)
	return id
}

// connect begins to connect.
func (h *host) connect(id *verbs.CMID, p verbs.ConnParam) {
	r := h.r
	r.t.Helper()
	if id.QP == nil {
		r.must(id.CreateQP(h.pd, h.init()))
	}
	r.must(r.on(h, func() error { return id.Connect(p) }))
}

// accept takes the connection that somebody asks for.
func (h *host) accept(p verbs.ConnParam) *verbs.CMID {
	r := h.r
	r.t.Helper()
	e := h.heard(verbs.CMConnectRequest)
	if e.Listener != h.rc.listener {
		r.t.Fatalf("host %d: the connection is for another listener", h.i)
	}
	r.must(e.ID.CreateQP(h.pd, h.init()))
	r.must(e.ID.Accept(p))
	return e.ID
}

// join connects two hosts.
func (r *rig) join(a, b *host) {
	r.t.Helper()
	r.joinWith(a, b, r.config.Connect, verbs.ConnParam{CRC: r.config.Connect.CRC, Markers: r.config.Connect.Markers})
}

// joinWith connects two hosts, each with what it wants, and returns what each
// hears of the other.
func (r *rig) joinWith(a, b *host, pa, pb verbs.ConnParam) (atA, atB verbs.CMEvent) {
	r.t.Helper()
	id := a.dial(b.addr)
	a.connect(id, pa)
	id2 := b.accept(pb)
	a.rc.ids[b.i], a.rc.qps[b.i] = id, id.QP
	b.rc.ids[a.i], b.rc.qps[a.i] = id2, id2.QP
	atA, atB = a.heard(verbs.CMEstablished), b.heard(verbs.CMEstablished)
	for _, h := range []*host{a, b} {
		peer := a
		if h == a {
			peer = b
		}
		if s := h.to(peer).State(); s != verbs.StateRTS {
			r.t.Fatalf("host %d: the connected queue pair is in state %v", h.i, s)
		}
	}
	return atA, atB
}

// part ends the connection of two hosts in order.
func (r *rig) part(a, b *host) {
	r.t.Helper()
	r.must(a.rc.ids[b.i].Disconnect())
	r.parted(a, b)
}

// parted waits until the connection of two hosts has ended at both, and clears
// away what is left of it. It returns what each hears.
func (r *rig) parted(a, b *host) (atA, atB verbs.CMEvent) {
	r.t.Helper()
	end := func(h, peer *host) verbs.CMEvent {
		r.t.Helper()
		e := h.heard(verbs.CMDisconnected)
		if e.ID != h.rc.ids[peer.i] {
			r.t.Fatalf("host %d: another connection has ended", h.i)
		}
		r.must(e.ID.Destroy())
		h.to(peer).Destroy()
		h.rc.ids[peer.i], h.rc.qps[peer.i] = nil, nil
		for ok := true; ok; {
			_, ok = h.ctx.GetAsyncEvent()
		}
		return e
	}
	atA, atB = end(a, b), end(b, a)
	return atA, atB
}

// reconnect connects two hosts again whose connection has ended.
func (r *rig) reconnect(a, b *host) {
	r.t.Helper()
	r.parted(a, b)
	r.join(a, b)
	r.exchange(a, b)
}

// anyRC returns a queue pair that works.
func (h *host) anyRC() *verbs.QP {
	for _, q := range h.rc.qps {
		if q != nil && q.State() == verbs.StateRTS {
			return q
		}
	}
	h.r.t.Fatalf("host %d: no queue pair works", h.i)
	return nil
}

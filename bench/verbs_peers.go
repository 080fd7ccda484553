package bench

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// peersTest is send_rate with several peers: one endpoint of the client sends
// to each endpoint of the server in turns, with a window for each. Messages to
// different peers never share a datagram, and everything that a sender keeps
// per peer leaves the caches.
//
// All endpoints of the server are served by one thread. Over kernel UDP they
// are ports of one host; over AF_XDP each needs a device of its own, which a
// testbed has in network namespaces.
type peersTest struct {
	flows              // of the client; the endpoint is its only one, or the server's first
	server []*sendTest // all endpoints of the server
}

func openPeers(e *End) (Bench, error) {
	t := &peersTest{}
	open := t.openClient
	if e.Server {
		open = t.openServer
	}
	if err := open(e); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *peersTest) openClient(e *End) (err error) {
	c := e.Spec.testCase()
	if t.endpoint, err = openEndpoint(e, c); err != nil {
		return err
	}
	if err := errors.Join(t.show(0), e.Pair.Fence()); err != nil {
		return err
	}
	for i := range e.Spec.Peers {
		if t.peer, err = t.card(i); err != nil {
			return err
		}
		if t.Spec.Transport == "ud" {
			if err := t.limit(); err != nil {
				return err
			}
		}
		ah, err := t.pd.CreateAH(t.peer.Addr)
		if err != nil {
			return err
		}
		t.each = append(t.each, flow{qp: t.qp, ah: ah, qpn: t.peer.QPN})
	}
	return nil
}

func (t *peersTest) openServer(e *End) error {
	c := e.Spec.testCase()
	for i := range e.Spec.Peers {
		ctx, err := openPeerContext(e, i)
		if err != nil {
			return fmt.Errorf("endpoint %d of %d: %w", i+1, e.Spec.Peers, err)
		}
		p, err := newEndpoint(e, c, ctx)
		if err != nil {
			return err
		}
		if i == 0 {
			t.endpoint = p
		}
		s, err := newSendTest(p)
		t.server = append(t.server, s)
		if err := errors.Join(err, p.show(i)); err != nil {
			return err
		}
	}
	return e.Pair.Fence()
}

// peerArena is enough for the frames of one endpoint among many.
const peerArena = 24 << 20

// openPeerContext opens the device of the i-th endpoint of the server.
func openPeerContext(e *End, i int) (ctx *verbs.Context, err error) {
	spec := e.device()
	spec.Arena += peerArena - frameArena
	if i == 0 || !e.Spec.onXDP() {
		return device.Open(spec)
	}
	if i > len(e.hosts) {
		return nil, usagef("--peers %d over %s needs a device for each endpoint of the server, and there is one: use --testbed, which makes them, or --fabric udp", e.Spec.Peers, e.Spec.Fabric)
	}
	spec.Addr, spec.IPv6 = netip.Addr{}, e.Addr.Is6() // that of the device there
	err = e.hosts[i-1](func() error {
		ctx, err = device.Open(spec)
		return err
	})
	return ctx, err
}

func (t *peersTest) Close() error {
	if t.server == nil {
		if t.endpoint == nil {
			return nil
		}
		return t.endpoint.Close()
	}
	var errs []error
	for _, s := range t.server {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Progress lets all endpoints of this end work.
func (t *peersTest) Progress() {
	if !t.Server {
		t.endpoint.Progress()
	}
	for _, s := range t.server {
		s.Progress()
	}
}

func (t *peersTest) Run(b Burst, rec *Recorder) error {
	if t.Server {
		return t.swallow(b, rec)
	}
	t.source(verbs.OpSend, b.Size)
	done := func(i int, count uint64) { t.each[i].done = count }
	news := func() error { return t.sent(done) }
	return t.stream(b, rec, func(n int) error { return t.push(n, b.Window, news) })
}

// swallow takes what comes to any endpoint: all of it, or over UD until the
// client says stop.
func (t *peersTest) swallow(b Burst, rec *Recorder) error {
	lossy := t.Spec.countsArrivals()
	var tally Tally
	var turns spin
	var first, last mono.Time
	for left := b.Warmup + b.Iters; lossy || left > 0; {
		n, err := t.turnAll()
		if err != nil {
			return err
		}
		if left -= n; n > 0 {
			last = t.ctx.Engine().Now()
			if first == 0 {
				first = last
			}
			continue
		}
		if !turns.idle() {
			continue
		}
		if t.Pair.Over() {
			return errOver
		}
		if lossy && t.Pair.Spoken() && t.ctx.Engine().Now().Sub(last) > quietSend {
			tally.Messages = b.Warmup + b.Iters - left
			tally.Bytes, tally.Elapsed = int64(tally.Messages)*int64(b.Size), last.Sub(first)
			rec.Arrived(tally)
			return nil
		}
	}
	return nil
}

// turnAll gives each endpoint of the server its turn and returns how many
// messages came.
func (t *peersTest) turnAll() (messages int, err error) {
	for _, s := range t.server {
		if s.ctx.Engine().Step() == 0 {
			s.ctx.Engine().Park() // never blocks, see End.device
		}
		for {
			n, err := s.received(len(s.wc))
			if err != nil {
				return messages, err
			}
			if n == 0 {
				break
			}
			if err := s.receive(n); err != nil {
				return messages, err
			}
			messages += n
		}
	}
	return messages, nil
}

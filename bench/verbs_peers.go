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
	*endpoint             // the client's only one, or the server's first
	server    []*sendTest // all endpoints of the server
	peers     []peer      // as the client sees them
	left      int         // messages of the client that are not done
}

// peer is the sending side of one peer.
type peer struct {
	ah        *verbs.AH
	qpn       uint32
	goal      uint64 // messages to post in all
	posted    uint64
	completed uint64
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
	c, _ := Find(e.Spec.Test)
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
		if err := t.checkPeer(); err != nil {
			return err
		}
		ah, err := t.pd.CreateAH(t.peer.Addr)
		if err != nil {
			return err
		}
		t.peers = append(t.peers, peer{ah: ah, qpn: t.peer.QPN})
	}
	return nil
}

func (t *peersTest) checkPeer() error {
	if t.Spec.Transport == "ud" {
		return t.limit()
	}
	return nil
}

func (t *peersTest) openServer(e *End) error {
	c, _ := Find(e.Spec.Test)
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
	if err := t.push(b.Warmup, b.Window); err != nil {
		return err
	}
	start := t.Clock.Now()
	if err := t.push(b.Iters, b.Window); err != nil {
		return err
	}
	rec.Stream(b.Iters, t.Clock.Now().Sub(start))
	return nil
}

// push posts n messages, as many to each peer, and waits until all are done.
// Only whole windows are sent.
func (t *peersTest) push(n, window int) error {
	for i := range t.peers {
		t.peers[i].goal += uint64(n / len(t.peers))
	}
	t.left += n
	var turns spin
	for t.left > 0 {
		for posted := true; posted; {
			var err error
			if posted, err = t.round(uint64(window)); err != nil {
				return err
			}
		}
		if err := t.step(&turns); err != nil {
			return err
		}
		if err := t.reap(); err != nil {
			return err
		}
	}
	return nil
}

// round posts one message to each peer that has room in its window and lacks
// messages.
func (t *peersTest) round(window uint64) (posted bool, err error) {
	every := max(window/4, 1)
	for i := range t.peers {
		p := &t.peers[i]
		if p.posted == p.goal || p.posted-p.completed == window {
			continue
		}
		p.posted++
		posted = true
		t.wr.AH, t.wr.RemoteQPN = p.ah, p.qpn
		t.wr.WRID = p.posted<<peerBits | uint64(i)
		t.wr.Flags &^= verbs.Signaled
		if p.posted%every == 0 || p.posted == p.goal {
			t.wr.Flags |= verbs.Signaled
		}
		if err := t.qp.PostSend(&t.wr); err != nil {
			return posted, err
		}
	}
	return posted, nil
}

// peerBits of a WRID are the number of the peer.
const peerBits = 8

// reap takes completions: each stands for all messages to its peer before it.
func (t *peersTest) reap() error {
	n := t.sends.Poll(t.wc[:])
	for i := range t.wc[:n] {
		wc := &t.wc[i]
		p := &t.peers[wc.WRID&(1<<peerBits-1)]
		if wc.Status != verbs.Success {
			return t.failed(fmt.Sprintf("%v to %v", t.wr.Opcode, p.ah.Remote()), wc)
		}
		t.left -= int(wc.WRID>>peerBits - p.completed)
		p.completed = wc.WRID >> peerBits
	}
	return nil
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

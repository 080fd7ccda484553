package llp

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// TestSenders_divides: the room is divided among those that send, and one that
// remains gets all of it back.
func TestSenders_divides(t *testing.T) {
	const room, most = 1024, 256
	var c senders
	c.init(room, most)
	now := mono.Time(1e9)
	peers := make([]*Assoc, 300)
	for i := range peers {
		peers[i] = &Assoc{}
	}
	period := func(n int) {
		for _, p := range peers[:n] {
			if p.period != c.period || now >= c.until {
				c.count(p, now)
			}
		}
		now = now.Add(senderPeriod)
	}
	for _, x := range []struct{ active, window int }{
		{1, 256}, {4, 256}, {5, 204}, {8, 128}, {64, 16}, {256, 4}, {300, 4}, {2, 4}, {2, 256}, {1, 256},
	} {
		period(x.active)
		if int(c.window) != x.window {
			t.Errorf("%d peers: window %d, want %d", x.active, c.window, x.window)
		}
	}
	if c.active() != 2 { // the period before counts too
		t.Errorf("%d active", c.active())
	}
	now = now.Add(10 * senderPeriod)
	period(1)
	if c.active() != 1 || c.window != most {
		t.Errorf("%d active, window %d after a pause", c.active(), c.window)
	}
}

// TestSenders_heard: what a header says about the window follows the number of active senders.
func TestSenders_heard(t *testing.T) {
	r := newRig(t)
	hub := r.open(0, 99, 0, dgram.Config{})
	var peers []*Peer
	for i := range 32 {
		s := r.open(1+i, uint32(1+i), 0, dgram.Config{})
		peers = append(peers, s.to(hub))
	}
	r.run(200*ms, ms)
	for i, s := range r.sides[1:] {
		s.send(peers[i], 1)
	}
	r.run(senderPeriod/2, senderPeriod/10)
	if got := hub.last(dgram.TypeAck).h.Window; got != 256/32 {
		t.Errorf("window %d for 32 peers and 256 places", got)
	}
	r.run(10*ms, ms)
	r.sides[1].send(peers[0], 2)
	r.run(ms, ms/10)
	if got := hub.last(dgram.TypeAck).h.Window; got != 256 {
		t.Errorf("window %d for one peer", got)
	}
}

package llp

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// TestHandshake_keepAlive: silence is broken every KeepAlive by short Hellos, by
// both sides together no more than twice; who talks is not asked.
func TestHandshake_keepAlive(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	from := r.now
	r.run(60*mono.Second, 10*ms)
	if n := a.sent(dgram.TypeHello, from) + b.sent(dgram.TypeHello, from); n < 11 || n > 25 {
		t.Errorf("%d Hellos in a minute of silence, want one each 5 s from either side, or from both", n)
	}
	if size := len(a.last(dgram.TypeHello).payload); size != shortHello {
		t.Errorf("a Hello that keeps alive has %d bytes", size)
	}
	from = r.now
	for i := range 60 {
		a.send(pa, uint64(i))
		r.run(mono.Second, 10*ms)
	}
	if n := a.sent(dgram.TypeHello, from) + b.sent(dgram.TypeHello, from); n > 1 {
		t.Errorf("%d Hellos in a minute of talk", n)
	}
	if len(b.got[pb]) != 60 || len(a.news)+len(b.news) != 0 {
		t.Errorf("got %d; news %v %v", len(b.got[pb]), a.news, b.news)
	}
}

// TestHandshake_peerLost: a dead peer is found after PeerLost, not before, and not
// much later than KeepAlive and PeerLost.
func TestHandshake_peerLost(t *testing.T) {
	for _, lost := range []mono.Duration{200 * ms, 2 * mono.Second, 30 * mono.Second} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			r := newRig(t)
			a, b := r.open(1, 1, 0, dgram.Config{PeerLost: lost}), r.open(2, 2, 0, dgram.Config{PeerLost: lost})
			pa, _ := r.meet(a, b)
			r.lose = func(*dgram.Header) bool { return true }
			heard := pa.heardAt
			r.run(lost, lost/1000)
			if pa.Closed() {
				t.Fatal("lost too early")
			}
			r.run(lost, lost/1000)
			if !pa.Closed() || kinds(a.news)[0] != PeerLost {
				t.Fatalf("not lost %v after it was heard; news %v", r.now.Sub(heard), a.news)
			}
		})
	}
}

// TestHandshake_absent: a side that was not stepped for long does not take its own
// absence for the peer's, however seldom it looks, or when its queue was full.
func TestHandshake_absent(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps int
		every mono.Duration
	}{
		{"once for an hour", 1, 3600 * mono.Second},
		{"every 7 s", 30, 7 * mono.Second},
		{"every 31 s", 30, 31 * mono.Second},
		{"every 10 minutes", 30, 600 * mono.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair()
			pa, pb := r.meet(a, b)
			for range c.steps {
				r.now = r.now.Add(c.every)
				a.step()
				b.step()
			}
			r.run(mono.Second, ms)
			if pa.Closed() || pb.Closed() || len(a.news)+len(b.news) != 0 {
				t.Errorf("news %v %v", a.news, b.news)
			}
		})
	}
}

// TestHandshake_unwanted: a peer that never answers is lost when something was to
// be sent to it, and else asked on and on.
func TestHandshake_unwanted(t *testing.T) {
	r := newRig(t)
	a := r.open(1, 1, 0, dgram.Config{PeerLost: mono.Second})
	b := r.open(2, 2, 0, dgram.Config{})
	b.ep.SetReliable(false)
	pa := a.to(b)
	r.run(60*mono.Second, 5*ms)
	if pa.Closed() || len(a.news) != 0 {
		t.Fatal("a peer that nobody wants was lost")
	}
	if n := a.sent(dgram.TypeHello, r.now.Add(-10*mono.Second)); n < 5 || n > 70 {
		t.Errorf("%d Hellos in 10 s", n)
	}
	a.ep.Want(pa)
	r.run(2*mono.Second, 5*ms)
	if !pa.Closed() || a.ep.Stats.PeersLost != 1 {
		t.Error("a peer that somebody wants was not lost")
	}
}

// TestRearm_idle: an idle peer has no timer but the keep-alive's, and no ring.
func TestRearm_idle(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	for i := range 10 {
		a.send(pa, uint64(i))
		b.send(pb, uint64(i))
	}
	r.run(50*ms, ms/10)
	for _, s := range r.sides {
		if d := s.ep.Deadline(); d < r.now.Add(mono.Second) {
			t.Errorf("an idle endpoint wakes after %v", d.Sub(r.now))
		}
	}
	if pa.Snd.InFlight() != 0 || pa.Rcv.Deadline() != mono.Never {
		t.Errorf("%d in flight", pa.Snd.InFlight())
	}
}

package llp

import (
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// card spreads datagrams over queues by a hash that nobody knows, and likes the last one.
func (r *rig) card(queues int, hashes func(from, to fabric.Remote, source uint8) uint64) {
	r.net.Home = queues
	r.net.Queue = func(from, to fabric.Remote, source uint8) uint8 {
		return 1 + uint8(hashes(from, to, source)%uint64(queues))
	}
}

// byPorts is a card that looks at ports, and whose key is seed.
func byPorts(seed uint64) func(from, to fabric.Remote, source uint8) uint64 {
	return func(from, to fabric.Remote, source uint8) uint64 {
		return (from.Hash() ^ to.Hash()*3 ^ (seed<<8|uint64(source))*0x9e3779b97f4a7c15) >> 40
	}
}

// arrivals returns on which queue what a sends to b arrives.
func (r *rig) arrivals(a, b *side, p *Peer) uint8 {
	return r.net.Queue(fabric.RemoteOf(a.addr), fabric.RemoteOf(b.addr), p.source)
}

// Each side finds a source port from which its datagrams arrive on the queue that the other
// likes, whatever the hash is and what gets lost, and ULPDUs arrive meanwhile.
func TestSource_found(t *testing.T) {
	for seed := range uint64(200) {
		r := newRig(t)
		queues := 2 + int(seed%7)
		r.card(queues, byPorts(seed))
		lost := uint64(0)
		r.lose = func(h *dgram.Header) bool { // every third Hello
			lost++
			return seed%2 == 1 && lost%3 == 0 && h.Type == dgram.TypeHello
		}
		a, b := r.pair()
		pa := a.to(b)
		r.run(3000*ms, ms/2)
		pb := b.peer(a)
		if pb == nil || !pa.Open() || !pb.Open() {
			t.Fatalf("seed %d: they do not meet", seed)
		}
		for n := range uint64(5) {
			a.send(pa, n)
			b.send(pb, n)
			r.run(ms, ms/10)
		}
		if len(b.got[pb]) != 5 || len(a.got[pa]) != 5 {
			t.Fatalf("seed %d: %d and %d of 5 ULPDUs arrive", seed, len(b.got[pb]), len(a.got[pa]))
		}
		for _, x := range []struct {
			from, to *side
			p        *Peer
		}{{a, b, pa}, {b, a, pb}} {
			search := x.from.ep.shake.searches[x.p]
			if search != nil || x.p.sought != (r.arrivals(x.from, x.to, x.p) != uint8(queues)) || x.p.sought && seed%2 == 0 {
				t.Errorf("seed %d: %d queues, number %d is used, which arrives on %d: %+v", seed, queues, x.p.source, r.arrivals(x.from, x.to, x.p), search)
			}
		}
	}
}

// A search ends soon where the card looks at addresses only, and begins not at all where there
// is one queue; and what is chosen is given up when nothing comes back.
func TestSource_givenUp(t *testing.T) {
	r := newRig(t)
	r.card(4, func(from, to fabric.Remote, source uint8) uint64 { return 1 })
	a, b := r.pair()
	pa, _ := r.meet(a, b)
	r.run(100*ms, ms/2)
	if hellos := a.sent(dgram.TypeHello, 0); a.ep.shake.searches[pa] != nil || !pa.sought || pa.source != 0 || hellos > sameQueue+3 {
		t.Errorf("%d Hellos, %+v", hellos, a.ep.shake.searches[pa])
	}
	r = newRig(t)
	a, b = r.pair()
	pa, _ = r.meet(a, b)
	r.run(100*ms, ms/2)
	if hellos := a.sent(dgram.TypeHello, 0); a.ep.shake.searches[pa] != nil || hellos > 2 {
		t.Errorf("one queue: %d Hellos, %+v", hellos, a.ep.shake.searches[pa])
	}
	r = newRig(t)
	chosen := byPorts(6)
	r.card(5, chosen)
	a, b = r.pair()
	pa, _ = r.meet(a, b)
	r.run(100*ms, ms/2)
	if pa.source == 0 {
		t.Fatal("the endpoint's own port is good enough: choose another seed")
	}
	a.ep.shake.doubt(pa)
	if pa.source != 0 {
		t.Error("it is sent from there though nothing comes back")
	}
	a.send(pa, 1)
	r.run(10*ms, ms/10)
	if got := b.got[b.peer(a)]; len(got) != 1 {
		t.Errorf("%v arrives", got)
	}
}

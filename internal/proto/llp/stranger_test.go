package llp

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/mesh"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// TestHandshake_strangerIsSentLittle: whoever only says Hello, with whatever address, makes
// nobody send more than three times as much there, and is soon forgotten.
func TestHandshake_strangerIsSentLittle(t *testing.T) {
	for _, size := range []int{shortHello, 300, basePayload, 8972} {
		r := newRig(t)
		b := r.open(2, 0xb1, 0, dgram.Config{})
		came, victim := 0, addrOf(9)
		for i := range 3 {
			body := append(hello(8972, size), make([]byte, size-shortHello)...)
			r.forge(victim, b.addr, dgram.Header{Type: dgram.TypeHello, SrcEpoch: 5}, body)
			came += size
			for range 20 {
				r.run(20*ms, ms)
				sent := 0
				for _, s := range r.seen {
					if s.to == fabric.RemoteOf(victim) {
						sent += len(s.payload)
					}
				}
				if sent > 3*came || sent == 0 {
					t.Fatalf("%d bytes were sent for %d of Hello number %d", sent, came, i+1)
				}
			}
		}
		r.run(strangerLife, 10*ms)
		all, strange := b.ep.dg.(*mesh.End).Paths()
		if b.ep.shake.byAddr.Len() != 0 || all != 0 || strange != 0 || b.ep.shake.strangers.n != 0 {
			t.Errorf("Hello of %d bytes: %d peers and %d paths are left", size, b.ep.shake.byAddr.Len(), all)
		}
		if s := b.ep.Stats; s.PeersDropped != 1 || s.PeersLost != 0 {
			t.Errorf("%d dropped, %d lost: a stranger is no loss", s.PeersDropped, s.PeersLost)
		}
	}
}

// TestHandshake_flood: strangers without number, with the right key, take a bounded place,
// and an association goes on meanwhile without a loss.
func TestHandshake_flood(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	var want []uint64
	for i := range 60000 {
		r.forge(addrOf(3+i), b.addr, dgram.Header{Type: dgram.TypeHello, SrcEpoch: uint32(i + 1)}, hello(8972, shortHello))
		if i%20 != 19 {
			continue
		}
		if i%1000 == 999 {
			a.send(pa, uint64(i))
			want = append(want, uint64(i))
		}
		r.run(ms/10, ms/10)
		r.seen = r.seen[:0]
		all, strange := b.ep.dg.(*mesh.End).Paths()
		if len(b.ep.shake.peers) > maxStrangers+1 || all > maxStrangers+1 || strange > maxStrangers {
			t.Fatalf("after %d Hellos there are %d peers and %d paths, %d of strangers", i+1, len(b.ep.shake.peers), all, strange)
		}
	}
	r.run(ms, ms/10)
	if !slices.Equal(b.got[pb], want) || a.ep.Stats.TxResent != 0 || pa.Snd.TimeOuts() != 0 {
		t.Errorf("got %d of %d messages, %d sent again", len(b.got[pb]), len(want), a.ep.Stats.TxResent)
	}
	for range 50 {
		r.run(strangerLife/40, 10*ms)
		r.seen = r.seen[:0]
	}
	if b.ep.shake.strangers.n != 0 || b.ep.shake.byAddr.Len() != 1 || pb.Closed() {
		t.Errorf("%d strangers are left, the peer is closed: %v", b.ep.shake.strangers.n, pb.Closed())
	}
}

// TestRecall_stoodStill: a peer that stood still for longer than a stranger is
// remembered, right after its Hello, goes on as if nothing had been.
func TestRecall_stoodStill(t *testing.T) {
	for _, first := range []dgram.Type{dgram.TypeData, dgram.TypeHello} {
		r := newRig(t)
		a, b := r.pair()
		pa := a.to(b)
		for ; b.peer(a) == nil; r.now = r.now.Add(ms / 10) {
			a.step()
			b.step()
		}
		r.sides = []*side{b}
		r.run(strangerLife+ms, ms)
		if b.peer(a) != nil {
			t.Fatal("the stranger was not forgotten")
		}
		r.sides = []*side{a, b}
		r.lose = func(h *dgram.Header) bool { return h.DstEpoch != 0 && h.Type != first && h.SrcEpoch == pa.local }
		a.step() // the answer has waited for it
		if !pa.Open() {
			t.Fatal("the answer is not good any more")
		}
		if first == dgram.TypeData {
			a.send(pa, 7)
		}
		r.run(ms, ms/10)
		r.lose = nil
		if first == dgram.TypeHello {
			a.send(pa, 7)
		}
		r.run(100*ms, ms)
		pb := b.peer(a)
		if pb == nil || !slices.Equal(b.got[pb], []uint64{7}) || pa.Closed() || b.ep.Stats.TxResets != 0 || b.ep.shake.strangers.n != 0 {
			t.Errorf("%v first: peer %v, closed %v, %+v", first, pb, pa.Closed(), b.ep.Stats)
		}
	}
}

// TestRecall_over: what belongs to an association that is over does not bring it back.
func TestRecall_over(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	a.send(pa, 1)
	data := *a.last(dgram.TypeData)
	r.run(ms, ms/10)
	r.sides = []*side{b}
	r.lose = func(*dgram.Header) bool { return true }
	b.ep.Disassociate(pb)
	r.run(ms, ms/10)
	r.replay(&data)
	r.run(ms, ms/10)
	if p := b.peer(a); p != nil || b.ep.Stats.RxStale != 1 {
		t.Errorf("old data made %v; %+v", p, b.ep.Stats)
	}
}

// TestHandshake_impostor: somebody says Hello in the name of a peer, before and while that
// one begins: it is not in its way.
func TestHandshake_impostor(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	n := uint32(77)
	lie := func() {
		n++
		r.forge(a.addr, b.addr, dgram.Header{Type: dgram.TypeHello, SrcEpoch: n}, hello(8972, shortHello))
		b.step()
	}
	lie()
	pa := a.to(b)
	for range 40 {
		r.run(ms, ms/2)
		lie()
	}
	if !pa.Open() {
		t.Fatal("the peer was not let in")
	}
	a.send(pa, 3)
	for range 40 {
		r.run(ms, ms/2)
		lie()
	}
	pb := b.peer(a)
	if pb == nil || !slices.Equal(b.got[pb], []uint64{3}) || pa.Closed() {
		t.Errorf("peer %v, closed %v", pb, pa.Closed())
	}
}

// TestDoubt_peerIsSilent: the carrier hears of a peer that does not answer, at the second
// time-out in a row and each further one, and when the peer is there again all goes on.
func TestDoubt_peerIsSilent(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	end := a.ep.dg.(*mesh.End)
	a.send(pa, 1)
	r.run(ms, ms/10)
	if end.Doubts != 0 {
		t.Errorf("%d doubts while all is well", end.Doubts)
	}
	r.lose = func(*dgram.Header) bool { return true }
	a.send(pa, 2)
	for pa.Snd.TimeOuts() < 5 {
		r.run(ms, ms/10)
		if lost, ok := pa.Snd.NextLost(); ok {
			pa.Snd.Resent(r.now, lost)
		}
	}
	if end.Doubts < 3 || !pa.uncertain {
		t.Errorf("%d doubts after 5 time-outs", end.Doubts)
	}
	r.lose = nil
	a.send(pa, 3)
	for range 1000 {
		if r.run(ms/10, ms/10); !pa.uncertain {
			break
		}
	}
	if pa.uncertain || pa.Closed() || pb.Closed() {
		t.Errorf("still uncertain: %v, closed %v %v", pa.uncertain, pa.Closed(), pb.Closed())
	}
}

// twoNetworks makes an end of the mesh one that has told of a second network.
type twoNetworks struct{ *mesh.End }

func (n twoNetworks) Locals() []netip.AddrPort {
	return []netip.AddrPort{n.Local(), addrPlus(n.Local(), 1)}
}
func (n twoNetworks) Via() int { return 0 }

func (n twoNetworks) ResolveOn(_ int, to netip.AddrPort) (fabric.Path, error) { return n.Resolve(to) }

// TestHandshake_strangerOfSeveralNetworks: the list of networks makes a Hello longer, and what a
// stranger's own Hellos have left of its credit may lie between the two lengths: nothing is
// sent then, and never a Hello that is cut.
func TestHandshake_strangerOfSeveralNetworks(t *testing.T) {
	for size := shortHello; size < shortHello+120; size++ {
		r := newRig(t)
		ep, err := New(twoNetworks{r.net.Open(addrOf(2), 0)}, Config{Epoch: 0xb1, Key: rigKey}, r.now)
		if err != nil {
			t.Fatal(err)
		}
		ep.SetReliable(true)
		b := &side{rig: r, ep: ep, addr: addrOf(2), got: map[*Peer][]uint64{}}
		r.sides = append(r.sides, b)
		body := append(hello(8972, size), make([]byte, size-shortHello)...)
		r.forge(addrOf(9), b.addr, dgram.Header{Type: dgram.TypeHello, SrcEpoch: 5}, body)
		r.run(strangerLife/2, 10*ms)
		sent := 0
		for _, s := range r.seen {
			if sent += len(s.payload); len(s.payload) < ep.multi.helloLeast() {
				t.Fatalf("Hello of %d bytes: %d were sent, with the list there are %d at least", size, len(s.payload), ep.multi.helloLeast())
			}
		}
		if sent > 3*size || sent == 0 {
			t.Fatalf("%d bytes were sent for a Hello of %d", sent, size)
		}
	}
}

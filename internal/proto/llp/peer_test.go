package llp

import (
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// TestAssociate_setUp is the set-up with everything that can go wrong in it.
func TestAssociate_setUp(t *testing.T) {
	nth := func(kind dgram.Type, n int) func(*dgram.Header) bool {
		return func(h *dgram.Header) bool {
			if h.Type == kind {
				n--
			}
			return h.Type == kind && n >= 0
		}
	}
	for _, c := range []struct {
		name   string
		both   bool
		lose   func(*dgram.Header) bool
		within mono.Duration
	}{
		{"one side", false, nil, ms},
		{"both at once", true, nil, ms},
		{"Hello lost", false, nth(dgram.TypeHello, 1), 25 * ms},
		{"both Hellos lost", true, nth(dgram.TypeHello, 2), 25 * ms},
		{"HelloAck lost", false, nth(dgram.TypeHelloAck, 1), 25 * ms},
		{"both HelloAcks lost", true, nth(dgram.TypeHelloAck, 2), 25 * ms},
		{"two of each lost", true, func() func(*dgram.Header) bool {
			hello, ack := nth(dgram.TypeHello, 2), nth(dgram.TypeHelloAck, 2)
			return func(h *dgram.Header) bool { return hello(h) || ack(h) }
		}(), 100 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.lose = c.lose
			a, b := r.pair()
			pa := a.to(b)
			if pa.Open() {
				t.Error("open before anything was heard")
			}
			if c.both {
				b.to(a)
			}
			r.run(c.within, ms/10)
			pb := b.peer(a)
			if pb == nil || !pa.Open() || !pb.Open() {
				t.Fatalf("not open after %v", c.within)
			}
			if pa.local != pb.remote || pa.remote != pb.local || pa.local == pa.remote {
				t.Errorf("numbers are %x, %x here and %x, %x there", pa.local, pa.remote, pb.local, pb.remote)
			}
			for _, s := range r.sides {
				if k := kinds(s.news); !slices.Equal(k, []NewsKind{PeerOpened}) {
					t.Errorf("%v heard news %v", s.addr, k)
				}
				if s.ep.Stats.RxStale+s.ep.Stats.TxResets != 0 {
					t.Errorf("%v: %+v", s.addr, s.ep.Stats)
				}
			}
			a.send(pa, 7)
			b.send(pb, 9)
			r.run(ms, ms/10)
			if !slices.Equal(a.got[pa], []uint64{9}) || !slices.Equal(b.got[pb], []uint64{7}) {
				t.Errorf("got %v and %v", a.got[pa], b.got[pb])
			}
		})
	}
}

// TestAdopt_dataFirst: a side whose Hello was answered by data only takes the
// number of the peer from it.
func TestAdopt_dataFirst(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa := a.to(b)
	r.now = r.now.Add(ms / 10)
	a.step() // Hello
	r.lose = func(h *dgram.Header) bool { return h.Type == dgram.TypeHelloAck || h.Type == dgram.TypeHello }
	b.step() // its answer is lost, and its own Hello
	pb := b.peer(a)
	b.send(pb, 5)
	a.step()
	if !pa.Open() || pa.remote != pb.local || !slices.Equal(a.got[pa], []uint64{5}) {
		t.Errorf("open %v, got %v", pa.Open(), a.got[pa])
	}
}

// TestAdopt_noDataBeforeOpen: without the right number nothing is taken.
func TestAdopt_noDataBeforeOpen(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	for _, h := range []dgram.Header{
		{SrcEpoch: pa.local, DstEpoch: 0},
		{SrcEpoch: pa.local, DstEpoch: pb.local + 1},
		{SrcEpoch: pa.local + 1, DstEpoch: pb.local},
		{SrcEpoch: pb.local, DstEpoch: pa.local}, // mirrored
	} {
		h.Type, h.LSN, h.Count = dgram.TypeData, pb.Rcv.Next(), 1
		before := b.ep.Stats.RxStale
		r.forge(a.addr, b.addr, h, append([]byte{0, addrLen}, make([]byte, addrLen)...))
		b.step()
		if b.ep.Stats.RxStale != before+1 || len(b.got[pb]) != 0 {
			t.Errorf("%x to %x: stale %d, got %v", h.SrcEpoch, h.DstEpoch, b.ep.Stats.RxStale, b.got[pb])
		}
		r.run(ms, ms/10)
		if pa.Closed() || pb.Closed() || a.peer(b) != pa || b.peer(a) != pb {
			t.Fatalf("%x to %x ended the association", h.SrcEpoch, h.DstEpoch)
		}
	}
	a.send(pa, 1)
	r.run(ms, ms/10)
	if !slices.Equal(b.got[pb], []uint64{1}) {
		t.Errorf("got %v", b.got[pb])
	}
}

// TestHandshake_replayed: a Hello of the association that is heard again, be it
// the first one, changes nothing.
func TestHandshake_replayed(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	first := r.seen[0]
	if first.h.Type != dgram.TypeHello || first.h.DstEpoch != 0 {
		t.Fatalf("the first datagram is %+v", first.h)
	}
	r.run(100*ms, 10*ms)
	heard := pb.heardAt
	for range 3 {
		r.replay(&first)
		r.run(ms, ms/10)
	}
	if b.peer(a) != pb || a.peer(b) != pa || pb.heardAt != heard || len(a.news)+len(b.news) != 0 {
		t.Errorf("heard at %v, then %v; news %v %v", heard, pb.heardAt, a.news, b.news)
	}
	a.send(pa, 3)
	r.run(ms, ms/10)
	if !slices.Equal(b.got[pb], []uint64{3}) {
		t.Errorf("got %v", b.got[pb])
	}
}

// TestHandshake_replayedOfFormerLife: a Hello of an association that is gone is
// answered, and the living one is left alone; nobody takes the answer up.
func TestHandshake_replayedOfFormerLife(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	r.meet(a, b)
	old := r.seen[0]
	a = r.open(1, 0xa2, 0, dgram.Config{}) // a starts anew
	pa := a.to(b)
	r.run(ms, ms/10)
	a.send(pa, 1)
	r.run(ms, ms/10)
	pb := b.peer(a)
	a.news, b.news = nil, nil
	for range 3 {
		r.replay(&old)
		r.run(30*ms, ms)
	}
	if b.peer(a) != pb || a.peer(b) != pa || len(b.news)+len(a.news) != 0 {
		t.Errorf("an old Hello made news: %v %v", a.news, b.news)
	}
	a.send(pa, 2)
	r.run(ms, ms/10)
	if !slices.Equal(b.got[pb], []uint64{1, 2}) {
		t.Errorf("got %v", b.got[pb])
	}
}

// TestAnswered_replayed: so with an answer.
func TestAnswered_replayed(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	ack := *b.last(dgram.TypeHelloAck)
	most, next := pa.most, pa.Rcv.Next()
	r.replay(&ack)
	r.run(ms, ms/10)
	if a.peer(b) != pa || pa.most != most || pa.Rcv.Next() != next || len(a.news) != 0 {
		t.Errorf("payload %d then %d, news %v", most, pa.most, a.news)
	}
	a = r.open(1, 0xa2, 0, dgram.Config{}) // to a new life it says nothing
	pa = a.to(b)
	r.replay(&ack)
	stale := a.ep.Stats.RxStale
	a.step()
	if pa.Open() || a.ep.Stats.RxStale != stale+1 {
		t.Error("an old answer opened a new association")
	}
	_ = pb
}

// TestPromote_restart: either side starts anew and sends; the other one hears
// of it, once, and the new association works.
func TestPromote_restart(t *testing.T) {
	for _, c := range []struct {
		name string
		how  func(r *rig, fresh, other *side, p *Peer)
	}{
		{"data", func(_ *rig, fresh, _ *side, p *Peer) { fresh.send(p, 1) }},
		{"keep-alive only", func(r *rig, _, _ *side, _ *Peer) { r.run(6*mono.Second, 10*ms) }},
		{"acknowledgement", func(r *rig, fresh, other *side, p *Peer) { fresh.ep.Ack(r.now, p, 63); fresh.ep.Flush() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair()
			_, old := r.meet(a, b)
			fresh := r.open(1, 0xa2, 0, dgram.Config{})
			p := fresh.to(b)
			r.run(2*ms, ms/10)
			if !p.Open() {
				t.Fatal("the new life is not answered")
			}
			if b.peer(fresh) != old || len(b.news) != 0 {
				t.Fatal("a Hello alone ended the association")
			}
			c.how(r, fresh, b, p)
			r.run(ms, ms/10)
			now := b.peer(fresh)
			if now == old || !old.Closed() || now == nil || now.remote != p.local || now.local != p.remote {
				t.Fatalf("the new life was not taken: %+v", b.news)
			}
			if k := kinds(b.news); !slices.Equal(k, []NewsKind{PeerRestarted, PeerOpened}) {
				t.Errorf("news are %v", k)
			}
			if p.Closed() {
				t.Error("the new life was refused")
			}
			fresh.send(p, 2)
			b.send(now, 3)
			r.run(ms, ms/10)
			if got := b.got[now]; got[len(got)-1] != 2 || !slices.Equal(fresh.got[p], []uint64{3}) {
				t.Errorf("got %v and %v", got, fresh.got[p])
			}
		})
	}
}

// TestRefuse_stale: what is sent to a life that is gone is answered by Reset,
// and the sender hears that the peer restarted.
func TestRefuse_stale(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, _ := r.meet(a, b)
	b = r.open(2, 0xb2, 0, dgram.Config{})
	a.send(pa, 1)
	r.run(ms, ms/10)
	if b.ep.Stats.RxStale != 1 || b.ep.Stats.TxResets != 1 {
		t.Errorf("stats are %+v", b.ep.Stats)
	}
	if !pa.Closed() || !slices.Equal(kinds(a.news), []NewsKind{PeerRestarted}) || a.ep.Stats.PeersLost != 1 {
		t.Errorf("closed %v, news %v", pa.Closed(), a.news)
	}
	if len(b.got) != 0 {
		t.Errorf("the new life took %v", b.got)
	}
}

// TestControl_forgedReset: only the two right numbers end an association.
func TestControl_forgedReset(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	for _, n := range [][2]uint32{
		{pa.local, 0}, {pa.local, pb.local ^ 1}, {pa.local ^ 1, pb.local}, {pb.local, pa.local}, {1, 2},
	} {
		stale := b.ep.Stats.RxStale
		r.forge(a.addr, b.addr, dgram.Header{Type: dgram.TypeReset, SrcEpoch: n[0], DstEpoch: n[1]}, nil)
		b.step()
		if pb.Closed() || b.ep.Stats.RxStale != stale+1 || b.ep.Stats.TxResets != 0 {
			t.Fatalf("%x: closed %v, stats %+v", n, pb.Closed(), b.ep.Stats)
		}
	}
	r.forge(addrOf(9), b.addr, dgram.Header{Type: dgram.TypeReset, SrcEpoch: pa.local, DstEpoch: pb.local}, nil)
	b.step()
	if pb.Closed() {
		t.Fatal("a Reset of somebody else ended the association")
	}
	r.forge(a.addr, b.addr, dgram.Header{Type: dgram.TypeReset, SrcEpoch: pa.local, DstEpoch: pb.local}, nil)
	b.step()
	if !pb.Closed() || b.peer(a) != nil {
		t.Fatal("the right one did not")
	}
}

// TestClose_tells: Close acknowledges what came, and the peer hears that it is
// over before anything is lost.
func TestClose_tells(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	a.send(pa, 1)
	b.step()
	if err := b.ep.Close(); err != nil {
		t.Fatal(err)
	}
	r.sides = r.sides[:1]
	a.step()
	if !pb.Closed() || !pa.Closed() || pa.Snd.InFlight() != 0 || !slices.Equal(kinds(a.news), []NewsKind{PeerRestarted}) {
		t.Errorf("closed %v, in flight %d, news %v", pa.Closed(), pa.Snd.InFlight(), a.news)
	}
	if r.net.Free() != 4096 {
		t.Errorf("%d frames of 4096 are free", r.net.Free())
	}
}

// TestClose_tellsAll though there are more peers than the carrier takes
// datagrams at once.
func TestClose_tellsAll(t *testing.T) {
	r := newRig(t)
	hub := r.open(0, 1, 0, dgram.Config{})
	const n = 600
	for i := range n {
		s := r.open(1+i, uint32(2+i), 0, dgram.Config{})
		s.to(hub)
	}
	r.run(300*ms, ms)
	if err := hub.ep.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.sides[1:] {
		s.step()
		if len(s.news) != 2 || s.news[1].Kind != PeerRestarted {
			t.Fatalf("%v heard %v", s.addr, kinds(s.news))
		}
	}
}

// TestDisassociate_index: an index is used again, and what comes for the old
// association does not reach the new one.
func TestDisassociate_index(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	c := r.open(3, 0xc1, 0, dgram.Config{})
	pa, pb := r.meet(a, b)
	late := b.send(pb, 1) // on its way
	a.ep.Disassociate(pa)
	a.ep.Disassociate(pa) // again: nothing
	pc := a.to(c)
	if pc.Index != pa.Index {
		t.Errorf("index %d after %d", pc.Index, pa.Index)
	}
	r.run(5*ms, ms/10)
	if !pc.Open() || len(a.got) != 0 || pa.Rcv.Next() > late {
		t.Errorf("open %v, got %v", pc.Open(), a.got)
	}
	if !pb.Closed() {
		t.Error("the peer was not told")
	}
	again := a.to(b)
	r.run(5*ms, ms/10)
	if !again.Open() || again.Index == pc.Index {
		t.Errorf("open %v, index %d", again.Open(), again.Index)
	}
}

// TestSetReliable: where nobody takes what associations carry, there are none.
func TestSetReliable(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	b.ep.SetReliable(false)
	pa := a.to(b)
	r.run(200*ms, ms)
	if pa.Open() || b.peer(a) != nil || b.ep.Stats.RxStale == 0 || b.ep.Stats.TxDatagrams != 0 {
		t.Errorf("open %v, stats %+v", pa.Open(), b.ep.Stats)
	}
	b.ep.SetReliable(true)
	r.run(mono.Second, ms)
	if !pa.Open() || pa.most != 8972 {
		t.Fatalf("open %v, payload %d", pa.Open(), pa.most)
	}
	b.ep.SetReliable(false)
	b.ep.Flush()
	a.step()
	if !pa.Closed() || b.peer(a) != nil {
		t.Error("the association goes on")
	}
}

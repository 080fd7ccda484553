package llp

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// put queues one ULPDU of n bytes to p that carries x.
func (s *side) put(p *Peer, n int, x uint64) {
	s.rig.t.Helper()
	if !s.ep.Begin(p, p.Snd.Next(), n) {
		s.rig.t.Fatal("no room")
	}
	if n > addrLen {
		s.ep.Long(p)
	}
	p.Snd.Push(s.rig.now, 0, 0, uint32(n), true)
	b := make([]byte, n-addrLen)
	binary.BigEndian.PutUint64(s.ep.ULPDU(n, addrLen), x)
	s.ep.Payload(b)
	s.ep.Commit(s.rig.now, p, 63, false)
}

// sendSized sends one ULPDU of n bytes to p and reports whether it goes as bulk.
func (s *side) sendSized(p *Peer, n int) bool {
	before := s.ep.Stats.TxBulk
	s.put(p, n, 0)
	return s.ep.Stats.TxBulk != before
}

// ackAll lets p say that it has everything that was sent to it.
func (s *side) ackAll(p *Peer) {
	s.ep.out.tx.Reset()
	s.ep.bulk.tx.Reset()
	p.ack = p.Snd.Next()
}

func TestInBulk(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	r.stream(a, b, p, 8) // finds the second path
	for range 2 {        // the second time like the first
		for i := range arq.BurstAfter {
			if a.sendSized(p, 4000) {
				t.Fatalf("datagram %d of a message goes as bulk", i+1)
			}
		}
		if !a.sendSized(p, 4000) {
			t.Errorf("with %d on their way the next does not go as bulk", arq.BurstAfter)
		}
		if !a.sendSized(p, addrLen) {
			t.Error("a small datagram overtakes those before it")
		}
		bulk := a.ep.Stats.TxBulk
		if a.ep.Ack(r.now, p, 63); a.ep.Stats.TxBulk != bulk {
			t.Error("an acknowledgement waits behind bulk data")
		}
		a.ackAll(p)
		if a.sendSized(p, 4000) {
			t.Error("the first datagram after all have arrived goes as bulk")
		}
		a.ackAll(p)
	}
	for range 4 * arq.BurstAfter {
		if a.sendSized(p, addrLen) {
			t.Fatal("many small messages go as bulk")
		}
		a.ep.out.tx.Reset()
	}
}

// openTwo adds an endpoint whose second path carries datagrams of up to most bytes.
func (r *rig) openTwo(i int, epoch uint32, most int) *side {
	return r.openWith(i, 0, Config{Epoch: epoch, Bulk: r.net.Open(addrPlus(addrOf(i), dgram.BulkPort), most)})
}

// stream sends n ULPDUs of 8000 bytes from a to b, eight at a time, lets them
// arrive, and checks that they do, once each.
func (r *rig) stream(a, b *side, p *Peer, n int) {
	r.t.Helper()
	for len(b.got) > 0 {
		clear(b.got)
	}
	for i := 0; i < n; i += 8 {
		for j := range 8 {
			a.put(p, 8000, uint64(i+j))
		}
		a.ep.Flush()
		r.run(ms, ms/10)
	}
	got := slices.Clone(b.got[b.peer(a)])
	slices.Sort(got)
	for i := range n {
		if len(got) != n || got[i] != uint64(i) {
			r.t.Fatalf("of %d ULPDUs %d arrived: %v", n, len(got), got)
		}
	}
}

// bulkSent counts what a side has sent to a port of somebody's second path.
func (s *side) bulkSent(kind dgram.Type) (n int) {
	for i := range s.rig.seen {
		x := &s.rig.seen[i]
		if x.to.Port() == addrOf(0).Port()+dgram.BulkPort && x.h.Type == kind {
			if x.from != fabric.RemoteOf(addrPlus(s.addr, dgram.BulkPort)) {
				continue
			}
			n++
		}
	}
	return n
}

func TestBulk_takesTheSecondPath(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	r.stream(a, b, p, 8) // asks
	if n := a.bulkSent(dgram.TypeData); n != 0 {
		t.Fatalf("%d datagrams went a way that nobody had answered on", n)
	}
	if n := a.bulkSent(dgram.TypeHello); n != 1 {
		t.Fatalf("%d Hellos went by the second path, want 1", n)
	}
	if !a.ep.bulk.to(p).Found() {
		t.Fatal("the second path was not found")
	}
	before := len(r.seen)
	r.stream(a, b, p, 8)
	if n := a.bulkSent(dgram.TypeData); n != 8-arq.BurstAfter {
		t.Errorf("%d of 8 datagrams went by the second path, want all but the first %d", n, arq.BurstAfter)
	}
	told := false
	for _, x := range r.seen[before:] {
		told = told || x.h.Flags&dgram.FlagBulk != 0
		if x.to.Port() != addrOf(0).Port() && !told {
			t.Error("a datagram went by the second path before the peer was told to look there")
		}
	}
	if got := b.ep.Stats.RxBulk; got != a.ep.Stats.TxBulk || got == 0 {
		t.Errorf("%d datagrams were received on the second path, %d sent", got, a.ep.Stats.TxBulk)
	}
	if p.Snd.TimeOuts() != 0 || a.ep.Stats.TxResent != 0 {
		t.Errorf("%d ULPDUs were sent again", a.ep.Stats.TxResent)
	}
}

func TestBulk_firewall(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	r.wall = true
	for range 100 {
		r.stream(a, b, p, 16)
		r.run(100*ms, 10*ms)
	}
	if n := a.bulkSent(dgram.TypeData); n != 0 {
		t.Errorf("%d datagrams went a way that leads nowhere", n)
	}
	if n := a.bulkSent(dgram.TypeHello); n < 3 || n > 12 {
		t.Errorf("%d Hellos asked for the second path in ten seconds, want a few, with growing pauses", n)
	}
	r.wall = false
	for range 200 {
		r.stream(a, b, p, 16)
		r.run(100*ms, 10*ms)
	}
	if !a.ep.bulk.to(p).Found() {
		t.Error("the second path was not found after the firewall had gone")
	}
}

// TestBulk_pathDies: what was lost arrives by the first path, and nothing is sent
// the second until it has been found anew.
func TestBulk_pathDies(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	r.stream(a, b, p, 8)
	r.wall = true
	for i := range 8 {
		a.put(p, 8000, uint64(i))
	}
	a.ep.Flush()
	lost := a.bulkSent(dgram.TypeData)
	if lost == 0 {
		t.Fatal("nothing went by the second path")
	}
	for range 100 {
		r.resend(a, p)
		r.run(10*ms, ms)
	}
	if n := p.Snd.InFlight(); n != 0 {
		t.Fatalf("%d ULPDUs have not arrived", n)
	}
	if n := a.bulkSent(dgram.TypeData); n != lost {
		t.Errorf("%d ULPDUs were sent again the way that had lost them", n-lost)
	}
}

// resend does what a queue pair does about loss. All ULPDUs have 8000 bytes.
func (r *rig) resend(s *side, p *Peer) {
	for lsn, ok := p.Snd.NextLost(); ok; lsn, ok = p.Snd.NextLost() {
		if !s.ep.Begin(p, lsn, 8000) {
			r.t.Fatal("no room")
		}
		s.ep.ULPDU(8000, addrLen)
		s.ep.Payload(make([]byte, 8000-addrLen))
		p.Snd.Resent(r.now, lsn)
		s.ep.Recommit(r.now, p, 63)
	}
	s.ep.Flush()
}

// TestBulk_swallows: a way that answers Hellos and loses large data is left alone for
// longer and longer, though nothing ever times out.
func TestBulk_swallows(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	wire := r.net.Wire
	r.net.Wire = func(from, to fabric.Remote, payload []byte) {
		var h dgram.Header
		if to.Port() == addrOf(0).Port()+dgram.BulkPort && h.Parse(payload) && h.Type == dgram.TypeData {
			r.seen = append(r.seen, sighting{from: from, to: to, h: h})
			return
		}
		wire(from, to, payload)
	}
	const runs = 400
	for range runs {
		for i := range 8 {
			a.put(p, 8000, uint64(i))
		}
		a.ep.Flush()
		for p.Snd.InFlight() > 0 {
			r.run(ms, ms/10)
			r.resend(a, p)
		}
		r.run(5*ms, ms)
	}
	lossy := a.bulkSent(dgram.TypeData) / (8 - arq.BurstAfter)
	if lossy == 0 || lossy > runs/20 {
		t.Errorf("%d of %d runs went a way that loses everything, want a few", lossy, runs)
	}
}

// A time-out while the way is in use makes it one that has to be found anew.
func TestBulk_timeOut(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	r.stream(a, b, p, 8)
	r.lose = func(*dgram.Header) bool { return true }
	for i := range 8 {
		a.put(p, 8000, uint64(i))
	}
	a.ep.Flush()
	for p.Snd.TimeOuts() == 0 {
		r.run(ms, ms)
	}
	sent := a.bulkSent(dgram.TypeData)
	a.put(p, 8000, 8)
	a.ep.Flush()
	if n := a.bulkSent(dgram.TypeData); n != sent && a.ep.bulk.to(p).Found() {
		t.Error("after a time-out data still goes by the second path")
	}
}

func TestBulk_narrowPath(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	wire := r.net.Wire
	r.net.Wire = func(from, to fabric.Remote, payload []byte) {
		if to.Port() == addrOf(0).Port()+dgram.BulkPort && len(payload) > 1472 {
			return
		}
		wire(from, to, payload)
	}
	for range 4 {
		r.stream(a, b, p, 16)
	}
	if a.ep.bulk.to(p).Found() {
		t.Error("a way counts that carries less than the first one")
	}
}

func TestBulk_peerWithoutSecondPath(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.open(2, 0xb1, 0, dgram.Config{})
	p, q := r.meet(a, b)
	for range 4 {
		r.stream(a, b, p, 16)
		r.stream(b, a, q, 16)
	}
	if a.ep.bulk.to(p).Found() || a.bulkSent(dgram.TypeData) != 0 {
		t.Error("data goes to a port that nobody has")
	}
}

// What comes from a port that no second path has is nobody's, and hurts nobody.
func TestBulk_strangePort(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	r.stream(a, b, p, 8)
	x := *a.last(dgram.TypeData)
	stale := b.ep.Stats.RxStale
	for _, port := range []uint16{1, dgram.BulkPort - 1, dgram.BulkPort} {
		from := x.from.WithPort(port)
		r.net.Deliver(from, fabric.RemoteOf(addrPlus(b.addr, dgram.BulkPort)), x.payload)
	}
	r.run(200*ms, mono.Millisecond/100)
	if got := b.ep.Stats.RxStale - stale; got != 3 {
		t.Errorf("%d datagrams of strangers were refused, want 3", got)
	}
	r.stream(a, b, p, 8)
}

func TestBulk_closesBoth(t *testing.T) {
	r := newRig(t)
	free := r.net.Free()
	a := r.openTwo(1, 0xa1, 0)
	if err := a.ep.Close(); err != nil || r.net.Free() != free {
		t.Errorf("Close: %v, %d frames are missing", err, free-r.net.Free())
	}
}

// When the first path turns out to carry more, the second one is asked anew, and until
// then what follows goes by the first path: not to whoever happens to be known there.
func TestBulk_payloadGrowsMeanwhile(t *testing.T) {
	r := newRig(t)
	a, b, c := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0), r.openTwo(3, 0xc1, 0)
	other, _ := r.meet(a, c)
	r.stream(a, c, other, 8)
	p, _ := r.meet(a, b)
	r.stream(a, b, p, 8)
	for i := range 8 {
		a.put(p, 8000, uint64(i))
	}
	if !p.burst.Second() {
		t.Fatal("nothing goes by the second path")
	}
	size := int(p.most)
	p.most--
	a.ep.shake.helloAnswered(p, &dgram.Header{SrcEpoch: p.remote, DstEpoch: p.local}, size, size)
	before := len(r.seen)
	a.put(p, 8000, 8)
	a.ep.Flush()
	for _, x := range r.seen[before:] {
		if x.h.Type == dgram.TypeData && x.to.AddrPort().Addr() != b.addr.Addr() {
			t.Errorf("a datagram for %v goes to %v", b.addr, x.to.AddrPort())
		}
	}
	r.run(20*ms, ms/10)
	if n := p.Snd.InFlight(); n != 0 {
		t.Errorf("%d ULPDUs have not arrived", n)
	}
}

// A short message waits when the second path, which it would go, has no room.
func TestFast_noRoomOnTheSecondPath(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	r.stream(a, b, p, 8)
	for a.ep.TxRoom() {
		a.put(p, 4000, 1)
		a.ep.out.push()
	}
	if !p.burst.Second() || a.ep.bulk.room() {
		t.Fatal("the second path is not full")
	}
	if a.ep.Fast(addrLen) != nil {
		t.Error("a short message has room behind what has none")
	}
}

// Who was woken may have been by the second path, which is looked at then at once.
func TestBulk_looksAfterSleep(t *testing.T) {
	r := newRig(t)
	a, b := r.openTwo(1, 0xa1, 0), r.openTwo(2, 0xb1, 0)
	p, _ := r.meet(a, b)
	r.stream(a, b, p, 8)
	for i := range 8 {
		a.put(p, 8000, uint64(i))
	}
	a.ep.Flush()
	r.run(2*looksAfter, 1) // b is idle for so long that it does not look any more
	if b.ep.bulk.looks != 0 {
		t.Fatal("b still looks")
	}
	a.put(p, 8000, 8)
	a.ep.Flush()
	got := len(b.got[b.peer(a)])
	b.woken = true
	b.step()
	if n := len(b.got[b.peer(a)]) - got; n != 1 {
		t.Errorf("%d ULPDUs are taken in after a sleep, want 1", n)
	}
}

package llp

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// TestAccept_bad: every bad datagram is counted where it belongs, and nothing
// else happens.
func TestAccept_bad(t *testing.T) {
	reseal := func(b []byte) []byte { dgram.Seal(b, dgram.CRC(0, b[dgram.CRCLen:])); return b }
	for _, c := range []struct {
		name string
		do   func(b []byte) []byte // to a good datagram with data
		stat func(*Stats) *uint64
	}{
		{"empty", func([]byte) []byte { return nil }, func(s *Stats) *uint64 { return &s.RxMalformed }},
		{"short", func(b []byte) []byte { return b[:dgram.HeaderLen-1] }, func(s *Stats) *uint64 { return &s.RxMalformed }},
		{"version", func(b []byte) []byte { b[4] ^= 0x30; return reseal(b) }, func(s *Stats) *uint64 { return &s.RxMalformed }},
		{"type", func(b []byte) []byte { b[4] |= 0x0f; return reseal(b) }, func(s *Stats) *uint64 { return &s.RxMalformed }},
		{"source epoch 0", func(b []byte) []byte { clear(b[16:20]); return reseal(b) }, func(s *Stats) *uint64 { return &s.RxMalformed }},
		{"window", func(b []byte) []byte { b[32], b[33] = 3, 255; return reseal(b) }, func(s *Stats) *uint64 { return &s.RxMalformed }},
		{"key", func(b []byte) []byte { b[15] ^= 1; return reseal(b) }, func(s *Stats) *uint64 { return &s.RxForeign }},
		{"header corrupt", func(b []byte) []byte { b[28] ^= 4; return b }, func(s *Stats) *uint64 { return &s.RxCorrupt }},
		{"payload corrupt", func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b }, func(s *Stats) *uint64 { return &s.RxCorrupt }},
		{"cut", func(b []byte) []byte { return b[:len(b)-1] }, func(s *Stats) *uint64 { return &s.RxCorrupt }},
		{"no CRC", func(b []byte) []byte { b[5] &^= dgram.FlagCRC; return reseal(b) }, func(s *Stats) *uint64 { return &s.RxCorrupt }},
		{"stale", func(b []byte) []byte { b[20] ^= 1; return reseal(b) }, func(s *Stats) *uint64 { return &s.RxStale }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair()
			pa, pb := r.meet(a, b)
			r.lose = func(*dgram.Header) bool { return true }
			a.send(pa, 1)
			r.lose = nil
			x := *a.last(dgram.TypeData)
			x.payload = c.do(x.payload)
			before := b.ep.Stats
			r.replay(&x)
			b.step()
			after := b.ep.Stats
			if *c.stat(&after) != *c.stat(&before)+1 {
				t.Errorf("%+v", after)
			}
			*c.stat(&after), after.RxDatagrams = *c.stat(&before), before.RxDatagrams
			if c.name == "stale" {
				after.TxDatagrams, after.TxResets = before.TxDatagrams, before.TxResets
			}
			if after != before || len(b.got[pb]) != 0 || pb.Closed() || pb.Rcv.Next() != x.h.LSN {
				t.Errorf("%+v, got %v", after, b.got[pb])
			}
			a.step()
			if r.net.Free() != 4096 || pa.Closed() {
				t.Errorf("%d frames are missing; closed %v", 4096-r.net.Free(), pa.Closed())
			}
		})
	}
}

// TestControl_badHello: a Hello whose length is not the datagram's, or whose
// sender takes less than every path carries, makes no peer.
func TestControl_badHello(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	for _, body := range [][]byte{
		hello(8972, shortHello+1), hello(8972, shortHello-1), hello(8972, 0), hello(basePayload-1, shortHello), hello(0, shortHello),
		make([]byte, 200), append(hello(8972, 8972), make([]byte, 99)...),
	} {
		before := b.ep.Stats.RxMalformed
		r.forge(a.addr, b.addr, dgram.Header{Type: dgram.TypeHello, SrcEpoch: 5}, body)
		b.step()
		if b.ep.Stats.RxMalformed != before+1 || b.peer(a) != nil || b.ep.Stats.TxDatagrams != 0 {
			t.Errorf("%x: %+v", body[:4], b.ep.Stats)
		}
	}
	r.forge(a.addr, b.addr, dgram.Header{Type: dgram.TypeHello, SrcEpoch: 5}, hello(8972, shortHello))
	b.step()
	if b.peer(a) == nil {
		t.Error("a good one makes none")
	}
}

// TestMeet_bounded: peers that have said nothing but Hello do not pile up, and
// those that have said more do not give way.
func TestMeet_bounded(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	const more = 1000
	for i := range maxStrangers + more {
		from := addrOf(3 + i%60000)
		if i >= 60000 {
			from = addrPlus(from, 1)
		}
		r.forge(from, b.addr, dgram.Header{Type: dgram.TypeHello, SrcEpoch: uint32(i + 1)}, hello(8972, shortHello))
		if i%100 == 99 {
			b.step() // half of what it sends finds nobody
			r.seen = r.seen[:1]
		}
	}
	b.step()
	if n := b.ep.shake.byAddr.Len(); n != maxStrangers+1 {
		t.Errorf("%d peers, want %d and one that is known", n, maxStrangers)
	}
	if b.ep.Stats.PeersDropped != more || len(b.ep.shake.peers) != maxStrangers+1 {
		t.Errorf("%d dropped, %d places", b.ep.Stats.PeersDropped, len(b.ep.shake.peers))
	}
	r.sides = []*side{a, b}
	a.send(pa, 1)
	r.run(ms, ms/10)
	if pb.Closed() || !slices.Equal(b.got[pb], []uint64{1}) {
		t.Error("the known peer gave way")
	}
	n := 0
	for p := b.ep.shake.strangers.oldest; p != nil; p = p.newer {
		if n++; p.newer != nil && p.newer.older != p {
			t.Fatal("the list is broken")
		}
	}
	if n != b.ep.shake.strangers.n {
		t.Errorf("%d in the list, %d counted", n, b.ep.shake.strangers.n)
	}
}

// TestMeet_known: a peer that answers is no stranger.
func TestMeet_known(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	r.meet(a, b)
	if a.ep.shake.strangers.n+b.ep.shake.strangers.n != 0 {
		t.Errorf("%d and %d strangers", a.ep.shake.strangers.n, b.ep.shake.strangers.n)
	}
}

// TestFits_many: ULPDUs share a datagram up to its size and up to 255, and all
// of them arrive.
func TestFits_many(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, pb := r.meet(a, b)
	for _, first := range []int{addrLen, 2000, 4000, 8000} {
		b.got[pb] = nil
		from := pa.Snd.Next()
		if !a.ep.Begin(pa, from, first) {
			t.Fatal("no room")
		}
		n := 0
		for size := first; n == 0 || a.ep.Fits(size); n++ {
			pa.Snd.Push(r.now, 0, 0, uint32(size-addrLen), true)
			binary.BigEndian.PutUint64(a.ep.ULPDU(size, addrLen), uint64(n))
			a.ep.Payload(make([]byte, size-addrLen))
			size = addrLen
		}
		if n > maxCount || a.ep.out.size > int(pa.whole) {
			t.Errorf("%d ULPDUs in %d bytes", n, a.ep.out.size)
		}
		a.ep.Commit(r.now, pa, 63, false)
		a.ep.Flush()
		last := a.last(dgram.TypeData)
		if int(last.h.Count) != n || last.h.LSN != from {
			t.Errorf("header says %d from %d", last.h.Count, last.h.LSN)
		}
		r.run(ms, ms/10)
		if pa.Snd.InFlight() != 0 {
			t.Errorf("%d of %d not acknowledged", pa.Snd.InFlight(), n)
		}
	}
}

// exchange makes a datagram with data go from a to b, and the acknowledgement come
// back.
func exchange(a, b *side, p *Peer, h *dgram.Header) {
	now := a.rig.now
	if !a.ep.Begin(p, p.Snd.Next(), addrLen) {
		panic("no room")
	}
	p.Snd.Push(now, 0, 0, 0, true)
	a.ep.ULPDU(addrLen, addrLen)
	a.ep.Commit(now, p, 63, true)
	a.ep.Flush()
	for _, s := range []*side{b, a} {
		for s.ep.Recv(now, false) > 0 {
			for p, rd := s.ep.Next(h); rd != nil; p, rd = s.ep.Next(h) {
				s.ep.OnAck(&p.Assoc, h.Ack, h.Window, h.Held, nil)
				if h.Count > 0 {
					p.Rcv.Mark(h.LSN)
					s.ep.Ack(now, p, 63)
				}
			}
			s.ep.Release()
		}
		s.ep.Flush()
	}
}

func TestAllocs_sendReceive(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	pa, _ := r.meet(a, b)
	r.net.Wire = nil
	var h dgram.Header
	for range 100 {
		exchange(a, b, pa, &h)
	}
	if n := testing.AllocsPerRun(1000, func() { exchange(a, b, pa, &h) }); n != 0 {
		t.Errorf("%v allocations for a datagram and its acknowledgement", n)
	}
	if pa.Snd.InFlight() != 0 {
		t.Errorf("%d in flight", pa.Snd.InFlight())
	}
}

// FuzzEndpoint sends datagrams of any content, with the right key and CRC, from
// a few addresses to an endpoint that has a peer there, and another one where
// nothing comes from but what it sends. The endpoint must not panic, lose frames,
// or make a peer but for a Hello, and serves the other peer as ever.
func FuzzEndpoint(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 0, 0, 8})
	f.Add([]byte{1, 1, 2, 0, 1, 0, 0, 44, 2, 0, 1, 0x10, 0, 40, 6, 0, 2, 0, 0, 36, 4, 0, 1, 0xf1, 0, 40})
	f.Add(append([]byte{byte(dgram.TypeData), 0, 1, 0, 3, 8}, 0, addrLen, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0)) // in order
	f.Add([]byte{byte(dgram.TypeData) | 8, 0, 0, 1, 0, 20, byte(dgram.TypeAck), 0, 0, 2, 0, 20})         // acknowledges
	f.Fuzz(func(t *testing.T, script []byte) {
		const frames = 128
		if len(script) > 1000 {
			return
		}
		r := newRigOf(t, frames)
		a, b := r.pair()
		pa, pb := r.meet(a, b)
		honest := r.open(5, 0xc1, 0, dgram.Config{})
		pc, _ := r.meet(honest, b)
		hellos := 0
		var want []uint64
		// Each datagram: kind, numbers to use, flags and counts, places, length, time.
		for ; len(script) >= 6; script = script[6:] {
			n := min(int(script[4])*4, len(script)-6)
			lsn, ack := int32(int8(script[3]))>>4, int32(int8(script[3]<<4))>>4
			h := dgram.Header{
				Type: dgram.Type(script[0] & 7), Count: script[2], SackWords: script[2] >> 4 & 9,
				SrcEpoch: []uint32{pa.local, pb.local, 1, 2}[script[1]&3], DstEpoch: []uint32{pb.local, pa.local, 0, pb.offered}[script[1]>>2&3],
				LSN: pb.Rcv.Next().Add(lsn), Ack: pb.Snd.Next().Add(ack), Window: uint16(script[2]), Credit: script[2] & 63, Flags: script[2] & dgram.FlagAckSoon,
			}
			body := append([]byte(nil), script[6:6+n]...)
			if h.Type == dgram.TypeHello || h.Type == dgram.TypeHelloAck {
				h.Count, h.SackWords = 0, 0
				body = append(hello(basePayload+int(script[2]), shortHello+n), body...)
				hellos++
			}
			if script[0]&8 != 0 && pb.Open() && pb.Snd.CanPush(addrLen) {
				b.send(pb, 0) // for the acknowledgements that follow
			}
			r.forge(addrOf(1+int(script[1]>>6)), b.addr, h, body)
			r.run(ms/10, ms/10)
			if pc.Open() && pc.Snd.CanPush(addrLen) {
				want = append(want, uint64(len(want)))
				honest.send(pc, want[len(want)-1])
			}
			r.run(ms/10, ms/10)
			r.now = r.now.Add(1 << min(script[5], 36))
		}
		r.run(2*ms, ms/10)
		if n := b.ep.shake.byAddr.Len(); n > 2+hellos {
			t.Errorf("%d peers of %d Hellos", n, hellos)
		}
		if got := b.got[b.peer(honest)]; pc.Closed() || !slices.Equal(got, want) {
			t.Errorf("the honest peer is closed: %v; of %d ULPDUs came %v", pc.Closed(), len(want), got)
		}
		for _, s := range r.sides {
			for s.ep.dg.Recv(s.ep.rx) > 0 {
				s.ep.Release()
			}
		}
		if r.net.Free() != frames {
			t.Errorf("%d frames are missing", frames-r.net.Free())
		}
	})
}

// Unreliable datagrams have the checksum of UDP, unless they name the epochs of both
// ends: their receiver is told the address, which our CRC does not cover.
func TestBeginUD_checksum(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	_, path, err := a.ep.Resolve(b.addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range []bool{false, true, false} {
		if !a.ep.BeginUD(2, 2, 0, addrLen) {
			t.Fatal("no room")
		}
		if named {
			a.ep.NameUD(0xb1)
		}
		a.ep.ULPDU(addrLen, addrLen)
		a.ep.CommitUD(path, arq.FirstPath)
		if got := a.ep.out.tx.Pkts[len(a.ep.out.tx.Pkts)-1].Sealed; got != named {
			t.Errorf("epochs named: %v, checksum left out: %v", named, got)
		}
		a.ep.Flush()
		if h := r.seen[len(r.seen)-1].h; (h.DstEpoch == 0xb1) != named {
			t.Errorf("epochs named: %v, destination epoch %#x", named, h.DstEpoch)
		}
	}
}

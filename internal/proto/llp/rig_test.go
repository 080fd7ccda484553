package llp

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/mesh"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

const (
	rigKey  = 0x1122334455667788
	ms      = mono.Millisecond
	addrLen = 8 // of a ULPDU in these tests: its number
)

// rig is a mesh whose time the test moves.
type rig struct {
	t   testing.TB
	net *mesh.Net
	now mono.Time

	path  int                        // bytes of payload that the network carries
	lose  func(h *dgram.Header) bool // what else it loses
	wall  bool                       // nothing gets through to the second path of anybody
	seen  []sighting                 // all that was sent
	sides []*side
}

// sighting is a datagram as it was sent.
type sighting struct {
	from, to fabric.Remote
	at       mono.Time
	h        dgram.Header
	payload  []byte
}

// side is an endpoint with a user as simple as can be: it sends numbered
// ULPDUs and notes what it gets.
type side struct {
	rig  *rig
	ep   *Endpoint
	addr netip.AddrPort
	got  map[*Peer][]uint64 // ULPDUs taken, in order of arrival
	news []News

	woken bool // of Recv
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigOf(t, 4096)
}

// newRigOf returns a rig with that many frames.
func newRigOf(t testing.TB, frames int) *rig {
	t.Helper()
	net, err := mesh.New(mesh.Config{Frames: frames})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, net: net, now: 1e9, path: 1 << 16}
	net.Wire = func(from, to fabric.Remote, payload []byte) {
		s := sighting{from: from, to: to, at: r.now, payload: append([]byte(nil), payload...)}
		if !s.h.Parse(s.payload) {
			t.Errorf("an endpoint sent what is no datagram: %x", payload)
		}
		r.seen = append(r.seen, s)
		walled := r.wall && to.Port() == addrOf(0).Port()+dgram.BulkPort
		if !walled && len(payload) <= r.path && (r.lose == nil || !r.lose(&s.h)) {
			net.Deliver(from, to, payload)
		}
	}
	return r
}

func addrOf(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 18700)
}

// open adds an endpoint; one at the same address before it is forgotten, as
// after a crash.
func (r *rig) open(i int, epoch uint32, most int, c dgram.Config) *side {
	r.t.Helper()
	return r.openWith(i, most, Config{Epoch: epoch, Dgram: c})
}

func (r *rig) openWith(i, most int, c Config) *side {
	r.t.Helper()
	s := &side{rig: r, addr: addrOf(i), got: map[*Peer][]uint64{}}
	var err error
	c.Key = rigKey
	s.ep, err = New(r.net.Open(s.addr, most), c, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	s.ep.SetReliable(true)
	for j, old := range r.sides {
		if old.addr == s.addr {
			r.sides = append(r.sides[:j], r.sides[j+1:]...)
			break
		}
	}
	r.sides = append(r.sides, s)
	return s
}

// addrPlus returns an address with another port.
func addrPlus(a netip.AddrPort, n uint16) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr(), a.Port()+n)
}

// pair returns two endpoints that do not know each other.
func (r *rig) pair() (a, b *side) {
	return r.open(1, 0xa1, 0, dgram.Config{}), r.open(2, 0xb1, 0, dgram.Config{})
}

// to returns the association with another side.
func (s *side) to(o *side) *Peer {
	s.rig.t.Helper()
	remote, path, err := s.ep.Resolve(o.addr)
	if err != nil {
		s.rig.t.Fatal(err)
	}
	return s.ep.Associate(remote, path)
}

// peer returns the association with another side, or nil.
func (s *side) peer(o *side) *Peer {
	return s.ep.shake.peerAt(fabric.RemoteOf(o.addr))
}

// step does what a context does in one step.
func (s *side) step() {
	e, now := s.ep, s.rig.now
	var h dgram.Header
	for e.Recv(now, s.woken) > 0 {
		for p, rd := e.Next(&h); rd != nil; p, rd = e.Next(&h) {
			if p == nil {
				continue
			}
			s.take(p, rd, &h)
		}
		e.Release()
	}
	for p := e.Expire(now); p != nil; p = e.Expire(now) {
		p.Snd.OnTimer(now)
		if p.Rcv.Deadline() <= now {
			e.Ack(now, p, 63)
		}
		e.Rearm(p, true)
	}
	for e.Waiting() > 0 {
		if a := e.Take(); a.Rcv.Deadline() <= now && !a.Closed() {
			e.Ack(now, e.shake.peers[a.Index], 63)
		}
	}
	s.news = append(s.news, e.News...)
	e.News = e.News[:0]
	e.Flush()
}

func (s *side) take(p *Peer, rd *Reader, h *dgram.Header) {
	now := s.rig.now
	n := 8 * int(h.SackWords)
	s.ep.OnAck(&p.Assoc, h.Ack, h.Window, h.Held, rd.Peek(n))
	rd.Skip(n)
	lsn := h.LSN
	for range int(h.Count) {
		if rd.Len() < dgram.LengthLen+addrLen {
			break
		}
		rd.Skip(dgram.LengthLen)
		var b [addrLen]byte
		rd.Copy(b[:])
		if p.Rcv.Fresh(lsn) {
			p.Rcv.Mark(lsn)
			s.got[p] = append(s.got[p], binary.BigEndian.Uint64(b[:]))
		}
		lsn++
	}
	if h.Type == dgram.TypeData {
		s.ep.ScheduleAck(now, &p.Assoc, false, false)
	}
}

// send sends one ULPDU that carries n.
func (s *side) send(p *Peer, n uint64) serial.U32 {
	s.rig.t.Helper()
	if !p.Open() || !s.ep.Begin(p, p.Snd.Next(), addrLen) {
		s.rig.t.Fatalf("cannot send to %v", p.Remote.AddrPort())
	}
	lsn := p.Snd.Push(s.rig.now, 0, 0, 0, true)
	binary.BigEndian.PutUint64(s.ep.ULPDU(addrLen, addrLen), n)
	s.ep.Commit(s.rig.now, p, 63, false)
	s.ep.Flush()
	return lsn
}

// run lets time pass; everybody steps each tick.
func (r *rig) run(d, tick mono.Duration) {
	for end := r.now.Add(d); r.now < end; r.now = r.now.Add(tick) {
		for _, s := range r.sides {
			s.step()
		}
	}
}

// meet makes two sides know each other.
func (r *rig) meet(a, b *side) (pa, pb *Peer) {
	r.t.Helper()
	pa = a.to(b)
	r.run(2*ms, ms/10)
	if pb = b.peer(a); pb == nil || !pa.Open() || !pb.Open() {
		r.t.Fatal("the sides do not meet")
	}
	a.news, b.news = nil, nil
	return pa, pb
}

// sent counts the datagrams of a type that a side has sent since the time at.
func (s *side) sent(kind dgram.Type, at mono.Time) (n int) {
	for i := range s.rig.seen {
		if x := &s.rig.seen[i]; x.from == fabric.RemoteOf(s.addr) && x.at >= at && x.h.Type == kind {
			n++
		}
	}
	return n
}

// last returns the last datagram of a type that a side has sent.
func (s *side) last(kind dgram.Type) *sighting {
	s.rig.t.Helper()
	for i := len(s.rig.seen) - 1; i >= 0; i-- {
		if x := &s.rig.seen[i]; x.from == fabric.RemoteOf(s.addr) && x.h.Type == kind {
			return x
		}
	}
	s.rig.t.Fatalf("%v has sent no datagram of type %d", s.addr, kind)
	return nil
}

// replay delivers a datagram once more.
func (r *rig) replay(x *sighting) { r.net.Deliver(x.from, x.to, x.payload) }

// forge delivers a datagram that nobody has sent, with the right key and CRC.
func (r *rig) forge(from, to netip.AddrPort, h dgram.Header, body []byte) {
	b := make([]byte, dgram.HeaderLen+len(body))
	h.Key = rigKey
	h.Flags |= dgram.FlagCRC
	h.Put(b)
	copy(b[dgram.HeaderLen:], body)
	dgram.Seal(b, dgram.CRC(0, b[dgram.CRCLen:]))
	r.net.Deliver(fabric.RemoteOf(from), fabric.RemoteOf(to), b)
}

// hello is the body of an unpadded Hello.
func hello(most, length int) []byte {
	b := make([]byte, dgram.HelloLen)
	body := dgram.Hello{MaxPayload: uint16(most), Length: uint16(length)}
	body.Put(b)
	return b
}

func kinds(news []News) (k []NewsKind) {
	for _, n := range news {
		k = append(k, n.Kind)
	}
	return k
}

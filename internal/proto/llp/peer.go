package llp

import (
	"math"
	"math/rand/v2"

	"github.com/xwarp/xwarp/internal/base/addrtable"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// Peer is an association with another endpoint, from its first datagram until
// one of the two is gone. A peer that restarts is another Peer.
type Peer struct {
	// What every datagram needs comes first, in one cache line.
	local, remote uint32 // the two sides' numbers of the association; remote is 0 until it has answered
	path          fabric.Path
	most, whole   uint16    // largest payload to send: in all, and without a nearly empty last frame
	goal          uint16    // largest payload that both ends take
	mute          uint8     // short Hellos that were answered since data or an acknowledgement was heard
	tries         uint8     // Hellos sent
	source        uint8     // number of the source port that it is sent from
	burst         arq.Burst // what is sent to it
	sought        bool      // no better source port was found, or one was given up: see sourceSearch
	measured      bool      // a Hello of some size has come through
	uncertain     bool      // where it is: the next datagram that is proven to be of it says so
	stranger      bool      // nothing was heard that proves it alive: see strangers
	Wanted        bool      // something was to be sent to it: see Want. Before, one that never answers is no loss

	Assoc
	Remote fabric.Remote

	// A new life of the peer that says it is there, and has not proved it:
	// its number and the one that it was given.
	candidate, offered uint32
	muteAt             uint32 // when mute last grew: milliseconds, which wrap, for a peer shall be small
	credit             int32  // bytes that a stranger may be sent
	older, newer       *Peer
}

// Open reports whether the peer has answered: before, no ULPDU may be sent.
func (p *Peer) Open() bool { return p.remote != 0 }

// Path returns the way to the peer.
func (p *Peer) Path() fabric.Path { return p.path }

// handshake has the peers of an endpoint: how associations with them begin, are kept alive
// and end.
type handshake struct {
	ep        *Endpoint
	random    *rand.ChaCha8
	peers     []*Peer // by Peer.Index
	byAddr    addrtable.Table[Peer]
	strangers strangers
	searches  map[*Peer]*sourceSearch // under way
	lives     uint64                  // associations that are over: see cookie
}

// NewsKind is what became of an association.
type NewsKind uint8

// Kinds of news.
const (
	PeerOpened    NewsKind = iota + 1 // it has answered
	PeerLost                          // it was silent for too long
	PeerRestarted                     // it does not know the association any more, or has begun a new one
)

// News is something that became of an association.
type News struct {
	Kind NewsKind
	Peer *Peer
}

// Sizes of a datagram's payload in bytes that a path is tried with. Every
// network that we meet carries the last.
const (
	ethernetPayload = 1472
	basePayload     = 1232 // the least MTU of IPv6 and its UDP header
)

// Timing of Hellos.
const (
	helloFirst = 20 * mono.Millisecond // until a Hello without an answer is sent again
	helloMost  = mono.Second
	helloTries = 3 // Hellos of one size
)

// peerAt returns the association with an endpoint, or nil.
func (hs *handshake) peerAt(remote fabric.Remote) *Peer {
	hash := remote.Hash()
	for p, at := hs.byAddr.First(hash); p != nil; p, at = hs.byAddr.Next(hash, at) {
		if p.Remote == remote {
			return p
		}
	}
	return nil
}

// Associate returns the association with an endpoint, which is begun when there
// is none: the Hello goes out with the next step.
func (e *Endpoint) Associate(remote fabric.Remote, path fabric.Path) *Peer {
	if p := e.shake.peerAt(remote); p != nil {
		e.shake.strangers.remove(p) // it is the caller's now
		return p
	}
	return e.shake.add(remote, path, e.shake.number())
}

// Want notes that something is to be sent to p, and from when on its silence
// counts, if it has never answered: the peer may have started since, so a Hello is
// due at once.
func (e *Endpoint) Want(p *Peer) {
	p.Wanted = true
	if !p.Open() && !p.closed {
		p.unanswered, p.askAt = 0, e.now
		e.Wake(&p.Assoc, e.now)
	}
}

// number makes the number of a new association.
func (hs *handshake) number() uint32 {
	for {
		if n := uint32(hs.random.Uint64()); n != 0 {
			return n
		}
	}
}

func (hs *handshake) add(remote fabric.Remote, path fabric.Path, local uint32) *Peer {
	p := &Peer{Remote: remote, path: path, local: local, uncertain: true}
	hs.ep.Add(hs.ep.now, &p.Assoc, serial.U32(local), 0, hs.ep.now) // nothing to acknowledge before open
	hs.setPayload(p, basePayload)
	if int(p.Index) == len(hs.peers) {
		hs.peers = append(hs.peers, nil)
	}
	hs.peers[p.Index] = p
	hs.ep.bulk.forget(p)
	if hs.ep.multi.dg != nil {
		hs.ep.multi.forget(p)
	}
	hs.byAddr.Add(p.Remote.Hash(), p)
	return p
}

// setPayload sets how much a datagram to p may carry.
func (hs *handshake) setPayload(p *Peer, n int) {
	p.most, p.whole = uint16(n), uint16(hs.ep.Whole(n))
	p.Snd.SetSegment(n)
}

// Whole returns how many of n bytes of payload a datagram should have for the best
// bandwidth. At MTU 9000 that is 8128 of 8972: a further frame costs as much as
// copying one, and with a nearly empty third one bandwidth is 4 % less.
func (e *Endpoint) Whole(n int) int {
	if rest := (e.caps.Headroom + n) % mem.FrameSize; rest < mem.FrameSize/4 && n > mem.FrameSize {
		n -= rest
	}
	return n
}

// open notes the peer's number, with which its own ULPDUs begin.
func (hs *handshake) open(p *Peer, remote uint32) {
	p.remote = remote
	hs.ep.Expect(&p.Assoc, serial.U32(remote))
	hs.ep.News = append(hs.ep.News, News{PeerOpened, p})
}

// end ends an association on this side.
func (hs *handshake) end(p *Peer, why NewsKind) {
	if p.closed {
		return
	}
	hs.ep.Stats.PeersLost++
	hs.ep.News = append(hs.ep.News, News{why, p})
	hs.remove(p)
}

// remove forgets an association. Its index is used again, so the caller must
// have dropped what it keeps under it before the next Associate or Next.
//
// A new life of the peer that was offered an association gets it now: it may
// be using it already. Without that, two ends that begin anew at the same time
// would refuse one another for ever.
func (hs *handshake) remove(p *Peer) {
	hs.ep.Remove(&p.Assoc)
	if p.stranger {
		hs.strangers.remove(p)
		hs.ep.dg.Drop(p.path)
	} else {
		hs.lives++
	}
	hs.byAddr.Remove(p.Remote.Hash(), p)
	if hs.ep.multi.dg != nil {
		hs.ep.multi.drop(p)
	}
	delete(hs.searches, p)
	hs.peers[p.Index] = nil
	if p.offered != 0 {
		hs.open(hs.add(p.Remote, p.path, p.offered), p.candidate)
	}
}

// Disassociate ends an association and tells the peer, as well as one datagram can.
func (e *Endpoint) Disassociate(p *Peer) {
	if !p.closed {
		if p.Snd.TimeOuts() > 0 {
			e.shake.doubt(p) // after this nothing here checks its address
		}
		e.shake.leave(p)
		e.shake.remove(p)
	}
}

// leave acknowledges what p has sent, and tells it that the association is over.
func (hs *handshake) leave(p *Peer) {
	if !p.Open() {
		return
	}
	if !hs.ep.TxRoom() {
		hs.ep.Flush()
	}
	if p.Rcv.Deadline() != mono.Never {
		hs.ep.Ack(hs.ep.now, p, 0)
	}
	hs.reset(p.path, p.local, p.remote)
}

// reset tells that the association src, dst is not known here, or not any more.
func (hs *handshake) reset(to fabric.Path, src, dst uint32) {
	if !hs.ep.TxRoom() || !hs.ep.out.open(hs.ep.dg, hs.ep.arena, hs.ep.caps.Headroom, dgram.HeaderLen) {
		return // the next datagram of the peer asks again
	}
	hs.ep.out.hdr = dgram.Header{Type: dgram.TypeReset, SrcEpoch: src, DstEpoch: dst}
	hs.ep.out.finish(to, 0)
	hs.ep.Stats.TxResets++
}

// adopt decides about data or an acknowledgement whose numbers are not those of
// the association with its sender, if there is one. It returns the association
// that the datagram belongs to, or nil.
func (hs *handshake) adopt(p *Peer, from fabric.Remote, h *dgram.Header) *Peer {
	switch {
	case p != nil && p.local == h.DstEpoch && p.remote == 0:
		hs.open(p, h.SrcEpoch) // its answer to our Hello was lost
		return p
	case p != nil && p.accepts(h):
		return hs.promote(p)
	}
	if q := hs.recall(p, from, h); q != nil {
		return q
	}
	hs.ep.Stats.RxStale++
	hs.refuse(from, h)
	return nil
}

// accepts reports whether a datagram accepts the association that p's new life
// was offered.
func (p *Peer) accepts(h *dgram.Header) bool {
	return p.offered != 0 && p.offered == h.DstEpoch && p.candidate == h.SrcEpoch
}

// promote replaces an association by the one of the peer's new life, which has
// proved with its last datagram that it is no echo of an old one.
func (hs *handshake) promote(old *Peer) *Peer {
	hs.end(old, PeerRestarted)
	return hs.peerAt(old.Remote)
}

// refuse tells the sender of a datagram that its association is not known here, and
// keeps nothing of it.
func (hs *handshake) refuse(from fabric.Remote, h *dgram.Header) {
	if h.DstEpoch == 0 || h.Type == dgram.TypeReset || hs.ep.multi.unnamed() {
		return
	}
	path, ok := hs.ep.multi.pathBack(from)
	if !ok {
		return
	}
	hs.reset(path, h.DstEpoch, h.SrcEpoch)
	if hs.peerAt(from) == nil {
		hs.ep.out.push() // as long as the path is there
		hs.ep.dg.Drop(path)
	}
}

// control deals with what is about the association itself.
func (hs *handshake) control(p *Peer, from fabric.Remote, h *dgram.Header) {
	if h.Type == dgram.TypeReset {
		switch {
		case p == nil || p.local != h.DstEpoch || p.remote != h.SrcEpoch:
			hs.ep.Stats.RxStale++
		case p.offered != 0: // it has begun anew, and does not know its former life
			hs.promote(p)
		default:
			hs.end(p, PeerRestarted)
		}
		return
	}
	var body dgram.Hello
	body.Parse(hs.ep.reader.Peek(dgram.HelloLen))
	limit, size := int(body.MaxPayload), int(body.Length)
	if h.Type == dgram.TypeHelloAck {
		hs.ep.multi.readPaths(h)
		p, _ = hs.ep.multi.named(p, from)
		hs.helloAnswered(p, h, limit, size)
		return
	}
	if size != dgram.HeaderLen+hs.ep.reader.Len() || limit < basePayload {
		hs.ep.Stats.RxMalformed++
		return
	}
	hs.ep.multi.readPaths(h)
	p, from = hs.ep.multi.named(p, from)
	hs.helloArrived(p, from, h, size)
}

// helloArrived deals with a Hello of size bytes.
func (hs *handshake) helloArrived(p *Peer, from fabric.Remote, h *dgram.Header, size int) {
	if p != nil && p.accepts(h) {
		p = hs.promote(p)
	}
	if p != nil && p.stranger && h.DstEpoch == 0 && p.remote != h.SrcEpoch {
		hs.forget(p) // one of the two is made up, and both may be
		p = nil
	}
	switch {
	case h.DstEpoch != 0 && (p == nil || p.local != h.DstEpoch || p.remote != h.SrcEpoch && p.remote != 0):
		if p = hs.recall(p, from, h); p == nil {
			hs.ep.Stats.RxStale++
			hs.refuse(from, h)
			return
		}
		hs.ep.heard(p)
	case h.DstEpoch == 0 && (p == nil || p.stranger):
		path, ok := hs.ep.multi.pathBack(from) // where this one came from
		if !ok || hs.ep.multi.via() != 0 {     // strangers meet on the first network
			hs.ep.Stats.RxMalformed++ // no way back: as good as no sender
			return
		}
		if p == nil {
			p = hs.meet(from, path, h.SrcEpoch)
		}
		p.came(size)
	case p.remote == 0:
		hs.open(p, h.SrcEpoch)
	case p.remote != h.SrcEpoch:
		// Perhaps the peer began anew, perhaps this is an old datagram,
		// sent again. Offer an association: a sender that proves that it got the offer
		// is alive.
		if p.candidate != h.SrcEpoch {
			p.candidate, p.offered = h.SrcEpoch, hs.number()
		}
		hs.hello(dgram.TypeHelloAck, hs.ep.multi.back(p), p.offered, h.SrcEpoch, hs.ep.multi.helloLeast(), size)
		return
	case h.DstEpoch != 0:
		hs.ep.heard(p)
		hs.ep.multi.learn(p)
	}
	hs.answerHello(p, h, size)
}

// helloAnswered deals with the answer to a Hello of size bytes, which says that the
// peer takes datagrams of limit bytes.
func (hs *handshake) helloAnswered(p *Peer, h *dgram.Header, limit, size int) {
	if p == nil || p.local != h.DstEpoch || p.remote != h.SrcEpoch && p.remote != 0 {
		hs.ep.Stats.RxStale++
		return
	}
	if p.remote == 0 {
		hs.open(p, h.SrcEpoch)
	}
	hs.ep.heard(p)
	if h.Flags&dgram.FlagBulk != 0 {
		hs.ep.bulk.helloAnswered(p, size)
		return
	}
	if hs.sourceAnswered(p, h, size) {
		return
	}
	if size < int(p.most) {
		hs.mutes(p)
	}
	hs.ep.multi.learn(p)
	if !hs.ep.multi.pathAnswered(p, size) {
		return
	}
	p.goal = uint16(min(limit, hs.ep.caps.MaxPayload, math.MaxUint16))
	if n := min(int(p.goal), size); n > int(p.most) {
		hs.setPayload(p, n)
		hs.ep.bulk.forget(p) // it may carry less
		hs.ep.multi.doubtOthers(p)
	}
	p.askAt = hs.ep.now.Add(hs.ep.Config().KeepAlive)
	if size >= basePayload && !p.measured {
		p.measured = true
		if p.most < p.goal { // perhaps the peer had not started when larger ones were tried
			p.askAt = hs.ep.now
			hs.ep.Wake(&p.Assoc, hs.ep.now)
		}
	}
}

// shortHello is the length in bytes of a Hello without padding on a single network.
const shortHello = dgram.HeaderLen + dgram.HelloLen

// helloSize returns how long the next Hello to p is: as long as a datagram can
// be, and less when that does not come through. Those that keep an association
// alive are short, unless the path was not found to carry what both ends take:
// then they try that, and a short one follows when there is no answer (RFC
// 8899, section 5.3).
func (hs *handshake) helloSize(p *Peer) int {
	switch {
	case p.measured && (p.most >= p.goal || p.unanswered > 0):
		return hs.ep.multi.helloLeast()
	case p.measured:
		return int(p.goal)
	case p.tries < helloTries:
		return hs.ep.caps.MaxPayload
	case p.tries < 2*helloTries:
		return min(ethernetPayload-hs.ep.caps.Overhead, hs.ep.caps.MaxPayload)
	}
	return basePayload
}

// hello queues a Hello or an answer of size bytes to one of answered bytes.
func (hs *handshake) hello(t dgram.Type, to fabric.Path, src, dst uint32, size, answered int) bool {
	if !hs.beginHello(dgram.Header{Type: t, SrcEpoch: src, DstEpoch: dst}, size, answered) {
		return false
	}
	hs.ep.out.finish(to, 0)
	return true
}

// answerHello answers a Hello of size bytes, which came the way that the answer
// names.
func (hs *handshake) answerHello(p *Peer, h *dgram.Header, size int) {
	answer := dgram.Header{Type: dgram.TypeHelloAck, Flags: h.Flags & dgram.FlagBulk, SrcEpoch: p.local, DstEpoch: p.remote}
	hs.queueTold(&answer, h)
	if n := hs.ep.multi.helloLeast(); p.spend(n) && hs.beginHello(answer, n, size) {
		hs.ep.out.finish(hs.ep.multi.back(p), p.source)
	}
}

// beginHello builds a Hello or an answer. false means no room.
func (hs *handshake) beginHello(h dgram.Header, size, answered int) bool {
	if !hs.ep.TxRoom() || !hs.ep.out.open(hs.ep.dg, hs.ep.arena, hs.ep.caps.Headroom, size) {
		return false
	}
	hs.ep.out.hdr = h
	body := dgram.Hello{MaxPayload: uint16(hs.ep.caps.MaxPayload), Length: uint16(answered)}
	body.Put(hs.ep.out.reserve(dgram.HelloLen))
	if len(hs.ep.multi.list) > 0 {
		hs.ep.out.hdr.Flags |= dgram.FlagPaths
		hs.ep.out.put(hs.ep.arena, hs.ep.multi.list)
	}
	hs.ep.out.zeros(hs.ep.arena, size-hs.ep.multi.helloLeast())
	hs.ep.Stats.TxHellos++
	return true
}

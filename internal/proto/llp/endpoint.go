// Package llp joins the carriers and the protocols: it moves ULPDUs of
// iwarp/dgram over a fabric.Datagram.
package llp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// Config describes an endpoint.
type Config struct {
	Key   uint64 // job key: datagrams with another one are dropped
	Epoch uint32 // life of this endpoint, random, not 0
	// Seed is what the numbers of associations follow from: 32 random bytes, or
	// a host with the job key that has seen the epoch could guess them. Default: Key
	// and Epoch, so that a simulation repeats itself.
	Seed  [32]byte
	NoCRC bool // leave out the CRC32C; both ends must agree. Default: CRC on
	Dgram dgram.Config
	// Bulk is a second path to the same peers, for large data: a carrier on the
	// arena and with the frames of the first one, and with a port that is
	// dgram.BulkPort higher. The endpoint owns it. Default: everything takes one path.
	Bulk fabric.Datagram
}

// Stats counts what an endpoint did and dropped, and why.
type Stats struct {
	RxDatagrams, TxDatagrams uint64
	TxDirect                 uint64 // ULPDUs sent from where they lie, without copying
	RxBulk, TxBulk           uint64 // datagrams that went by the second path
	TxAcks                   uint64 // datagrams that carry an acknowledgement only
	TxHellos                 uint64 // datagrams that set up, keep alive or measure the path
	TxResets                 uint64 // answers to datagrams of associations that are gone
	TxResent                 uint64 // ULPDUs sent again
	PathsLeft                uint64 // times that an association took another path because nothing arrived on the one it had
	RxMalformed              uint64 // not an LLP header of our version, or lengths that do not add up
	RxForeign                uint64 // another job's key
	RxCorrupt                uint64 // CRC32C does not match, or is missing
	RxStale                  uint64 // of an association that is gone, or was never there
	RxDuplicate              uint64 // ULPDUs that had arrived before, or lie outside of the window
	PeersLost                uint64 // associations that ended because the peer was silent, restarted or closed
	PeersDropped             uint64 // strangers that were forgotten: nothing but a first Hello had come from them
}

// Endpoint is one UDP endpoint that talks to any number of peers: reliably
// over associations, unreliably without any state. It is driven by one
// verbs.Context; it has no loop of its own. What it does for its user is its methods;
// its parts have a state of their own, and use one another's methods:
//
//	Assocs     sequence numbers, timers, the line of those with something to send
//	handshake  peers: how associations begin, are kept alive and end
//	outgoing   the datagram that is being built, and those that wait for Flush
//	bulk       the second path, for large data
//	multipath  several networks
//
// Owner: engine.
type Endpoint struct {
	Stats Stats
	News  []News // what became of associations; the caller takes it away

	Assocs // those with peers: Peer.Assoc

	cfg      Config
	dg       fabric.Datagram
	arena    *mem.Arena
	caps     fabric.DatagramCaps
	reliable bool // associations are taken

	rx     *fabric.Batch
	rxPos  int
	reader Reader
	now    mono.Time // of the batch

	shake handshake
	out   outgoing
	bulk  bulk
	multi multipath
}

// outgoing is the datagram that is being built, and those that wait for Flush.
type outgoing struct {
	ep    *Endpoint
	tx    *fabric.Batch
	dirty bool // something was built since the last Flush

	writer
	hdr   dgram.Header
	one   fabric.Desc // that of Small
	limit int         // largest payload in bytes
	again bool        // it was sent before
	long  bool        // it belongs to a long message
	named bool        // it is unreliable, and names the life of the endpoint that it is for
}

const txBatch = 32

// New returns an endpoint on dg, which it owns from now on. The window is
// bounded so that a whole one fits the carrier's receive queue.
func New(dg fabric.Datagram, c Config, now mono.Time) (*Endpoint, error) {
	if c.Epoch == 0 {
		return nil, fmt.Errorf("llp: the epoch must not be 0")
	}
	caps := dg.Caps()
	if caps.MaxPayload < basePayload {
		return nil, fmt.Errorf("llp: %d bytes per datagram on %s are too few; %d are needed: raise the MTU", caps.MaxPayload, caps.Carrier, basePayload)
	}
	if c.Bulk != nil {
		caps.RxDepth = min(caps.RxDepth, c.Bulk.Caps().RxDepth)
	}
	bufs := min((caps.MaxPayload+caps.Headroom)/mem.FrameSize+3, fabric.MaxBufs)
	if c.Seed == ([32]byte{}) {
		binary.LittleEndian.PutUint64(c.Seed[:], c.Key)
		binary.LittleEndian.PutUint32(c.Seed[8:], c.Epoch)
	}
	e := &Endpoint{
		cfg: c, dg: dg, arena: dg.Arena(), caps: caps, now: now,
		rx: fabric.NewBatch(64, bufs+1),
	}
	e.shake = handshake{ep: e, random: rand.NewChaCha8(c.Seed)}
	e.out.ep, e.out.tx = e, fabric.NewBatch(txBatch, bufs)
	e.bulk.init(e, c.Bulk, bufs)
	if e.multi.init(e, dg); e.HasPaths() && c.Bulk != nil {
		return nil, errors.New("llp: a second path for large data leads to one network only: leave out Bulk, or all networks but one")
	}
	e.Assocs.Init(c.Dgram, caps.RxDepth, now)
	return e, nil
}

// MaxPayload returns the largest payload of a datagram in bytes, the LLP
// header included, as far as this host is concerned.
func (e *Endpoint) MaxPayload() int { return e.caps.MaxPayload }

// Resolve makes the way to an address known. It is a control call: it may ask
// the kernel and wait.
func (e *Endpoint) Resolve(to netip.AddrPort) (fabric.Remote, fabric.Path, error) {
	if !to.IsValid() || to.Port() == 0 {
		return fabric.Remote{}, 0, fmt.Errorf("llp: %v is not an address with a port", to)
	}
	path, err := e.dg.Resolve(to)
	return fabric.RemoteOf(to), path, err
}

// Doubt tells the carrier that nothing comes back on a path that is not an association's.
func (e *Endpoint) Doubt(path fabric.Path) { e.dg.Doubt(path) }

// Close tells all peers that this endpoint is gone, as well as one datagram to
// each can, and closes the carrier.
func (e *Endpoint) Close() error {
	e.SetReliable(false)
	e.Flush()
	return errors.Join(e.bulk.close(), e.dg.Close())
}

// SetReliable tells whether there is a user of what associations carry. At
// first there is none, and peers that begin one are ignored. When there is
// none any more, all associations end, and their peers are told.
func (e *Endpoint) SetReliable(on bool) {
	e.reliable = on
	for _, p := range e.shake.peers {
		if p != nil && !on {
			e.Disassociate(p)
		}
	}
}

// Recv takes in a batch of datagrams and returns how many. Walk them with
// Next; call Release after the last. woken tells that the caller has waited in the kernel since
// the last Recv, for all that Datagram and the second path have.
func (e *Endpoint) Recv(now mono.Time, woken bool) int {
	e.rxPos, e.now = 0, now
	n := 0
	if e.bulk.firstInRow < firstMost { // always, where there is no second path
		n = e.dg.Recv(e.rx)
	}
	if e.bulk.dg != nil {
		n = e.bulk.recvOther(n, woken)
	}
	e.Stats.RxDatagrams += uint64(n)
	return n
}

// Next returns the next good datagram of the batch: its header, where it is
// from, and a reader that stands behind the header. Bad ones are counted and
// passed over; those that are about the association itself are dealt with.
// The peer is nil for unreliable datagrams, and then From tells the sender.
// The reader is nil at the end of the batch.
//
// The datagram's acknowledgement is for the caller to take in: OnAck or Note.
func (e *Endpoint) Next(h *dgram.Header) (*Peer, *Reader) {
	for e.rxPos < len(e.rx.Pkts) {
		pkt := &e.rx.Pkts[e.rxPos]
		e.rxPos++
		if p, ok := e.accept(pkt, h); ok {
			return p, &e.reader
		}
	}
	return nil, nil
}

// From returns the sender of the datagram that Next returned.
func (e *Endpoint) From() fabric.Remote { return e.rx.Pkts[e.rxPos-1].From }

// Release gives the batch's frames back.
func (e *Endpoint) Release() {
	if e.bulk.lent {
		e.bulk.dg.Release(e.rx)
		return
	}
	e.dg.Release(e.rx)
}

// accept checks a datagram in the order of docs/PROTOCOL.md, section 3: form,
// key, CRC, association.
func (e *Endpoint) accept(pkt *fabric.Packet, h *dgram.Header) (*Peer, bool) {
	descs := e.rx.Descs[pkt.First : pkt.First+pkt.Bufs]
	first := e.arena.At(descs[0].Addr, int(descs[0].Len))
	if !h.Parse(first) {
		e.Stats.RxMalformed++
		return nil, false
	}
	if h.Key != e.cfg.Key {
		e.Stats.RxForeign++
		return nil, false
	}
	if !e.cfg.NoCRC && !e.intact(first, descs[1:], h) {
		e.Stats.RxCorrupt++
		return nil, false
	}
	e.reader.open(e.arena, first[dgram.HeaderLen:], descs[1:], int(pkt.Len)-dgram.HeaderLen)
	if h.Type == dgram.TypeUD {
		e.bulk.lookThere(h)
		return nil, true
	}
	if !e.reliable {
		e.Stats.RxStale++
		return nil, false
	}
	from := pkt.From
	if e.multi.dg != nil {
		from = e.multi.whose(from)
	}
	p := e.shake.peerAt(from)
	if h.Type > dgram.TypeAck {
		e.shake.control(p, from, h)
		return nil, false
	}
	if p == nil || p.remote != h.SrcEpoch || p.local != h.DstEpoch {
		if p = e.shake.adopt(p, from, h); p == nil {
			return nil, false
		}
	}
	e.heard(p)
	if e.multi.dg != nil {
		e.multi.cameOn(p, h.Type == dgram.TypeData)
	}
	p.mute = 0
	e.bulk.lookThere(h)
	if h.Type == dgram.TypeData {
		e.Arrived(e.now, &p.Assoc)
	}
	return p, true
}

// heard notes that the peer is alive: it knows both numbers.
func (e *Endpoint) heard(p *Peer) {
	e.Heard(e.now, &p.Assoc)
	if p.uncertain {
		e.shake.known(p)
	}
}

// intact checks the CRC32C of a datagram that lies in first and rest.
func (e *Endpoint) intact(first []byte, rest []fabric.Desc, h *dgram.Header) bool {
	if h.Flags&dgram.FlagCRC == 0 {
		return false
	}
	crc := dgram.CRC(0, first[dgram.CRCLen:])
	for _, d := range rest {
		crc = dgram.CRC(crc, e.arena.At(d.Addr, int(d.Len)))
	}
	return crc == h.CRC
}

// TxRoom reports whether a datagram can be built now.
func (e *Endpoint) TxRoom() bool {
	return e.dg.TxRoom() > len(e.out.tx.Pkts) && (!e.bulk.queued || e.bulk.room())
}

// Begin opens a datagram to p whose first ULPDU has number lsn and, with its
// DDP header, n bytes. false means no room now.
func (e *Endpoint) Begin(p *Peer, lsn serial.U32, n int) bool {
	if !e.out.open(e.dg, e.arena, e.caps.Headroom, dgram.HeaderLen+dgram.LengthLen+n) {
		return false
	}
	e.out.limit, e.out.long = int(p.whole), false
	e.out.hdr = dgram.Header{Type: dgram.TypeData, LSN: lsn}
	return true
}

// BeginUD opens an unreliable datagram between two queue pairs, or to a
// multicast group, whose first ULPDU has n bytes with its DDP header. false
// means no room now.
func (e *Endpoint) BeginUD(src, dst, group uint32, n int) bool {
	if !e.out.open(e.dg, e.arena, e.caps.Headroom, dgram.HeaderLen+dgram.LengthLen+n) {
		return false
	}
	e.out.limit, e.out.named = e.caps.MaxPayload, false
	e.out.hdr = dgram.Header{Type: dgram.TypeUD, SrcEpoch: e.cfg.Epoch, DstEpoch: group, LSN: serial.U32(src), Ack: serial.U32(dst)}
	return true
}

// NameUD says of which life the endpoint is that the open unreliable datagram is for,
// which is one host's. Any other drops it.
func (e *Endpoint) NameUD(epoch uint32) {
	e.out.hdr.DstEpoch, e.out.named = epoch, true
}

// Fits reports whether the open datagram takes one more ULPDU of n bytes.
func (e *Endpoint) Fits(n int) bool {
	return len(e.out.cur) >= n+dgram.LengthLen && e.out.size+n+dgram.LengthLen <= e.out.limit && e.out.pieces == 0 &&
		e.out.hdr.Count < maxCount
}

// maxCount is the most ULPDUs of one datagram: what the header can tell.
const maxCount = 255

// ULPDU starts the next ULPDU of the open datagram: n bytes of which the first
// hdr are the DDP header, which the caller writes to what is returned. The
// rest follows by Payload.
func (e *Endpoint) ULPDU(n, hdr int) []byte {
	e.out.hdr.Count++
	b := e.out.reserve(dgram.LengthLen + hdr)
	binary.BigEndian.PutUint16(b, uint16(n))
	return b[dgram.LengthLen:]
}

// Payload appends b to the open ULPDU.
func (e *Endpoint) Payload(b []byte) { e.out.put(e.arena, b) }

// Attach appends n bytes at addr to the open ULPDU without copying them. They
// stay as they are until the peer has acknowledged the ULPDU.
func (e *Endpoint) Attach(addr mem.Addr, n int) {
	e.out.attach(addr, n)
	e.Stats.TxDirect++
}

// Commit closes the open datagram to p and queues it. credit is the code of
// how many Sends p may have outstanding; soon tells p that a request waits for
// the acknowledgement.
func (e *Endpoint) Commit(now mono.Time, p *Peer, credit uint8, soon bool) {
	if p.Snd.AckSoon() || soon {
		e.out.hdr.Flags |= dgram.FlagAckSoon
	}
	e.out.acknowledge(now, p, credit)
	if e.bulk.inBulk(p, e.out.hdr.LSN, e.out.long) {
		w := e.bulk.to(p)
		w.Sent(int(e.out.hdr.Count))
		e.bulk.finishBulk(w.path)
	} else {
		e.out.finish(e.multi.pathOf(p, e.out.hdr.LSN), p.source)
	}
	p.Rcv.Acked(false)
}

// Recommit is Commit for ULPDUs that are sent again: never as bulk, for that way
// may be what lost them.
func (e *Endpoint) Recommit(now mono.Time, p *Peer, credit uint8) {
	e.out.hdr.Flags |= dgram.FlagAckSoon
	e.out.acknowledge(now, p, credit)
	if p.burst.Second() {
		e.bulk.to(p).Resent(int(e.out.hdr.Count))
	}
	e.out.again = true
	e.out.finish(e.multi.pathOf(p, e.out.hdr.LSN), p.source)
	p.Rcv.Acked(false)
}

// CommitUD closes the open unreliable datagram and queues it. path is what Resolve
// has returned, for choice SecondPath ResolveBulk.
func (e *Endpoint) CommitUD(path fabric.Path, choice arq.PathChoice) {
	switch choice {
	case arq.SecondPath:
		e.bulk.finishBulk(path)
		return
	case arq.LastFirst:
		e.out.hdr.Flags |= dgram.FlagBulk
	}
	e.out.finish(path, 0)
}

// Ack queues a datagram that acknowledges what p has sent. false means no room.
func (e *Endpoint) Ack(now mono.Time, p *Peer, credit uint8) bool {
	words := min(p.Rcv.SackWords(), dgram.MaxSackWords)
	if !e.TxRoom() || !e.out.open(e.dg, e.arena, e.caps.Headroom, dgram.HeaderLen+8*words) {
		return false
	}
	e.out.hdr = dgram.Header{Type: dgram.TypeAck, LSN: p.Snd.Next(), SackWords: uint8(words)}
	p.PutSack(e.out.reserve(8 * words))
	e.out.acknowledge(now, p, credit)
	e.out.finish(e.multi.ackPath(p), p.source)
	p.Rcv.Acked(true)
	e.Stats.TxAcks++
	return true
}

// acknowledge fills in what the header says about the other direction.
func (o *outgoing) acknowledge(now mono.Time, p *Peer, credit uint8) {
	h := &o.hdr
	h.SrcEpoch, h.DstEpoch = p.local, p.remote
	h.Ack, h.Window, h.Credit = p.Rcv.Next(), o.ep.Window(), credit
	h.Held = arq.HeldOf(p.Rcv.Held(now))
}

// finish seals the open datagram and queues it, to be sent from the source port of a number.
func (o *outgoing) finish(to fabric.Path, source uint8) {
	o.seal()
	h := &o.hdr
	// Our CRC does not cover the addresses. An association would not know a
	// changed one, nor the epochs of both ends; a receiver of any other unreliable
	// datagram is told of it, so that has the carrier's checksum too.
	o.emit(o.tx, o.ep.caps.Headroom, to, !o.ep.cfg.NoCRC && (h.Type != dgram.TypeUD || o.named))
	pkt := &o.tx.Pkts[len(o.tx.Pkts)-1]
	pkt.Source, pkt.Again, pkt.Kept, o.again = source, o.again, h.Type == dgram.TypeData, false
	o.ep.Stats.TxDatagrams++
	o.dirty = true
	if len(o.tx.Pkts) == txBatch {
		o.push()
	}
}

// seal writes the header and the CRC of the open datagram.
func (o *outgoing) seal() {
	if o.size > o.ep.caps.MaxPayload {
		panic(fmt.Sprintf("llp: a datagram of %d bytes was built, which is more than %s takes (%d)", o.size, o.ep.caps.Carrier, o.ep.caps.MaxPayload))
	}
	h := &o.hdr
	h.Key = o.ep.cfg.Key
	if !o.ep.cfg.NoCRC {
		h.Flags |= dgram.FlagCRC
	}
	h.Put(o.first)
	if !o.ep.cfg.NoCRC {
		dgram.Seal(o.first, o.crc(o.ep.arena))
	}
}

func (o *outgoing) push() {
	if len(o.tx.Pkts) > 0 {
		o.ep.dg.Send(o.tx)
		o.tx.Reset()
	}
}

// Flush hands everything queued to the carrier and rings its doorbell.
func (e *Endpoint) Flush() {
	e.out.push()
	e.dg.Flush()
	if e.bulk.queued {
		e.bulk.flush()
	}
	e.out.dirty = false
}

// Unflushed reports whether a datagram waits for Flush: one that was built for
// the caller, or of the endpoint's own.
func (e *Endpoint) Unflushed() bool { return e.out.dirty }

// MaxULPDU returns the most bytes of one ULPDU to p, DDP header included.
func (p *Peer) MaxULPDU() int { return int(p.whole) - dgram.HeaderLen - dgram.LengthLen }

// DirectMin is the least number of bytes that Direct is worth: a buffer of its
// own costs as much as copying a frame, so nearly two must be saved.
const DirectMin = 2*mem.FrameSize - mem.FrameSize/4

// Most returns the largest payload of a datagram to p in bytes.
func (p *Peer) Most() int { return int(p.most) }

// Direct returns how many of the n bytes at addr, which lies in the arena, a
// ULPDU with a header of hdr bytes should take when they are to be sent from where
// they lie, in a datagram of up to most bytes: whole frames of memory, so that few
// buffers are needed. 0 means that copying is better.
func (e *Endpoint) Direct(most int, addr mem.Addr, n, hdr int) int {
	if e.caps.MaxBufs < 4 {
		return 0
	}
	room := most - dgram.HeaderLen - dgram.LengthLen - hdr
	room = min(room, (e.caps.MaxBufs-2)*mem.FrameSize)
	if n > room {
		n = room - int(addr+mem.Addr(room))%mem.FrameSize
	}
	if n < DirectMin {
		return 0
	}
	return n
}

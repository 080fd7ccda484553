// Package llp joins the carriers and the protocols: it moves ULPDUs of
// iwarp/dgram over a fabric.Datagram.
package llp

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/serial"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// Config describes a reliable datagram endpoint.
type Config struct {
	Key   uint64 // job key: datagrams with another one are dropped
	Epoch uint32 // life of this endpoint, random, not 0
	NoCRC bool   // leave out the CRC32C; both ends must agree. Default: CRC on
	Dgram dgram.Config
}

// Stats counts what an endpoint dropped, and why.
type Stats struct {
	RxDatagrams, TxDatagrams uint64
	TxDirect                 uint64 // ULPDUs sent from where they lie, without copying
	TxAcks                   uint64 // datagrams that carry an acknowledgement only
	TxResent                 uint64 // ULPDUs sent again
	RxMalformed              uint64 // not an LLP header of our version, or lengths that do not add up
	RxForeign                uint64 // another job's key
	RxCorrupt                uint64 // CRC32C does not match, or is missing
	RxStale                  uint64 // for or from an earlier life of an endpoint
	RxDuplicate              uint64 // ULPDUs that had arrived before, or lie outside of the window
}

// Peer is what an endpoint knows of another one.
type Peer struct {
	Index  int // position in RD.Peers
	Remote fabric.Remote
	Snd    dgram.Sender
	Rcv    dgram.Receiver
	Lost   bool // silent for too long, restarted, or closed: nothing goes to it any more

	path  fabric.Path
	epoch uint32 // its life, 0 until it has spoken
}

// RD is the LLP of reliable datagrams: one UDP endpoint that talks to any
// number of peers. It is driven by one queue pair; it has no loop of its own.
//
// Owner: engine.
type RD struct {
	Stats Stats
	Peers []*Peer

	cfg     Config
	shared  *dgram.Shared
	dg      fabric.Datagram
	arena   *mem.Arena
	caps    fabric.DatagramCaps
	most    int // largest UDP payload in bytes; caps has what whole frames take
	byAddr  remoteTable
	rx      *fabric.Batch
	rxPos   int
	reader  Reader
	tx      *fabric.Batch
	w       writer
	open    *Peer // whose datagram is being built
	openHdr dgram.Header
}

const txBatch = 32

// NewRD returns an endpoint on dg, which it owns from now on. The window is
// bounded so that a whole one fits the carrier's receive queue.
func NewRD(dg fabric.Datagram, c Config) (*RD, error) {
	if c.Epoch == 0 {
		return nil, fmt.Errorf("llp: the epoch must not be 0")
	}
	caps := dg.Caps()
	if caps.MaxPayload < dgram.HeaderLen+8*dgram.MaxSackWords+128 {
		return nil, fmt.Errorf("llp: %d bytes per datagram on %s are too few for reliable datagrams: raise the MTU", caps.MaxPayload, caps.Carrier)
	}
	most := caps.MaxPayload
	caps.MaxPayload = wholeFrames(most, caps.Headroom)
	shared := dgram.NewShared(c.Dgram, caps.RxDepth)
	c.Dgram = *shared.Config()
	bufs := (most+caps.Headroom)/mem.FrameSize + 3
	return &RD{
		cfg: c, shared: shared, dg: dg, arena: dg.Arena(), caps: caps, most: most,
		rx: fabric.NewBatch(64, min(bufs, fabric.MaxBufs)+1),
		tx: fabric.NewBatch(txBatch, min(bufs, fabric.MaxBufs)),
	}, nil
}

// wholeFrames returns how much of a payload of at most n bytes to use, so that
// the last frame of a datagram is not nearly empty: a further frame costs as
// much as copying one. At MTU 9000 the payload is 8128 bytes, which is 4 %
// faster than 8972.
func wholeFrames(n, headroom int) int {
	if rest := (headroom + n) % mem.FrameSize; rest < mem.FrameSize/4 && n > mem.FrameSize {
		return n - rest
	}
	return n
}

// MaxULPDU returns the most bytes of one ULPDU, DDP header included.
func (r *RD) MaxULPDU() int { return r.caps.MaxPayload - dgram.HeaderLen - dgram.LengthLen }

// DirectMin is the least number of bytes that Direct is worth: a buffer of its
// own costs as much as copying a frame, so nearly two must be saved.
const DirectMin = 2*mem.FrameSize - mem.FrameSize/4

// Direct returns how many of the n bytes at addr, which lies in the arena, a
// ULPDU with a header of hdr bytes should take when they are to be sent from
// where they lie: whole frames of memory, so that few buffers are needed. 0
// means that copying is better.
func (r *RD) Direct(addr mem.Addr, n, hdr int) int {
	if r.caps.MaxBufs < 4 {
		return 0
	}
	room := r.most - dgram.HeaderLen - dgram.LengthLen - hdr
	room = min(room, (r.caps.MaxBufs-2)*mem.FrameSize)
	if n > room {
		n = room - int(addr+mem.Addr(room))%mem.FrameSize
	}
	if n < DirectMin {
		return 0
	}
	return n
}

// Datagram returns the carrier.
func (r *RD) Datagram() fabric.Datagram { return r.dg }

// Config returns the configuration with its defaults filled in.
func (r *RD) Config() *Config { return &r.cfg }

// Close closes the carrier.
func (r *RD) Close() error { return r.dg.Close() }

// Connect returns the peer with this address. It is a control call: it may ask
// the kernel for the way there and wait.
func (r *RD) Connect(to netip.AddrPort) (*Peer, error) {
	if !to.Addr().Unmap().Is4() || to.Port() == 0 {
		return nil, fmt.Errorf("llp: %v is not an IPv4 address with a port", to)
	}
	remote := fabric.RemoteOf(to)
	if i, ok := r.byAddr.find(remote); ok {
		return r.Peers[i], nil
	}
	path, err := r.dg.Resolve(to)
	if err != nil {
		return nil, err
	}
	p := &Peer{Index: len(r.Peers), Remote: remote, path: path}
	p.Snd.Init(r.shared, serial.U32(r.cfg.Epoch))
	p.Snd.SetSegment(r.most)
	p.Rcv.Init(r.shared, 0)
	r.Peers = append(r.Peers, p)
	r.byAddr.add(remote, p.Index)
	return p, nil
}

// Recv takes in a batch of datagrams and returns how many. Walk them with
// Next; call Release after the last.
func (r *RD) Recv() int {
	r.rxPos = 0
	n := r.dg.Recv(r.rx)
	r.Stats.RxDatagrams += uint64(n)
	return n
}

// Next returns the next good datagram of the batch: whom it is from, its
// header, and a reader that stands at its first ULPDU. Bad ones are counted
// and passed over. p is nil at the end of the batch.
//
// The datagram's acknowledgement is for the caller to apply (Peer.Snd).
func (r *RD) Next(h *dgram.Header) (p *Peer, rd *Reader) {
	for r.rxPos < len(r.rx.Pkts) {
		pkt := &r.rx.Pkts[r.rxPos]
		r.rxPos++
		if p := r.accept(pkt, h); p != nil {
			return p, &r.reader
		}
	}
	return nil, nil
}

// Release gives the batch's frames back.
func (r *RD) Release() { r.dg.Release(r.rx) }

func (r *RD) accept(pkt *fabric.Packet, h *dgram.Header) *Peer {
	descs := r.rx.Descs[pkt.First : pkt.First+pkt.Bufs]
	first := r.arena.At(descs[0].Addr, int(descs[0].Len))
	if !h.Parse(first) {
		r.Stats.RxMalformed++
		return nil
	}
	if h.Key != r.cfg.Key {
		r.Stats.RxForeign++
		return nil
	}
	if !r.cfg.NoCRC && !r.intact(first, descs[1:], h) {
		r.Stats.RxCorrupt++
		return nil
	}
	var p *Peer
	if i, ok := r.byAddr.find(pkt.From); ok {
		p = r.Peers[i]
	} else if p = r.acceptNew(pkt.From); p == nil {
		return nil
	}
	if p.epoch != h.SrcEpoch || h.DstEpoch != r.cfg.Epoch {
		if !r.acceptEpoch(p, h) {
			r.Stats.RxStale++
			return nil
		}
	}
	r.reader.open(r.arena, descs, int(pkt.Len))
	r.reader.Skip(dgram.HeaderLen)
	return p
}

// intact checks the CRC32C of a datagram that lies in first and rest.
func (r *RD) intact(first []byte, rest []fabric.Desc, h *dgram.Header) bool {
	if h.Flags&dgram.FlagCRC == 0 {
		return false
	}
	crc := dgram.CRC(0, first[dgram.CRCLen:])
	for _, d := range rest {
		crc = dgram.CRC(crc, r.arena.At(d.Addr, int(d.Len)))
	}
	return crc == h.CRC
}

// acceptNew makes a peer of a sender that knows the job's key but that nobody
// has connected to yet.
func (r *RD) acceptNew(from fabric.Remote) *Peer {
	p, err := r.Connect(from.AddrPort())
	if err != nil {
		r.Stats.RxMalformed++
		return nil
	}
	return p
}

// acceptEpoch decides about a datagram whose epochs are not the known ones:
// the first of a peer, one that was sent before the peer had heard of us, or
// one of another life of either end.
func (r *RD) acceptEpoch(p *Peer, h *dgram.Header) bool {
	if h.DstEpoch != 0 && h.DstEpoch != r.cfg.Epoch {
		return false // meant for an earlier life of ours
	}
	if p.epoch == 0 {
		p.epoch = h.SrcEpoch
		p.Rcv.Init(r.shared, serial.U32(h.SrcEpoch))
		return true
	}
	if p.epoch != h.SrcEpoch {
		p.Lost = p.Lost || h.DstEpoch == 0 // it started anew: what we had in common is gone
		return false
	}
	return true
}

// Heard reports whether h acknowledges anything: before the peer knows our
// epoch, its acknowledgement is not about us.
func (r *RD) Heard(h *dgram.Header) bool { return h.DstEpoch == r.cfg.Epoch }

// TxRoom reports whether a datagram can be built now.
func (r *RD) TxRoom() bool { return r.dg.TxRoom() > len(r.tx.Pkts) }

// Begin opens a datagram to p whose first ULPDU has number lsn and, with its
// DDP header, n bytes. false means no room now.
func (r *RD) Begin(p *Peer, lsn serial.U32, n int) bool {
	if !r.w.open(r.dg, r.arena, r.caps.Headroom, dgram.HeaderLen+dgram.LengthLen+n) {
		return false
	}
	r.open = p
	r.openHdr = dgram.Header{Type: dgram.TypeData, LSN: lsn}
	return true
}

// Fits reports whether the open datagram takes one more ULPDU of n bytes.
func (r *RD) Fits(n int) bool {
	return r.openHdr.Count < math.MaxUint8 && len(r.w.cur) >= n+dgram.LengthLen && r.w.size+n+dgram.LengthLen <= r.caps.MaxPayload && r.w.pieces == 0
}

// ULPDU starts the next ULPDU of the open datagram: n bytes of which the first
// hdr are the DDP header, which the caller writes to what is returned. The
// rest follows by Payload.
func (r *RD) ULPDU(n, hdr int) []byte {
	r.openHdr.Count++
	b := r.w.reserve(dgram.LengthLen + hdr)
	binary.BigEndian.PutUint16(b, uint16(n))
	return b[dgram.LengthLen:]
}

// Payload appends b to the open ULPDU.
func (r *RD) Payload(b []byte) { r.w.put(r.arena, b) }

// Attach appends n bytes at addr to the open ULPDU without copying them. They
// stay as they are until the peer has acknowledged the ULPDU.
func (r *RD) Attach(addr mem.Addr, n int) {
	r.w.attach(addr, n)
	r.Stats.TxDirect++
}

// Commit closes the open datagram and queues it. soon tells the peer that
// somebody waits for the acknowledgement.
func (r *RD) Commit(soon bool) {
	if soon {
		r.openHdr.Flags |= dgram.FlagAckSoon
	}
	r.finish(r.open)
	r.open.Rcv.Acked(false)
}

// Ack queues a datagram that acknowledges what p has sent. false means no room.
func (r *RD) Ack(p *Peer) bool {
	words := min(p.Rcv.SackWords(), dgram.MaxSackWords)
	if !r.TxRoom() || !r.w.open(r.dg, r.arena, r.caps.Headroom, dgram.HeaderLen+8*words) {
		return false
	}
	r.openHdr = dgram.Header{Type: dgram.TypeAck, LSN: p.Snd.Next(), SackWords: uint8(words)}
	for w := range words {
		binary.BigEndian.PutUint64(r.w.reserve(8), p.Rcv.Sack(w))
	}
	r.finish(p)
	p.Rcv.Acked(true)
	r.Stats.TxAcks++
	return true
}

func (r *RD) finish(p *Peer) {
	h := &r.openHdr
	h.Key, h.SrcEpoch, h.DstEpoch = r.cfg.Key, r.cfg.Epoch, p.epoch
	h.Ack, h.Window = p.Rcv.Next(), uint16(r.cfg.Dgram.Window)
	if !r.cfg.NoCRC {
		h.Flags |= dgram.FlagCRC
	}
	h.Put(r.w.first)
	if !r.cfg.NoCRC {
		dgram.Seal(r.w.first, r.w.crc(r.arena))
	}
	r.w.emit(r.tx, r.caps.Headroom, p.path, !r.cfg.NoCRC)
	r.Stats.TxDatagrams++
	if len(r.tx.Pkts) == txBatch {
		r.push()
	}
}

func (r *RD) push() {
	if len(r.tx.Pkts) > 0 {
		r.dg.Send(r.tx)
		r.tx.Reset()
	}
}

// Flush hands everything queued to the carrier and rings its doorbell.
func (r *RD) Flush() {
	r.push()
	r.dg.Flush()
}

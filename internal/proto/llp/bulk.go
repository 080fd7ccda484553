package llp

import (
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// bulk is the second path of an endpoint, for large data: the kernel's UDP beside
// AF_XDP. A frame at a time has the least latency for what is short; what is long is
// cheaper in pieces of 64 KiB that the kernel cuts up late or, inside a machine,
// never. The same datagrams take both paths, so all that makes them reliable is the
// same, and what was lost is sent again by the first path.
//
// Whether the second path leads to a peer is found out by a Hello: a firewall does
// not see AF_XDP, but may well see this.
type bulk struct {
	ep         *Endpoint
	dg         fabric.Datagram // or nil
	paths      []bulkPath      // by Peer.Index
	tx         *fabric.Batch
	whole      int  // its room when nothing is queued
	queued     bool // something is, here or there
	lent       bool // the batch that Recv filled last is of this carrier
	looks      int  // how often an idle Recv looks here yet
	firstInRow int  // batches of the first path in a row
	idle       uint // Recvs that found nothing
}

// A look at the second path is a system call, so it is looked at when there is
// reason to: for looksAfter idle Recvs after a datagram that says so, and by the next
// idle one after a wait in the kernel, which either ends. Of all
// others one in idleLook does. firstMost batches come by the first path at most before the
// second is asked.
const (
	looksAfter = 64
	idleLook   = 4096
	firstMost  = 8
)

// Long says that the open datagram to p begins with a part of a long message. Its
// ULPDUs are pushed afterwards.
func (e *Endpoint) Long(p *Peer) {
	e.out.long = true
	if e.multi.dg != nil {
		p.Snd.Spread()
	}
}

// bulkPath is what is known of the second path to a peer. It is not part of the peer, for
// most have none.
type bulkPath struct {
	arq.BulkPath
	path fabric.Path // of the second carrier
}

// to returns that to p.
func (b *bulk) to(p *Peer) *bulkPath {
	for int(p.Index) >= len(b.paths) {
		b.paths = append(b.paths, bulkPath{})
	}
	return &b.paths[p.Index]
}

// forget makes the path to p one that is not known, which nothing takes.
func (b *bulk) forget(p *Peer) {
	if int(p.Index) < len(b.paths) {
		b.paths[p.Index], p.burst = bulkPath{}, arq.Burst{}
	}
}

func (b *bulk) init(ep *Endpoint, dg fabric.Datagram, bufs int) {
	b.ep = ep
	if b.dg = dg; dg != nil {
		b.tx = fabric.NewBatch(txBatch, bufs)
		b.whole = dg.TxRoom()
	}
}

func (b *bulk) close() error {
	if b.dg == nil {
		return nil
	}
	return b.dg.Close()
}

// room reports whether one more datagram can be queued.
func (b *bulk) room() bool { return b.dg.TxRoom() > len(b.tx.Pkts) }

// recvOther fills the batch from the second path if the first had none: n datagrams came
// there. Those come before, for a sender on both began there. woken is that of Recv.
func (b *bulk) recvOther(n int, woken bool) int {
	b.lent = false
	if woken {
		b.looks = max(b.looks, 1)
	}
	if n > 0 {
		if b.looks > 0 {
			b.firstInRow++
		}
		return n
	}
	b.firstInRow = 0
	if b.looks > 0 {
		b.looks--
		return b.recvBulk()
	}
	if b.idle++; b.idle%idleLook == 0 {
		return b.recvBulk()
	}
	return 0
}

// lookThere sees to it that the second path is looked at, if the header of what came
// the first says so.
func (b *bulk) lookThere(h *dgram.Header) {
	if h.Flags&dgram.FlagBulk != 0 {
		b.looks = looksAfter
	}
}

// recvBulk fills the batch from the second path.
func (b *bulk) recvBulk() int {
	n := b.dg.Recv(b.ep.rx)
	if n == 0 {
		return 0
	}
	b.lent, b.looks = true, looksAfter
	b.ep.Stats.RxBulk += uint64(n)
	for i := range b.ep.rx.Pkts {
		from := &b.ep.rx.Pkts[i].From
		if from.Port() < dgram.BulkPort {
			*from = fabric.Remote{} // no sender's
			continue
		}
		*from = from.WithPort(from.Port() - dgram.BulkPort)
	}
	return n
}

// inBulk reports whether the next datagram to p, that with number lsn, goes as bulk.
// Once one does all that follow do, until everything has arrived.
func (b *bulk) inBulk(p *Peer, lsn serial.U32, long bool) bool {
	if b.dg == nil || !long && p.burst.Idle() {
		return false
	}
	w := &b.to(p).BulkPath
	choice := p.burst.Next(b.ep.now, w, &p.Snd, lsn == p.ack, long)
	if choice == arq.LastFirst {
		b.ep.out.hdr.Flags |= dgram.FlagBulk
	}
	if p.burst.Large() && w.Wanting(b.ep.now) {
		b.ep.Wake(&p.Assoc, b.ep.now)
	}
	return choice == arq.SecondPath
}

// ask sends a Hello by the second path when one is due, as long as a datagram to p may
// be. The answer comes by the first path.
func (b *bulk) ask(p *Peer) {
	if !p.burst.Large() || !p.Open() {
		return
	}
	w := b.to(p)
	if !w.Wanting(b.ep.now) {
		return
	}
	w.Ask(b.ep.now)
	var ok bool
	if w.path, ok = b.ep.ResolveBulk(p.Remote); !ok {
		return // it may be a later time
	}
	h := dgram.Header{Type: dgram.TypeHello, Flags: dgram.FlagBulk, SrcEpoch: p.local, DstEpoch: p.remote}
	if b.ep.shake.beginHello(h, int(p.most), int(p.most)) {
		b.finishBulk(w.path)
	}
}

// ResolveBulk returns the second path to a peer, if there may be one. It is a control
// call, like Resolve.
func (e *Endpoint) ResolveBulk(to fabric.Remote) (path fabric.Path, ok bool) {
	a := to.AddrPort()
	if e.bulk.dg == nil || a.Port() > 0xffff-dgram.BulkPort {
		return 0, false
	}
	path, err := e.bulk.dg.Resolve(netip.AddrPortFrom(a.Addr(), a.Port()+dgram.BulkPort))
	return path, err == nil
}

// HasBulk reports whether there is a second path out.
func (e *Endpoint) HasBulk() bool { return e.bulk.dg != nil }

// helloAnswered takes the answer to a Hello of size bytes that went by the second path.
func (b *bulk) helloAnswered(p *Peer, size int) {
	if size >= int(p.most) {
		b.to(p).Answered()
	}
}

// finishBulk seals the open datagram and queues it for the second path.
func (b *bulk) finishBulk(to fabric.Path) {
	b.ep.out.seal()
	b.ep.out.emit(b.tx, b.ep.caps.Headroom, to, true)
	b.queuedBulk()
}

// queuedBulk notes that one more datagram waits for the second path.
func (b *bulk) queuedBulk() {
	b.queued = true
	b.ep.Stats.TxDatagrams++
	b.ep.Stats.TxBulk++
	b.ep.out.dirty = true
	if len(b.tx.Pkts) == txBatch {
		b.push()
	}
}

func (b *bulk) push() {
	if len(b.tx.Pkts) > 0 {
		b.dg.Send(b.tx)
		b.tx.Reset()
	}
}

func (b *bulk) flush() {
	b.push()
	b.dg.Flush()
	b.queued = b.dg.TxRoom() < b.whole
}

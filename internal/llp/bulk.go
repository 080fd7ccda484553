package llp

import (
	"net/netip"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// bulk is the second way of an endpoint, for large data: the kernel's UDP beside
// AF_XDP. A frame at a time is the quickest way for what is short; what is long is
// cheaper in pieces of 64 KiB that the kernel cuts up late or, inside a machine,
// never. The same datagrams go both ways, so all that makes them reliable is the
// same, and what was lost is sent again the first way.
//
// Whether the second way leads to a peer is found out by a Hello: a firewall does
// not see AF_XDP, but may well see this.
type bulk struct {
	dg     fabric.Datagram // or nil
	ways   []way           // by Peer.Index
	tx     *fabric.Batch
	whole  int  // its room when nothing is queued
	queued bool // something is, here or there
	lent   bool // the batch that Recv filled last is of this carrier
	looks  int  // how often an idle Recv looks here yet
	turns  int  // batches of the first way in a row
	idle   uint // Recvs that found nothing
}

// A look at the second way is a system call, so it is looked at when there is
// reason to: for looksAfter idle Recvs after a datagram that says so. Otherwise one
// in idleLook does, and who sleeps is woken by either. turnsMost batches come the
// first way at most before the second is asked.
const (
	looksAfter = 64
	idleLook   = 4096
	turnsMost  = 8
)

// LongMin is from how many bytes on a message is long. A peer is sent to in bulk
// after bulkAfter datagrams of long messages, of which not all have arrived yet: a
// stream of short ones loses more by the slower way than it gains.
const (
	LongMin   = 32 << 10
	bulkAfter = 4
)

// Long says that the open datagram begins with a part of a long message.
func (e *Endpoint) Long() { e.openLong = true }

// way is what is known of the second way to a peer. It is not part of the peer, for
// most have none.
type way struct {
	found bool        // it leads there
	asks  uint8       // Hellos that went it since large data did without loss
	path  fabric.Path // of the second carrier
	askAt mono.Time   // when the next Hello may go it

	sent, resent uint32 // ULPDUs of the present run of large data, and of them again
}

// lose makes the way one that has to be found anew, later each time.
func (w *way) lose(now mono.Time) {
	w.found, w.askAt = false, now.Add(min(askFirst<<min(w.asks, 20), askMost))
}

// judge looks back at a run of large data, all of which has arrived. A way that has
// lost half of it is none.
func (w *way) judge(now mono.Time) {
	switch {
	case w.resent > w.sent/2:
		w.lose(now)
	case w.resent == 0:
		w.asks = 0
	}
	w.sent, w.resent = 0, 0
}

// way returns that to p.
func (b *bulk) way(p *Peer) *way {
	for int(p.Index) >= len(b.ways) {
		b.ways = append(b.ways, way{})
	}
	return &b.ways[p.Index]
}

// forget makes the way to p one that is not known, which nothing goes.
func (b *bulk) forget(p *Peer) {
	if int(p.Index) < len(b.ways) {
		b.ways[p.Index], p.bulk = way{}, false
	}
}

// Time between Hellos on the second way: the first that is not answered, and the
// most.
const (
	askFirst = 20 * mono.Millisecond
	askMost  = 60 * mono.Second
)

func (b *bulk) init(dg fabric.Datagram, bufs int) {
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

// recvOther fills the batch from the second way when it is its turn: the first had n
// datagrams. Those come before, for who sends on both began there.
func (e *Endpoint) recvOther(n int) int {
	b := &e.bulk
	b.lent = false
	if n > 0 {
		if b.looks > 0 {
			b.turns++
		}
		return n
	}
	b.turns = 0
	if b.looks > 0 {
		b.looks--
		return e.recvBulk()
	}
	if b.idle++; b.idle%idleLook == 0 {
		return e.recvBulk()
	}
	return 0
}

// recvBulk fills the batch from the second way.
func (e *Endpoint) recvBulk() int {
	n := e.bulk.dg.Recv(e.rx)
	if n == 0 {
		return 0
	}
	e.bulk.lent, e.bulk.looks = true, looksAfter
	e.Stats.RxBulk += uint64(n)
	for i := range e.rx.Pkts {
		from := &e.rx.Pkts[i].From
		if uint16(*from) < dgram.BulkPort {
			*from = 0 // nobody's
			continue
		}
		*from -= dgram.BulkPort
	}
	return n
}

// inBulk reports whether the open datagram to p goes as bulk. Once one does all
// that follow do, until everything has arrived: nothing overtakes anything, for
// that would be taken for loss.
func (e *Endpoint) inBulk(p *Peer) bool {
	switch {
	case e.openHdr.LSN == p.acked:
		e.arrived(p)
	case p.bulk && e.bulk.dg != nil && p.Snd.TimeOuts() > 0: // a way on which nothing arrives is none
		p.bulk = false
		e.bulk.way(p).lose(e.now)
	}
	if !e.openLong || p.bulk {
		return p.bulk
	}
	if p.large < bulkAfter {
		if p.large++; p.large == bulkAfter {
			e.openHdr.Flags |= dgram.FlagBulk // so that the peer looks there
		}
		return false
	}
	p.bulk = e.bulk.dg == nil || e.leads(p)
	return p.bulk
}

// arrived notes that p has everything that was sent to it.
func (e *Endpoint) arrived(p *Peer) {
	if p.bulk && e.bulk.dg != nil {
		e.bulk.way(p).judge(e.now)
	}
	p.bulk, p.large = false, 0
}

// leads reports whether the second way leads to p, and sees to it that this gets
// known.
func (e *Endpoint) leads(p *Peer) bool {
	w := e.bulk.way(p)
	if !w.found && e.now >= w.askAt {
		e.timers.Sooner(p.Index, e.now)
	}
	return w.found
}

// ask sends a Hello the second way when one is due, as long as a datagram to p may
// be. The answer comes the first way.
func (e *Endpoint) ask(p *Peer) {
	if p.large < bulkAfter || !p.Open() {
		return
	}
	w := e.bulk.way(p)
	if w.found || e.now < w.askAt {
		return
	}
	w.lose(e.now)
	w.asks = min(w.asks+1, 250)
	to := p.Remote.AddrPort()
	if to.Port() > 0xffff-dgram.BulkPort {
		return
	}
	var err error
	if w.path, err = e.bulk.dg.Resolve(netip.AddrPortFrom(to.Addr(), to.Port()+dgram.BulkPort)); err != nil {
		return // it may be a later time
	}
	h := dgram.Header{Type: dgram.TypeHello, Flags: dgram.FlagBulk, SrcEpoch: p.local, DstEpoch: p.remote}
	if e.beginHello(h, int(p.most), int(p.most)) {
		e.finishBulk(p)
	}
}

// wayAnswered deals with the answer to a Hello of size bytes that went the second way.
func (e *Endpoint) wayAnswered(p *Peer, size int) {
	if w := e.bulk.way(p); size >= int(p.most) && w.asks > 0 {
		w.found = true
	}
}

// finishBulk seals the open datagram and queues it for the second way.
func (e *Endpoint) finishBulk(p *Peer) {
	e.seal()
	b := &e.bulk
	w := b.way(p)
	w.sent += uint32(e.openHdr.Count)
	e.w.emit(b.tx, e.caps.Headroom, w.path, true)
	e.openBulk = false
	e.queuedBulk()
}

// queuedBulk notes that one more datagram waits for the second way.
func (e *Endpoint) queuedBulk() {
	b := &e.bulk
	b.queued = true
	e.Stats.TxDatagrams++
	e.Stats.TxBulk++
	e.dirty = true
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

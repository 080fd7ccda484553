package reliable

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/verbs"
)

// Stats counts what an endpoint did.
type Stats struct {
	Packets, Chunks    uint64 // sent for the first time
	Resent             uint64 // of both
	Acks, Asks, Hellos uint64 // sent
	Bulk               uint64 // packets and chunks that went by the second path
	Received           uint64 // packets and chunks that were new
	Duplicates         uint64 // those that were not, or lie outside of the window
	Dropped            uint64 // ahead of a gap when there was no room to keep them
	Malformed, Foreign uint64 // packets that no peer has sent
}

// protocol is the part that speaks no verbs: it says which packet to send next,
// and takes in those that arrive.
type protocol struct {
	Stats

	assocs   llp.Assocs
	conns    []*conn // by Assoc.Index
	left     int     // datagrams that the first of the line may send yet
	lost     []*Peer // that the user has not been told of
	requests requests
	done     completions
	until    uint64 // packets that must have gone out before the user sees them: request.posted
	most     int    // length of a message
	part     uint32 // most bytes of a message in one datagram
	chunk    uint32 // and of a Write, if it is copied
	room     uint32 // and if it is not
	second   bool   // there is a second path
	hello    uint32 // how many bytes a Hello has behind its header: as a datagram at most
	long     uint32 // from how many bytes on a Write is large data

	rx     []byte // receive buffers
	stride int
	spare  int     // of them, those that nothing has come into
	free   []int32 // that are to be spare again
	rings  [][]waiting
	parts  parts
}

func (p *protocol) init(cfg *Config, slots int, now mono.Time) {
	p.assocs.Init(cfg.ARQ, slots, now)
	p.requests.init(cfg.MaxSendWR)
	p.done.init(cfg.MaxSendWR + 2*slots)
	p.most, p.long = cfg.MaxMessage, arq.LongMin
	p.left, p.spare = llp.Quota, slots
}

// slot returns the first n bytes of a receive buffer.
func (p *protocol) slot(i int32, n int) []byte {
	at := int(i) * p.stride
	return p.rx[at : at+n : at+p.stride]
}

// packet is something to be sent: a header and a part of a request behind it,
// or a chunk, which has no header.
type packet struct {
	peer   *Peer
	req    *request // nil: none, and n bytes that mean nothing follow the header
	off    uint32
	n      uint32
	psn    serial.U32
	choice arq.PathChoice
	chunk  bool
	hdr    [ackLen]byte
	len    int // of the header
}

// post appends a work request to the line of its peer. false means that the
// table is full. Ask nextPacket what to send. A Write is sent from where it lies if direct is
// set: its chunks then end with frames of memory.
func (p *protocol) post(now mono.Time, peer *Peer, wr *verbs.SendWR, direct bool) bool {
	i, ok := p.requests.add(wr)
	if !ok {
		return false
	}
	r := &p.requests.all[i]
	if r.first, r.step = p.chunk, p.chunk; direct {
		r.first, r.step = p.room-(uint32(r.sge.Addr)+p.room)%mem.FrameSize, p.room-p.room%mem.FrameSize
	}
	c := p.connOf(now, peer)
	if c.tail != none {
		p.requests.all[c.tail].next = i
	} else {
		c.head = i
	}
	c.tail = i
	if c.cur == none {
		c.cur = i
	}
	if c.Closed() {
		c.cur = none
		p.complete(c, verbs.WRFlushErr)
	}
	return true
}

// nextPacket says what to send of what was posted to a peer, before the next step, which
// dates it: now is the time of the last one. So nothing is sent again here, and nothing is
// overtaken.
func (p *protocol) nextPacket(now mono.Time, peer *Peer, pk *packet) bool {
	c := peer.conn
	if c.Closed() {
		return false
	}
	if c.cur != none && p.assocs.Alone(&c.Assoc) && !c.Snd.HasLost() {
		p.assocs.Early(&c.Assoc)
		if p.cutNext(now, c, pk, true) {
			return true
		}
	}
	if c.ask || c.hello || c.cur != none && c.Snd.CanPush(1) || c.Snd.HasLost() {
		p.assocs.Ready(&c.Assoc)
	} else {
		p.assocs.Wake(&c.Assoc, c.Snd.Deadline())
	}
	return false
}

// next says what to send next. now is the time of the clock.
func (p *protocol) next(now mono.Time, pk *packet) bool {
	for p.assocs.Waiting() > 0 {
		a := p.assocs.First()
		if p.left > 0 && !a.Closed() && p.pick(now, p.conns[a.Index], pk) {
			p.left--
			return true
		}
		p.assocs.Take()
		p.assocs.Wake(a, a.Snd.Deadline())
		if p.left == 0 {
			p.assocs.Ready(a) // behind those that have not had their turn
		}
		p.left = llp.Quota
	}
	return false
}

// pick says what to send next to one peer: what was lost, then what is new,
// then what only carries an acknowledgement or asks for one.
func (p *protocol) pick(now mono.Time, c *conn, pk *packet) bool {
	snd := &c.Snd
	if psn, ok := snd.NextLost(); ok {
		rec := snd.Unit(psn)
		pk.peer, pk.req = c.peer, &p.requests.all[rec.Token]
		pk.psn, pk.off, pk.n = psn, rec.Off, rec.Len
		pk.choice = arq.FirstPath // the other may be what lost it
		snd.Resent(now, psn)
		p.Resent++
		if c.burst.Second() {
			c.bulk.Resent(1)
		}
		p.dress(now, c, pk, true)
		return true
	}
	due := c.Rcv.Deadline() <= now
	if p.cutNext(now, c, pk, !due) {
		return true
	}
	pk.peer, pk.req, pk.n, pk.choice = c.peer, nil, 0, arq.FirstPath
	switch {
	case c.ask:
		c.ask = false
		p.Asks++
		p.head(now, c, pk, kindAsk, 0)
		if c.burst.Second() {
			pk.choice = arq.SecondPath // behind what it asks for
		}
	case c.hello:
		c.hello = false
		p.Hellos++
		p.head(now, c, pk, kindHello, 0)
		pk.n, pk.choice = p.hello, arq.SecondPath
	case c.answer:
		c.answer = false
		p.head(now, c, pk, kindHelloAck, 0)
	case due:
		p.Acks++
		p.acknowledge(now, c, pk)
	default:
		return false
	}
	return true
}

// cutNext cuts the first request in line, if the windows allow that. Chunks may
// have to let an acknowledgement go first, which they do not carry.
func (p *protocol) cutNext(now mono.Time, c *conn, pk *packet, chunks bool) bool {
	i := c.cur
	if i == none {
		return false
	}
	r := &p.requests.all[i]
	n := r.total - r.cut
	if r.op == verbs.OpRDMAWrite {
		part := r.step
		if r.cut == 0 {
			part = r.first
		}
		if n = min(n, part); !chunks {
			return false
		}
	} else {
		n = min(n, p.part)
	}
	if !c.Snd.CanPush(int(n) + HeaderLen) {
		return false
	}
	p.cut(now, c, pk, i, n)
	return true
}

// cut takes the next n bytes off request i.
func (p *protocol) cut(now mono.Time, c *conn, pk *packet, i int32, n uint32) {
	r := &p.requests.all[i]
	pk.peer, pk.req, pk.off, pk.n = c.peer, r, r.cut, n
	pk.choice = p.choosePath(now, c, r)
	r.cut += n
	last := r.cut == r.total
	pk.psn = c.Snd.Push(now, uint32(i), pk.off, n, last)
	soon := c.Snd.AckSoon()
	if last {
		c.cur = r.next
		// A request waits for the end of what did not fit one datagram.
		soon = soon || r.flags&verbs.Signaled != 0 && (pk.off > 0 || r.op == verbs.OpRDMAWrite)
	}
	if r.op == verbs.OpRDMAWrite {
		p.Chunks++
	} else {
		p.Packets++
	}
	p.dress(now, c, pk, soon)
}

// choosePath says how the next part of a request goes that is sent for the first time.
func (p *protocol) choosePath(now mono.Time, c *conn, r *request) arq.PathChoice {
	long := r.total >= p.long && r.op == verbs.OpRDMAWrite
	if !p.second || !long && c.burst.Idle() {
		return arq.FirstPath
	}
	choice := c.burst.Next(now, &c.bulk, &c.Snd, c.Snd.InFlight() == 0, long)
	if c.burst.Large() && c.bulk.Wanting(now) {
		c.bulk.Ask(now)
		c.hello = true
	}
	if choice == arq.SecondPath {
		c.bulk.Sent(1)
		p.Bulk++
	}
	return choice
}

// dress gives a part of a request its header, or makes it a chunk.
func (p *protocol) dress(now mono.Time, c *conn, pk *packet, soon bool) {
	r := pk.req
	if pk.chunk = r.op == verbs.OpRDMAWrite; pk.chunk {
		c.ask = c.ask || soon
		return
	}
	flags := uint8(0)
	if pk.off == 0 {
		flags |= flagFirst
	}
	if pk.off+pk.n == r.total {
		flags |= flagLast
	}
	if soon || c.ask {
		c.ask = false
		flags |= flagSoon
	}
	p.head(now, c, pk, kindData, flags)
}

// head writes the header of a packet.
func (p *protocol) head(now mono.Time, c *conn, pk *packet, k kind, flags uint8) {
	h := header{kind: k, flags: flags, window: p.assocs.Window(), psn: pk.psn, ack: c.Rcv.Next(), held: arq.HeldOf(c.Rcv.Held(now))}
	if k != kindData {
		h.psn, pk.chunk = c.Snd.Next(), false
	}
	h.put(pk.hdr[:])
	pk.len = HeaderLen
	if k != kindHello { // which may well be lost
		c.Rcv.Acked(false)
	}
}

// acknowledge writes a packet that tells of gaps too.
func (p *protocol) acknowledge(now mono.Time, c *conn, pk *packet) {
	p.head(now, c, pk, kindAck, 0)
	words := c.PutSack(pk.hdr[pk.len:])
	pk.hdr[1] = uint8(words)
	pk.len += 8 * words
	c.Rcv.Acked(true)
}

package reliable

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/arq"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
	"github.com/xwarp/xwarp/verbs"
)

// Stats counts what an endpoint did.
type Stats struct {
	Packets, Chunks    uint64 // sent for the first time
	Resent             uint64 // of both
	Acks, Asks, Hellos uint64 // sent
	Bulk               uint64 // packets and chunks that went the second way
	Received           uint64 // packets and chunks that were new
	Duplicates         uint64 // those that were not, or lie outside of the window
	Dropped            uint64 // ahead of a gap when there was no room to keep them
	Malformed, Foreign uint64 // packets that no peer has sent
}

// protocol is the part that speaks no verbs: it says which packet to send next,
// and takes in those that arrive.
type protocol struct {
	Stats

	shared   *arq.Shared
	requests requests
	done     completions
	until    uint64 // packets that must have gone out before the user sees them: request.posted
	census   census
	most     int    // length of a message
	part     uint32 // most bytes of a message in one datagram
	chunk    uint32 // and of a Write, if it is copied
	room     uint32 // and if it is not
	second   bool   // there is a second way
	hello    uint32 // how many bytes a Hello has behind its header: as a datagram at most
	long     uint32 // from how many bytes on a Write is large data

	first, last *conn // the line of those that may have something to send
	active      []*conn
	wakeAt      mono.Time // no timer is due before
	used        []*conn
	keepAt      mono.Time // nobody is to be asked before whether he is there
	lost        []*Peer   // that the user has not been told of
	undated     []*conn

	rx     []byte // receive buffers
	stride int
	spare  int     // of them, those that nothing has come into
	free   []int32 // that are to be spare again
	rings  [][]waiting
	parts  parts
}

func (p *protocol) init(cfg *Config, slots int) {
	p.shared = arq.NewShared(cfg.ARQ, slots)
	p.requests.init(cfg.MaxSendWR)
	p.done.init(cfg.MaxSendWR + 2*slots)
	p.census.init(slots, p.shared.Config().Window)
	p.most, p.long = cfg.MaxMessage, arq.LongMin
	p.wakeAt, p.keepAt = mono.Never, mono.Never
	p.spare = slots
}

// slot returns the first n bytes of a receive buffer.
func (p *protocol) slot(i int32, n int) []byte {
	at := int(i) * p.stride
	return p.rx[at : at+n : at+p.stride]
}

// packet is something to be sent: a header and a part of a request behind it,
// or a chunk, which has no header.
type packet struct {
	peer  *Peer
	req   *request // nil: none, and n bytes that mean nothing follow the header
	off   uint32
	n     uint32
	psn   serial.U32
	turn  arq.Turn
	chunk bool
	hdr   [ackLen]byte
	len   int // of the header
}

// post appends a work request to the line of its peer. false means that the
// table is full. Ask kick what to send. A Write is sent from where it lies if direct is
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
	if c.dead {
		c.cur = none
		p.complete(c, verbs.WRFlushErr)
	}
	return true
}

// kick says what to send of what was posted to a peer, before the next step. It
// is dated by that one, for now is the time of the last one: reading the clock
// would take a tenth of our own time for a small message. So nothing is sent
// again here, and nobody is overtaken.
func (p *protocol) kick(now mono.Time, peer *Peer, pk *packet) bool {
	c := peer.conn
	if c.dead {
		return false
	}
	if alone := p.first == nil || p.first == c && p.last == c; alone && c.cur != none && !c.snd.HasLost() {
		if c.dated {
			c.dated, c.from = false, c.snd.Next()
			p.undated = append(p.undated, c)
		}
		if p.cutNext(now, c, pk, true) {
			return true
		}
	}
	if c.ask || c.hello || c.cur != none && c.snd.CanPush(1) || c.snd.HasLost() {
		p.list(c)
	} else {
		p.wake(c)
	}
	return false
}

// date gives what was sent since the last step its time.
func (p *protocol) date(now mono.Time) {
	for _, c := range p.undated {
		c.dated = true
		if !c.dead {
			c.snd.Date(now, c.from)
			p.wake(c)
		}
	}
	p.undated = p.undated[:0]
}

// quotaMost is how many packets one peer may send before the next one has its turn.
const quotaMost = 32

// next says what to send next. now is the time of the clock.
func (p *protocol) next(now mono.Time, pk *packet) bool {
	for p.first != nil {
		c := p.first
		if c.quota > 0 && !c.dead && p.pick(now, c, pk) {
			c.quota--
			return true
		}
		p.unlist()
		if c.dead {
			continue
		}
		p.wake(c)
		if c.quota == 0 {
			p.list(c) // behind those that have not had their turn
		}
	}
	return false
}

// pick says what to send next to one peer: what was lost, then what is new,
// then what only carries an acknowledgement or asks for one.
func (p *protocol) pick(now mono.Time, c *conn, pk *packet) bool {
	snd := &c.snd
	if psn, ok := snd.NextLost(); ok {
		rec := snd.Record(psn)
		pk.peer, pk.req = c.peer, &p.requests.all[rec.Token]
		pk.psn, pk.off, pk.n = psn, rec.Off, rec.Len
		pk.turn = arq.FirstWay // the other may be what lost it
		snd.Resent(now, psn)
		p.Resent++
		if c.run.Second() {
			c.way.Resent(1)
		}
		p.dress(now, c, pk, true)
		return true
	}
	due := c.rcv.Deadline() <= now
	if p.cutNext(now, c, pk, !due) {
		return true
	}
	pk.peer, pk.req, pk.n, pk.turn = c.peer, nil, 0, arq.FirstWay
	switch {
	case c.ask:
		c.ask = false
		p.Asks++
		p.head(now, c, pk, kindAsk, 0)
		if c.run.Second() {
			pk.turn = arq.SecondWay // behind what it asks for
		}
	case c.hello:
		c.hello = false
		p.Hellos++
		p.head(now, c, pk, kindHello, 0)
		pk.n, pk.turn = p.hello, arq.SecondWay
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
	if !c.snd.CanPush(int(n) + HeaderLen) {
		return false
	}
	p.cut(now, c, pk, i, n)
	return true
}

// cut takes the next n bytes off request i.
func (p *protocol) cut(now mono.Time, c *conn, pk *packet, i int32, n uint32) {
	r := &p.requests.all[i]
	pk.peer, pk.req, pk.off, pk.n = c.peer, r, r.cut, n
	pk.turn = p.turn(now, c, r)
	r.cut += n
	last := r.cut == r.total
	pk.psn = c.snd.Push(now, uint32(i), pk.off, n, last)
	soon := c.snd.AckSoon()
	if last {
		c.cur = r.next
		// Somebody waits for the end of what did not fit one datagram.
		soon = soon || r.flags&verbs.Signaled != 0 && (pk.off > 0 || r.op == verbs.OpRDMAWrite)
	}
	if r.op == verbs.OpRDMAWrite {
		p.Chunks++
	} else {
		p.Packets++
	}
	p.dress(now, c, pk, soon)
}

// turn says how the next part of a request goes that is sent for the first time.
func (p *protocol) turn(now mono.Time, c *conn, r *request) arq.Turn {
	long := r.total >= p.long && r.op == verbs.OpRDMAWrite
	if !p.second || !long && c.run.Idle() {
		return arq.FirstWay
	}
	turn := c.run.Next(now, &c.way, &c.snd, c.snd.InFlight() == 0, long)
	if c.run.Large() && c.way.Wanting(now) {
		c.way.Ask(now)
		c.hello = true
	}
	if turn == arq.SecondWay {
		c.way.Sent(1)
		p.Bulk++
	}
	return turn
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
	h := header{kind: k, flags: flags, window: p.census.window, psn: pk.psn, ack: c.rcv.Next(), held: arq.HeldOf(c.rcv.Held(now))}
	if k != kindData {
		h.psn, pk.chunk = c.snd.Next(), false
	}
	h.put(pk.hdr[:])
	pk.len = HeaderLen
	if k != kindHello { // which may well be lost
		c.rcv.Acked(false)
	}
}

// acknowledge writes a packet that tells of gaps too.
func (p *protocol) acknowledge(now mono.Time, c *conn, pk *packet) {
	p.head(now, c, pk, kindAck, 0)
	words := min(c.rcv.SackWords(), arq.MaxSackWords)
	pk.hdr[1] = uint8(words)
	for w := range words {
		binary.BigEndian.PutUint64(pk.hdr[pk.len:], c.rcv.Sack(w))
		pk.len += 8
	}
	c.rcv.Acked(true)
}

// due returns when something is to be done, the keep-alive apart, which never ends.
func (p *protocol) due() mono.Time {
	if p.first != nil || len(p.undated) > 0 {
		return 0
	}
	return p.wakeAt
}

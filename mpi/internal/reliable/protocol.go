package reliable

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/arq"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
	"github.com/xwarp/xwarp/verbs"
)

// Stats counts what an endpoint did.
type Stats struct {
	Packets, Chunks    uint64 // sent for the first time
	Resent             uint64 // of both
	Acks, Asks         uint64 // sent
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
	census   census
	most     int    // length of a message
	part     uint32 // most bytes of a message in one datagram
	chunk    uint32 // and of a Write

	first, last *conn // the line of those that may have something to send
	active      []*conn
	wakeAt      mono.Time // no timer is due before
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
	p.most = cfg.MaxMessage
	p.wakeAt = mono.Never
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
	req   *request // nil: nothing follows the header
	off   uint32
	n     uint32
	psn   serial.U32
	chunk bool
	hdr   [ackLen]byte
	len   int // of the header
}

// post appends a work request to the line of its peer. false means that the
// table is full. What is sent before the next step is dated by that one: reading
// the clock would take a tenth of our own time for a small message.
func (p *protocol) post(peer *Peer, wr *verbs.SendWR) bool {
	i, ok := p.requests.add(wr)
	if !ok {
		return false
	}
	c := p.connOf(peer)
	if c.tail != none {
		p.requests.all[c.tail].next = i
	} else {
		c.head = i
	}
	c.tail = i
	if c.cur == none {
		c.cur = i
	}
	switch {
	case c.dead:
		c.cur = none
		p.complete(c, verbs.WRFlushErr)
	case c.snd.CanPush(1):
		p.list(c)
	default:
		p.wake(c)
	}
	return true
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

// next says what to send next. exact means that now is the time of the clock and
// not that of the last step.
func (p *protocol) next(now mono.Time, pk *packet, exact bool) bool {
	for p.first != nil {
		c := p.first
		if c.quota > 0 && !c.dead {
			if !exact && c.dated {
				c.dated, c.from = false, c.snd.Next()
				p.undated = append(p.undated, c)
			}
			if p.pick(now, c, pk) {
				c.quota--
				return true
			}
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
	pk.peer, pk.req, pk.len, pk.n = c.peer, nil, 0, 0
	snd := &c.snd
	if psn, ok := snd.NextLost(); ok {
		rec := snd.Record(psn)
		r := &p.requests.all[rec.Token]
		pk.req, pk.psn, pk.off, pk.n = r, psn, rec.Off, rec.Len
		snd.Resent(now, psn)
		p.Resent++
		p.dress(now, c, pk, true)
		return true
	}
	due := c.rcv.Deadline() <= now
	if i := c.cur; i != none {
		r := &p.requests.all[i]
		most := p.part
		chunk := r.op == verbs.OpRDMAWrite
		if chunk {
			most = p.chunk
		}
		n := min(r.total-r.cut, most)
		if (!chunk || !due) && snd.CanPush(int(n)+HeaderLen) {
			p.cut(now, c, pk, i, n)
			return true
		}
	}
	switch {
	case c.ask:
		c.ask = false
		p.Asks++
		p.head(now, c, pk, kindAsk, 0)
	case due:
		p.Acks++
		p.acknowledge(now, c, pk)
	default:
		return false
	}
	return true
}

// cut takes the next n bytes off request i, the first in line.
func (p *protocol) cut(now mono.Time, c *conn, pk *packet, i int32, n uint32) {
	r := &p.requests.all[i]
	pk.req, pk.off, pk.n = r, r.cut, n
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
	c.rcv.Acked(false)
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

// deadline returns when step must be called.
func (p *protocol) deadline() mono.Time {
	if p.first != nil || len(p.undated) > 0 {
		return 0
	}
	return p.wakeAt
}

package reliable

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/verbs"
)

// arrived takes in the packet of n bytes in a receive buffer, which is the
// protocol's from then on.
func (p *protocol) arrived(now mono.Time, peer *Peer, slot int32, n int) {
	b := p.slot(slot, n)
	var h header
	if !h.parse(b) {
		p.Malformed++
		p.free = append(p.free, slot)
		return
	}
	c := p.connOf(now, peer)
	if c.Closed() {
		p.Foreign++
		p.free = append(p.free, slot)
		return
	}
	p.acked(now, c, &h, b[HeaderLen:])
	if h.kind == kindData {
		p.data(now, c, &h, slot, n)
		return
	}
	switch h.kind {
	case kindAsk:
		p.assocs.ScheduleAck(now, &c.Assoc, true, false)
	case kindHello:
		c.answer = true
		p.assocs.Ready(&c.Assoc)
	case kindHelloAck:
		c.bulk.Answered()
	}
	p.free = append(p.free, slot)
}

// acked takes in what a header says about what was sent.
func (p *protocol) acked(now mono.Time, c *conn, h *header, words []byte) {
	p.assocs.Heard(now, &c.Assoc)
	from, to := p.assocs.OnAck(&c.Assoc, h.ack, h.window, h.held, words[:8*h.sack])
	for ; from != to; from++ {
		if c.Snd.Unit(from).Last {
			p.complete(c, verbs.Success)
		}
	}
	if c.cur != none || c.Snd.HasLost() {
		p.assocs.Ready(&c.Assoc)
	}
}

// data takes in a part of a message.
func (p *protocol) data(now mono.Time, c *conn, h *header, slot int32, n int) {
	rcv := &c.Rcv
	p.assocs.Arrived(now, &c.Assoc)
	early := h.psn != rcv.Next()
	urgent := early
	switch {
	case !rcv.Fresh(h.psn):
		p.Duplicates++
		p.free = append(p.free, slot)
		urgent = true
		p.doubt(now, c)
	case early && p.spare < len(p.rx)/p.stride/2:
		// What waits for a gap to be filled must leave room for what fills it.
		p.Dropped++
		p.free = append(p.free, slot)
	case early:
		p.Received++
		p.hold(c, h.psn, waiting{slot, int32(n)})
		rcv.Mark(h.psn)
	default:
		p.Received++
		next := rcv.Mark(h.psn)
		p.deliver(c, h.flags, slot, n)
		p.release(c, h.psn+1, next)
	}
	p.assocs.ScheduleAck(now, &c.Assoc, urgent, h.flags&flagSoon != 0)
}

// placed takes in that chunk psn was placed.
func (p *protocol) placed(now mono.Time, peer *Peer, psn serial.U32) {
	c := p.connOf(now, peer)
	if c.Closed() {
		p.Foreign++
		return
	}
	p.assocs.Heard(now, &c.Assoc)
	p.assocs.Arrived(now, &c.Assoc)
	rcv := &c.Rcv
	fresh := rcv.Fresh(psn)
	if fresh {
		p.Received++
		from := rcv.Next()
		p.release(c, from, rcv.Mark(psn))
	} else {
		p.Duplicates++
		p.doubt(now, c)
	}
	p.assocs.ScheduleAck(now, &c.Assoc, !fresh, false)
}

// hold keeps a packet until its turn.
func (p *protocol) hold(c *conn, psn serial.U32, w waiting) {
	if c.held == nil {
		if n := len(p.rings); n > 0 {
			c.held, p.rings = p.rings[n-1], p.rings[:n-1]
		} else {
			c.held = make([]waiting, p.assocs.Config().Window)
			for i := range c.held {
				c.held[i].slot = none
			}
		}
	}
	c.held[uint32(psn)&uint32(len(c.held)-1)] = w
}

// release delivers the packets that were held, from the number from up to
// next, not including it.
func (p *protocol) release(c *conn, from, next serial.U32) {
	if c.held == nil {
		return
	}
	for ; from != next; from++ {
		w := &c.held[uint32(from)&uint32(len(c.held)-1)]
		if w.slot != none {
			slot := w.slot
			w.slot = none
			p.deliver(c, p.slot(slot, 1)[0], slot, int(w.len))
		}
	}
	if c.Rcv.InOrder() {
		p.rings = append(p.rings, c.held)
		c.held = nil
	}
}

// deliver takes in the next part of a message, in order. A message of one part
// stays where it is; others are put together.
func (p *protocol) deliver(c *conn, flags uint8, slot int32, n int) {
	if flags&(flagFirst|flagLast) == flagFirst|flagLast && c.part == none {
		p.received(c, uint64(slot), n-HeaderLen)
		return
	}
	p.join(c, flags, p.slot(slot, n)[HeaderLen:])
	p.free = append(p.free, slot)
}

// join appends a part to the message that is being put together.
func (p *protocol) join(c *conn, flags uint8, b []byte) {
	if flags&flagFirst != 0 {
		if c.part == none {
			c.part = p.parts.take(p.most)
		}
		c.size = 0
	}
	if c.part == none {
		p.Malformed++ // it has no beginning
		return
	}
	if c.size+len(b) > p.most {
		p.Malformed++
		p.parts.give(c.part)
		c.part = none
		return
	}
	c.size += copy(p.parts.all[c.part][c.size:], b)
	if flags&flagLast != 0 {
		p.received(c, partBase|uint64(c.part), c.size)
		c.part = none
	}
}

// received hands a message to the user.
func (p *protocol) received(c *conn, where uint64, n int) {
	*p.done.next() = verbs.WC{WRID: where, Opcode: verbs.OpRecv, ByteLen: uint32(n), SrcQP: c.peer.qpn, Src: c.peer.ah, SrcAddr: c.peer.remote}
}

// partBase marks messages that were put together: the rest of the number is
// that of the buffer. Other messages lie in the receive buffer of that number.
const partBase = 1 << 32

// message returns the bytes of a received message.
func (p *protocol) message(wc *verbs.WC) []byte {
	n := int(wc.ByteLen)
	if wc.WRID >= partBase {
		return p.parts.all[wc.WRID-partBase][:n]
	}
	return p.slot(int32(wc.WRID), HeaderLen+n)[HeaderLen:]
}

// parts are buffers that messages are put together in: as many as there were at
// a time.
type parts struct {
	all  [][]byte
	idle []int32
}

func (s *parts) take(size int) int32 {
	if n := len(s.idle); n > 0 {
		i := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return i
	}
	s.all = append(s.all, make([]byte, size))
	return int32(len(s.all) - 1)
}

func (s *parts) give(i int32) { s.idle = append(s.idle, i) }

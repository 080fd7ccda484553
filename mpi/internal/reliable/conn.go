package reliable

import (
	"github.com/xwarp/xwarp/internal/arq"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
	"github.com/xwarp/xwarp/verbs"
)

// Peer is an endpoint at the other end of the network. Until something is sent
// to it or comes from it, it is an address and no more.
type Peer struct {
	UserData uint64 // the user's: nothing here looks at it

	ah     *verbs.AH
	qpn    uint32
	epoch  uint32 // of the endpoint, with which all that comes from it must agree
	remote verbs.Remote
	conn   *conn // nil until it is used
}

// Lost reports whether the peer was silent for too long. Nothing is sent to it
// or taken from it any more.
func (p *Peer) Lost() bool { return p.conn != nil && p.conn.dead }

// conn is what is known of a peer that is, or was, in use.
type conn struct {
	peer *Peer
	snd  arq.Sender
	rcv  arq.Receiver

	// Sending. The line of requests is chained through request.next.
	head  int32 // oldest that is not acknowledged
	cur   int32 // next to be cut
	tail  int32
	ask   bool // an Ask is to follow what was sent
	dated bool // all that was sent has its true time
	from  serial.U32

	// The second way, for large data.
	run    arq.Run
	way    arq.Way
	hello  bool // it is to be asked for
	answer bool // the peer has asked, and gets an answer

	// Receiving.
	held  []waiting // ring by PSN: packets that came before their turn; nil while all is in order
	part  int32     // buffer that a message is being put together in
	size  int       // bytes of it
	round uint32    // census period in which it last sent something

	ready     *conn // next in the line of those that may have something to send
	listed    bool  // it is in that line
	active    bool  // it has a timer
	quota     int
	dead      bool
	heardAt   mono.Time // when anything came from it
	unheard   uint8     // time-outs and Asks since then that it should have answered
	quietFrom mono.Time // when the first of those was
}

// waiting is a packet that waits for its turn: the receive buffer that it lies
// in, and its length. A free place and a chunk have no buffer.
type waiting struct{ slot, len int32 }

// firstPSN is the number of the first packet to each peer. It is not 0, so
// that a PSN that nobody has set is noticed.
const firstPSN = 1

func (p *protocol) connOf(now mono.Time, peer *Peer) *conn {
	if peer.conn == nil {
		c := &conn{peer: peer, head: none, cur: none, tail: none, part: none, dated: true, heardAt: now}
		p.used = append(p.used, c)
		p.keepAt = min(p.keepAt, now.Add(p.shared.Config().KeepAlive))
		c.snd.Init(p.shared, firstPSN)
		c.snd.SetSegment(int(p.room) + chunkOverhead)
		c.rcv.Init(p.shared, firstPSN)
		peer.conn = c
	}
	return peer.conn
}

// chunkOverhead is what the layers below put in front of a chunk, in bytes:
// about that; it only scales the steps of the congestion window.
const chunkOverhead = 64

// deadline returns when a timer of c is due.
func (c *conn) deadline() mono.Time { return min(c.snd.Deadline(), c.rcv.Deadline()) }

// list puts c in the line of those that may have something to send.
func (p *protocol) list(c *conn) {
	if c.listed || c.dead {
		return
	}
	c.listed, c.quota, c.ready = true, quotaMost, nil
	if p.last != nil {
		p.last.ready = c
	} else {
		p.first = c
	}
	p.last = c
}

// unlist takes the first of the line out.
func (p *protocol) unlist() {
	c := p.first
	p.first = c.ready
	if p.first == nil {
		p.last = nil
	}
	c.listed, c.ready = false, nil
}

// wake makes sure that the timers of c are looked at when they are due.
func (p *protocol) wake(c *conn) {
	at := c.deadline()
	if at == mono.Never {
		return
	}
	if !c.active {
		c.active = true
		p.active = append(p.active, c)
	}
	p.wakeAt = min(p.wakeAt, at)
}

// timers fires what is due at now.
func (p *protocol) timers(now mono.Time) {
	p.wakeAt = mono.Never
	kept := p.active[:0]
	for _, c := range p.active {
		if c.deadline() <= now {
			p.timer(now, c)
		}
		if c.deadline() == mono.Never {
			c.active = false
			c.snd.Rest()
			c.rcv.Rest()
			continue
		}
		kept = append(kept, c)
		p.wakeAt = min(p.wakeAt, c.deadline())
	}
	clear(p.active[len(kept):])
	p.active = kept
}

// timer does what is due for one peer.
func (p *protocol) timer(now mono.Time, c *conn) {
	if c.snd.Deadline() <= now {
		if c.snd.OnTimer(now); c.snd.TimeOuts() > 0 && p.silent(now, c) {
			return
		}
	}
	p.list(c)
}

// lostTries is how many answers must be missing for a peer to be lost.
const lostTries = 3

// silent notes that a peer owes one more answer, and reports whether it is lost
// for that. Silence counts from the first of them, not from the last thing heard:
// a host that did not look for long does not take its own absence for the peer's.
func (p *protocol) silent(now mono.Time, c *conn) bool {
	if c.unheard == 0 {
		c.quietFrom = now
	}
	if c.unheard < lostTries {
		c.unheard++
	} else if now.Sub(c.quietFrom) > p.shared.Config().PeerLost {
		p.fail(c)
		return true
	}
	return false
}

// keepAlive asks the peers that were silent for long whether they are there, so
// that one who only waits for them hears of their loss too.
func (p *protocol) keepAlive(now mono.Time) {
	period := p.shared.Config().KeepAlive
	p.keepAt = mono.Never
	for _, c := range p.used {
		if c.dead {
			continue
		}
		at := c.heardAt.Add(period)
		if at <= now {
			at = now.Add(period)
			if c.snd.InFlight() == 0 { // else time-outs ask
				if p.silent(now, c) {
					continue
				}
				c.ask = true
				p.list(c)
			}
		}
		p.keepAt = min(p.keepAt, at)
	}
}

// fail ends everything that is under way with a peer, which is lost.
func (p *protocol) fail(c *conn) {
	c.dead = true
	p.lost = append(p.lost, c.peer)
	status := verbs.RetryExcErr
	for c.head != none {
		p.complete(c, status)
		status = verbs.WRFlushErr
	}
	c.cur = none
	for i := range c.held {
		if w := &c.held[i]; w.slot != none {
			p.free = append(p.free, w.slot)
			w.slot = none
		}
	}
	if c.held != nil {
		p.rings = append(p.rings, c.held)
		c.held = nil
	}
	if c.part != none {
		p.parts.give(c.part)
		c.part = none
	}
	c.snd.Init(p.shared, firstPSN) // its timers end
	c.rcv.Init(p.shared, firstPSN)
}

// complete ends the oldest request of c.
func (p *protocol) complete(c *conn, status verbs.Status) {
	i := c.head
	r := &p.requests.all[i]
	if c.head = r.next; c.head == none {
		c.tail = none
	}
	p.until = max(p.until, r.posted)
	if r.flags&verbs.Signaled != 0 || status != verbs.Success {
		*p.done.next() = verbs.WC{WRID: r.wrid, Status: status, Opcode: r.op, ByteLen: r.total, Src: c.peer.ah}
	}
	p.requests.give(i)
}

package reliable

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/internal/proto/llp"
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
func (p *Peer) Lost() bool { return p.conn != nil && p.conn.Closed() }

// conn is what is known of a peer that is, or was, in use.
type conn struct {
	llp.Assoc
	peer *Peer

	// Sending. The line of requests is chained through request.next.
	head int32 // oldest that is not acknowledged
	cur  int32 // next to be cut
	tail int32
	ask  bool // an Ask is to follow what was sent
	// since when what is sent again and again finds no acknowledgement; 0: it does
	stuckAt mono.Time
	doubtAt mono.Time // from when on the way to the peer may be doubted again

	// The second path, for large data.
	burst  arq.Burst
	bulk   arq.BulkPath
	hello  bool // it is to be asked for
	answer bool // the peer has asked, and gets an answer

	// Receiving.
	held []waiting // ring by PSN: packets that came before their turn; nil while all is in order
	part int32     // buffer that a message is being put together in
	size int       // bytes of it
}

// waiting is a packet that waits for its turn: the receive buffer that it lies
// in, and its length. A free place and a chunk have no buffer.
type waiting struct{ slot, len int32 }

// firstPSN is the number of the first packet to each peer. It is not 0, so
// that a PSN that was not set is noticed.
const firstPSN = 1

func (p *protocol) connOf(now mono.Time, peer *Peer) *conn {
	if peer.conn == nil {
		c := &conn{peer: peer, head: none, cur: none, tail: none, part: none}
		p.assocs.Add(now, &c.Assoc, firstPSN, firstPSN, now.Add(p.assocs.Config().KeepAlive))
		if int(c.Index) == len(p.conns) {
			p.conns = append(p.conns, nil)
		}
		p.conns[c.Index] = c
		c.Snd.SetSegment(int(p.room) + chunkOverhead)
		peer.conn = c
	}
	return peer.conn
}

// chunkOverhead is what the layers below put in front of a chunk, in bytes:
// about that; it only scales the steps of the congestion window.
const chunkOverhead = 64

// timers fires what is due at now.
func (p *protocol) timers(now mono.Time) {
	for i, ok := p.assocs.Expire(now); ok; i, ok = p.assocs.Expire(now) {
		c := p.conns[i]
		p.timer(now, c)
		p.assocs.Rearm(now, &c.Assoc, c.cur == none)
	}
}

// timer does what is due for one peer. What was sent and an Ask are what it must answer:
// an end that only waits for it learns of its loss by the latter.
func (p *protocol) timer(now mono.Time, c *conn) {
	silent := false
	if c.Snd.Deadline() <= now {
		c.Snd.OnTimer(now)
		tries := c.Snd.TimeOuts()
		silent = tries > 0
		if tries >= doubtTries {
			p.doubt(now, c)
		}
	}
	if p.assocs.KeepAlive(now, &c.Assoc) && c.Snd.InFlight() == 0 {
		c.ask, silent = true, true
	}
	if silent && p.assocs.Silent(now, &c.Assoc) || p.stuck(now, c) {
		p.fail(c)
		return
	}
	p.assocs.Ready(&c.Assoc)
}

// After so many time-outs in a row, or when the peer sends again what it should have heard an
// acknowledgement of, its Ethernet address may be wrong.
const (
	doubtTries = 2
	doubtEvery = 200 * mono.Millisecond
)

// doubt has the carrier ask for the peer's Ethernet address again.
func (p *protocol) doubt(now mono.Time, c *conn) {
	if now >= c.doubtAt && c.peer.ah != nil { // it has none without a network
		c.doubtAt = now.Add(doubtEvery)
		c.peer.ah.Doubt()
	}
}

// stuckTries is how often the same must have been sent in vain before the path may be
// suspected: of datagrams that two thirds of the time get lost, one way or the other, hardly
// as many do in a row.
const stuckTries = 8

// stuck reports whether the peer is as good as lost though it may be heard of: the path
// swallows what is sent to it, because it is longer than what the path carries now. What was
// cut cannot be cut again.
func (p *protocol) stuck(now mono.Time, c *conn) bool {
	switch tries := c.Snd.TimeOuts(); {
	case tries == 0:
		c.stuckAt = 0
	case c.stuckAt == 0:
		c.stuckAt = now
	default:
		return tries >= stuckTries && now.Sub(c.stuckAt) > p.assocs.Config().PeerLost
	}
	return false
}

// fail ends everything that is under way with a peer, which is lost.
func (p *protocol) fail(c *conn) {
	p.assocs.Remove(&c.Assoc)
	p.conns[c.Index] = nil
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
	c.Snd, c.Rcv = arq.Sender{}, arq.Receiver{} // the peer is remembered, and no more
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

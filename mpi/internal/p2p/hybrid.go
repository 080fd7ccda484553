package p2p

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/verbs"
)

// Hybrid begins with datagrams, which need no connection, and promotes those
// peers to a connection that much is sent to. Each direction switches by itself:
// the sender stops, sends a mark behind all that went out in datagrams, and goes
// on over the connection when the mark is acknowledged. All that came before it
// was delivered then, and since both queue pairs complete to one queue, it comes
// out of it first.

// Defaults of Config.
const (
	promoteMessages = config.DefaultPromote
	promoteBytes    = 4 << 20
	connections     = 64
)

func (c *Config) fillHybrid() error {
	if c.PromoteMessages == 0 {
		c.PromoteMessages = promoteMessages
	}
	if c.PromoteBytes == 0 {
		c.PromoteBytes = promoteBytes
	}
	if c.Connections == 0 {
		c.Connections = connections
	}
	if c.PromoteMessages < 1 || c.PromoteBytes < 1 || c.Connections < 1 {
		return fmt.Errorf("p2p: promotion after %d messages or %d bytes, %d connections: want at least one of each", c.PromoteMessages, c.PromoteBytes, c.Connections)
	}
	return nil
}

// count notes what is sent to a peer in datagrams, and promotes it when that is
// enough.
func (ep *Endpoint) count(p *peer, wr *verbs.SendWR) {
	p.messages++
	if wr.Flags&verbs.Inline == 0 {
		p.bytes += int(wr.SGL[0].Length)
	}
	if p.messages < ep.cfg.PromoteMessages && p.bytes < ep.cfg.PromoteBytes {
		return
	}
	p.watched = false
	if ep.net.conn.links < ep.cfg.Connections && !ep.failures.closing {
		ep.net.conn.reach(p, int32(wr.WRID>>wrPeerShift&wrPeerMask))
	}
}

// beginSwitch lets the mark go out, before all that waits for room.
func (ep *Endpoint) beginSwitch(p *peer) {
	p.watched = false
	r := ep.out.notice(p.link.rank, header{kind: kindSwitch}, nil)
	if !ep.out.advance(r) {
		p.pending.pushFront(r)
		ep.out.goOn(p)
	}
}

// switched goes on over the connection.
func (ep *Endpoint) switched(p *peer) {
	if p.link.state == up {
		p.qp, p.ah = p.link.qp, nil
		ep.Stats.Promoted++
		ep.out.goOn(p)
	}
}

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
func (c *connector) count(p *peer, wr *verbs.SendWR) {
	cfg := &c.ep.cfg
	p.messages++
	if wr.Flags&verbs.Inline == 0 {
		p.bytes += int(wr.SGL[0].Length)
	}
	if p.messages < cfg.PromoteMessages && p.bytes < cfg.PromoteBytes {
		return
	}
	p.watched = false
	if c.links < cfg.Connections && !c.ep.failures.closing {
		c.reach(p)
	}
}

// beginSwitch lets the mark go out, before all that waits for room.
func (c *connector) beginSwitch(p *peer) {
	out := &c.ep.out
	p.watched = false
	r := out.notice(p.rank, header{kind: kindSwitch}, nil)
	if !out.advance(r) {
		p.pending.pushFront(r)
		out.goOn(p)
	}
}

// switched goes on over the connection.
func (c *connector) switched(p *peer) {
	if p.link.state == up {
		p.qp, p.ah = p.link.qp, nil
		c.ep.Stats.Promoted++
		c.ep.out.goOn(p)
	}
}

package verbs

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// datagrams is what a context knows of its datagrams: the queue pairs of types RD and UD,
// the peers, and what is to be done for them in the next step.
type datagrams struct {
	ctx   *Context
	ep    *llp.Endpoint // nil without a carrier of datagrams
	rd    *rdQP         // the reliable datagram queue pair, if any
	uds   []*udQP       // unreliable ones, by number minus udBase; nil is free
	ahs   []*AH         // by llp.Peer.Index
	loose []*AH         // that only UD can use, or made before there was a reliable queue pair

	in          inbound
	transmitted bool // a datagram went out since the last step: the rest waits for the next
	moved       bool // frames came in since the carrier was flushed
	idle        int  // steps since then
}

// maxSeg is DeviceAttr.MaxSeg.
func (c *datagrams) maxSeg() int {
	return c.ep.MaxPayload() - dgram.HeaderLen - dgram.LengthLen - ddp.UntaggedLen
}

// handle returns the address handle of a peer, which is made when the peer is
// first met, be it by us or by its first datagram.
func (c *datagrams) handle(pd *PD, peer *llp.Peer) *AH {
	if int(peer.Index) < len(c.ahs) && c.ahs[peer.Index] != nil {
		return c.ahs[peer.Index]
	}
	ah := &AH{pd: pd, remote: peer.Remote, path: peer.Path(), peer: peer}
	ah.conn.init()
	c.setHandle(ah)
	return ah
}

// setHandle makes ah the address handle of its peer.
func (c *datagrams) setHandle(ah *AH) {
	for len(c.ahs) <= int(ah.peer.Index) {
		c.ahs = append(c.ahs, nil)
	}
	c.ahs[ah.peer.Index] = ah
}

// associate gives the handles of its domain that were made before there was a
// reliable queue pair their associations.
func (c *datagrams) associate() {
	kept := c.loose[:0]
	for _, ah := range c.loose {
		if ah.pd != c.rd.pd || ah.Remote().Addr().IsMulticast() {
			kept = append(kept, ah)
			continue
		}
		ah.peer = c.ep.Associate(ah.remote, ah.path)
		c.setHandle(ah)
	}
	c.loose = kept
}

// pollDatagrams is Poll for RD and UD.
func (c *datagrams) pollDatagrams(now mono.Time) int {
	work := 0
	if c.ep.Deferred() || c.in.read {
		work = c.deferredWork(now)
	}
	work += c.receive(now)
	sent := 0
	if c.ep.Due(now) {
		sent = c.transmit(now)
	}
	for _, q := range c.uds {
		if q != nil && q.busy(now) {
			sent += q.transmit(now)
		}
	}
	c.flush(work)
	c.transmitted = false
	return work + sent
}

// deferredWork does what the last step left: it dates what was sent since, gives the
// frames of what was received back, applies the acknowledgements that rode on
// data, and returns how many.
func (c *datagrams) deferredWork(now mono.Time) (applied int) {
	c.ep.Date(now)
	if c.in.read {
		c.in.read = false
		c.ep.Release()
	}
	for a := c.ep.NextNoted(); a != nil; a = c.ep.NextNoted() {
		c.rd.applyAck(c.ahs[a.Index])
		applied++
	}
	return applied
}

// transmit fires timers, sends what waits, and acknowledges what finds no data
// to ride on. It returns how many datagrams that took. Timers count as one:
// they send Hellos, and end associations.
func (c *datagrams) transmit(now mono.Time) (sent int) {
	if c.ep.TimersDue(now) {
		c.timers(now)
		sent = 1
	}
	return sent + c.transmitPeers(now)
}

// flushEvery is after how many idle steps the carrier is flushed though there
// is no reason: something may be stuck in it.
const flushEvery = 16

// flush flushes the carrier at once when something is to go out. Taking sent
// frames back and making room for more is not urgent: it waits for an idle
// step, or the second busy one in a row.
func (c *datagrams) flush(work int) {
	c.idle++
	if c.ep.Unflushed() || c.moved || c.idle >= flushEvery {
		c.ep.Flush()
		c.idle, c.moved = 0, false
		return
	}
	c.moved = work > 0
}

// terminateTries is after how many time-outs a peer that was refused is told that
// the association is over, and no more why. When each end has refused the
// other, neither may ever get as far as the other's Terminate.
const terminateTries = 2

// timers fires what is due at now.
func (c *datagrams) timers(now mono.Time) {
	for p := c.ep.Expire(now); p != nil; p = c.ep.Expire(now) {
		idle := true
		if ah := c.handleOf(p); ah != nil {
			idle = c.timer(now, ah)
		}
		c.ep.Rearm(p, idle)
	}
	c.news()
}

// timer does what is due at now for one peer, and reports whether it is idle.
func (c *datagrams) timer(now mono.Time, ah *AH) (idle bool) {
	p := ah.peer
	p.Snd.OnTimer(now)
	if ah.conn.refused && p.Snd.TimeOuts() >= terminateTries {
		c.rd.fail(ah, WRFlushErr)
		return true
	}
	if p.Rcv.Deadline() <= now {
		c.ep.Ready(&p.Assoc)
	}
	c.makeReady(ah)
	if idle = ah.conn.idle(); idle {
		c.rd.rest(ah)
	}
	return idle
}

// handleOf returns the address handle of a peer, or nil while there is none:
// the peer has said Hello, and nothing was sent yet.
func (c *datagrams) handleOf(p *llp.Peer) *AH {
	if int(p.Index) < len(c.ahs) {
		if ah := c.ahs[p.Index]; ah != nil && ah.peer == p {
			return ah
		}
	}
	return nil
}

// news takes notice of what became of associations.
func (c *datagrams) news() {
	for i := 0; i < len(c.ep.News); i++ {
		n := c.ep.News[i]
		ah := c.handleOf(n.Peer)
		if ah == nil {
			continue // it was never used
		}
		if n.Kind == llp.PeerOpened {
			c.makeReady(ah)
			continue
		}
		if ah.conn.refused { // it has heard that
			c.rd.fail(ah, WRFlushErr)
			continue
		}
		c.ctx.raise(AsyncEvent{Type: peerEvents[n.Kind], QP: c.rd.QP, AH: ah})
		c.rd.fail(ah, RetryExcErr)
	}
	c.ep.News = c.ep.News[:0]
}

var peerEvents = [...]EventType{llp.PeerLost: EventPeerLost, llp.PeerRestarted: EventPeerRestarted}

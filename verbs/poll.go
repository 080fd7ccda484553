package verbs

import (
	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/internal/mono"
)

// Poll is the engine's call: it takes in what has arrived, fires timers, and
// sends what may be sent. The way of a message that arrives comes first; what
// it leaves to do is done while waiting for the next. One batch of datagrams,
// as many as progress.Budget, is taken in at a time.
//
// Whatever may have led to a completion counts as work: the caller parks when
// there was none.
func (c *Context) Poll(now Time, _ int) int {
	work := 0
	if f := c.failing.Load(); f != nil {
		c.obey(f)
		work = 1
	}
	if c.ep != nil {
		work += c.pollDatagrams(now)
	}
	if c.cfg.Streams != nil {
		work += c.pollStreams(now)
	}
	return work
}

// pollDatagrams is Poll for RD and UD.
func (c *Context) pollDatagrams(now mono.Time) int {
	applied := len(c.acks)
	if c.undated != nil || c.in.read || applied > 0 {
		c.chores(now)
	}
	work := c.receive(now)
	sent := 0
	if len(c.ready)|len(c.due) != 0 || now >= c.deadline {
		sent = c.transmit(now)
	}
	for _, q := range c.uds {
		if q != nil && q.ud.busy(now) {
			sent += q.pumpUD(now)
		}
	}
	c.flush(work)
	c.kicked = false
	return applied + work + sent
}

// chores does what the last step left: it dates what was sent since, gives the
// frames of what was received back, applies the acknowledgements that rode on
// data, and sees to it that this data is acknowledged, unless an answer has done
// that meanwhile.
func (c *Context) chores(now mono.Time) {
	c.date(now)
	if c.in.read {
		c.in.read = false
		c.ep.Release()
	}
	for _, ah := range c.acks {
		k := &ah.conn
		k.acked = false
		if !k.dead {
			c.rd.onAck(k.ackAt, ah, k.ack, k.window, k.held)
			c.rd.afterAck(now, ah)
			c.owe(k.ackAt, ah, false)
		}
	}
	c.acks = c.acks[:0]
}

// date gives what kick sent its sending time.
func (c *Context) date(now mono.Time) {
	if ah := c.undated; ah != nil {
		c.undated = nil
		if !ah.conn.dead {
			ah.peer.Snd.Date(now, c.undatedFrom)
			c.wakePeer(ah.peer, ah.peer.Snd.Deadline())
		}
	}
}

// transmit fires timers, sends what waits, and acknowledges what found no data
// to ride on. It returns how many datagrams that took. Timers count as one:
// they send Hellos, and end associations.
func (c *Context) transmit(now mono.Time) (sent int) {
	if now >= c.deadline {
		c.timers(now)
		sent = 1
	}
	sent += c.pump(now)
	return sent + c.acknowledge(now)
}

// flushEvery is after how many idle steps the carrier is flushed though there
// is no reason: something may be stuck in it.
const flushEvery = 16

// flush flushes the carrier at once when something is to go out. Taking sent
// frames back and making room for more is not urgent: it waits for an idle
// step, or the second busy one in a row.
func (c *Context) flush(work int) {
	c.idle++
	if c.ep.Unflushed() || c.moved || c.idle >= flushEvery {
		c.ep.Flush()
		c.idle, c.moved = 0, false
		return
	}
	c.moved = work > 0
}

// Deadline is when Poll must be called though nothing has arrived.
func (c *Context) Deadline() Time {
	if len(c.ready)|len(c.due)|len(c.acks) != 0 || c.undated != nil || c.in.read {
		return 0 // waits for the carrier to take more, or is left for the next step
	}
	at := min(c.deadline, c.until, c.streamDeadline())
	if c.in.stalled() {
		at = min(at, c.in.since.Add(recvPatience))
	}
	for _, q := range c.uds {
		if q != nil {
			at = min(at, q.ud.deadline())
		}
	}
	if c.rd != nil {
		at = min(at, c.rd.records.deadline)
	}
	return at
}

// wake makes sure that Poll looks at the timers no later than at.
func (c *Context) wake(at mono.Time) { c.deadline = min(c.deadline, at) }

// wakePeer makes sure that Poll looks at a peer no later than at.
func (c *Context) wakePeer(p *llp.Peer, at mono.Time) {
	if at != mono.Never {
		c.ep.Wake(p, at)
		c.deadline = min(c.deadline, at)
	}
}

// terminateTries is after how many time-outs a peer that was refused hears that
// the association is over, and no more why. When each end has refused the
// other, neither may ever get as far as the other's Terminate.
const terminateTries = 2

// timers fires what is due at now.
func (c *Context) timers(now mono.Time) {
	for p := c.ep.Expire(now); p != nil; p = c.ep.Expire(now) {
		idle := true
		if ah := c.handleOf(p); ah != nil {
			idle = c.timer(now, ah)
		}
		c.ep.Rearm(p, idle)
	}
	c.news()
	c.deadline = c.ep.Deadline()
}

// timer does what is due at now for one peer, and reports whether it is idle.
func (c *Context) timer(now mono.Time, ah *AH) (idle bool) {
	p := ah.peer
	p.Snd.OnTimer(now)
	if ah.conn.refused && p.Snd.TimeOuts() >= terminateTries {
		c.rd.fail(ah, WRFlushErr)
		return true
	}
	if p.Rcv.Deadline() <= now {
		c.ackNow(ah)
	}
	c.makeReady(ah)
	if idle = ah.conn.idle(); idle {
		c.rd.rest(ah)
	}
	return idle
}

// handleOf returns the address handle of a peer, or nil while there is none:
// the peer has said Hello, and nobody has sent anything yet.
func (c *Context) handleOf(p *llp.Peer) *AH {
	if int(p.Index) < len(c.ahs) {
		if ah := c.ahs[p.Index]; ah != nil && ah.peer == p {
			return ah
		}
	}
	return nil
}

// news takes notice of what became of associations.
func (c *Context) news() {
	for i := 0; i < len(c.ep.News); i++ {
		n := c.ep.News[i]
		ah := c.handleOf(n.Peer)
		if ah == nil || ah.conn.dead {
			continue // nobody has used it
		}
		if n.Kind == llp.PeerOpened {
			c.makeReady(ah)
			continue
		}
		if ah.conn.refused { // it has heard that
			c.rd.fail(ah, WRFlushErr)
			continue
		}
		c.raise(AsyncEvent{Type: peerEvents[n.Kind], QP: c.rd, AH: ah})
		c.rd.fail(ah, RetryExcErr)
	}
	c.ep.News = c.ep.News[:0]
	c.wake(c.ep.Deadline())
}

var peerEvents = [...]EventType{llp.PeerLost: EventPeerLost, llp.PeerRestarted: EventPeerRestarted}

// ackNow puts a peer in the line of those that are acknowledged in this step.
func (c *Context) ackNow(ah *AH) {
	if !ah.conn.due {
		ah.conn.due = true
		c.due = append(c.due, ah)
	}
}

// acknowledge sends the acknowledgements that are due and found no data to
// ride on, and returns how many. Those that find no room stay in line.
func (c *Context) acknowledge(now mono.Time) (sent int) {
	kept := c.due[:0]
	for _, ah := range c.due {
		ah.conn.due = false
		if ah.conn.dead || ah.peer.Rcv.Deadline() > now {
			continue // an acknowledgement rode on data
		}
		if !c.ep.Ack(now, ah.peer, c.rd.creditCode()) {
			ah.conn.due = true
			kept = append(kept, ah)
			continue
		}
		sent++
	}
	c.due = kept
	return sent
}

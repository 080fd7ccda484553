package p2p

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/verbs"
)

// A work request id is kind (8 bits), peer (24) and a number (32).
const (
	wrPeerShift = 32
	wrPeerMask  = 1<<24 - 1
	wrKindShift = 56

	wrNone     = uint64(iota) << wrKindShift // inline: only failures are told
	wrRecv                                   // number: receive buffer
	wrBuffer                                 // number: send buffer
	wrRequest                                // number: request
	wrRead                                   // number: request
	wrLink                                   // number: request; over a connection beside datagrams
	wrPiece                                  // number: send buffer; likewise
	wrWord                                   // inline, likewise: nothing is told but failures
	wrWordIn                                 // number: receive buffer of network.words
	wrAtomic                                 // number: send buffer
	wrLinkRead                               // number: request; over a connection beside datagrams
)

// poller takes in what transports have received and completed, in the steps of the engine.
// It is a progress.Source.
type poller struct {
	ep      *Endpoint
	wcs     [progress.Budget]verbs.WC
	hook    ProgressHook
	polling bool      // inside Poll: the step that is under way lets things go out
	wakeAt  mono.Time // when Drain wants to look again
}

// Poll takes in what verbs has completed, posts what had no room before, and
// looks at the clock. It implements progress.Source.
func (pl *poller) Poll(now mono.Time, budget int) int {
	ep := pl.ep
	ep.net.posts = 0
	var n int
	if ep.net.rel != nil {
		n = pl.pollUD(now)
	} else {
		n = pl.pollQueue(budget)
	}
	if len(ep.lanes.late) > 0 {
		n += ep.lanes.goOn()
	}
	if c := ep.net.conn; c != nil && c.news() && ep.net.cq.Len() == 0 { // what has arrived comes before the end of a connection
		n += c.poll(now)
	}
	for e, ok := ep.net.ctx.GetAsyncEvent(); ok; e, ok = ep.net.ctx.GetAsyncEvent() {
		n++
		ep.failures.happened(&e)
	}
	if ep.near.channels != nil {
		n += pl.pollChannels(budget)
	}
	if ep.out.stuck.head != nil {
		n += ep.out.advanceStuck()
	}
	if now >= ep.failures.abortAt {
		n++ // it may end what the caller waits for
		ep.failures.askLauncher(now)
	}
	n += pl.advanceHook()
	if ep.net.batch.to != nil { // it had no room, or the step was not the driver's
		ep.net.flush()
	}
	return n
}

// advanceHook lets the hook go on.
func (pl *poller) advanceHook() int {
	if pl.hook == nil {
		return 0
	}
	pl.polling = true
	n := pl.hook.Advance()
	pl.polling = false
	return n
}

// pollQueue takes in what verbs has completed.
func (pl *poller) pollQueue(budget int) int {
	n := pl.ep.net.cq.Poll(pl.wcs[:min(budget, len(pl.wcs))])
	if len(pl.ep.net.unposted) > 0 {
		pl.ep.net.repostAll() // before what is sent now
	}
	for i := range pl.wcs[:n] {
		wc := &pl.wcs[i]
		if wc.WRID>>wrKindShift == wrRecv>>wrKindShift {
			pl.received(wc)
		} else {
			pl.sent(wc)
		}
	}
	return n
}

// pollChannels takes in what neighbours have put, up to budget messages, and goes
// on with what is pulled.
func (pl *poller) pollChannels(budget int) int {
	ep := pl.ep
	ep.near.flush()
	n := 0
	for n < budget {
		from, b := ep.near.channels.Next()
		if b == nil {
			break
		}
		pl.arrivedNear(int32(from.Rank()), b)
		ep.near.channels.Release()
		n++
	}
	if ep.pulls.queue.head != nil {
		n += ep.pulls.step()
	} else if len(ep.pulls.offered) > 0 {
		n += ep.pulls.push()
	}
	for way := ep.near.channels.Lost(); way != nil; way = ep.near.channels.Lost() {
		ep.failures.left(way.Rank(), way.Err().Error())
		n++
	}
	return n
}

// ProgressHook is what is made of many messages and goes on when some of them have
// moved.
type ProgressHook interface {
	// Advance starts what can be started now, and returns how much that was.
	// It is called inside a step, and must not wait.
	Advance() int
}

// Deadline implements progress.Source.
func (pl *poller) Deadline() mono.Time {
	ep := pl.ep
	at := min(ep.failures.abortAt, pl.wakeAt)
	if ep.net.rel != nil {
		at = min(at, ep.net.rel.Deadline())
	}
	if ep.net.conn != nil {
		at = min(at, ep.net.conn.deadline)
	}
	return at
}

// received takes in one Send of a peer and gives its buffer back to verbs.
func (pl *poller) received(wc *verbs.WC) {
	ep := pl.ep
	slot := int32(uint32(wc.WRID))
	switch wc.Status {
	case verbs.Success:
		pl.arrived(ep.net.rx.get(slot, int(wc.ByteLen)))
	case verbs.WRFlushErr: // a connection has ended in the middle of a message, or the queue pair is being closed
		if ep.net.srq == nil {
			return
		}
	default:
		ep.Stats.Malformed++
	}
	ep.net.repost(slot)
}

// arrived handles what a peer has sent. The bytes are ours until it returns.
func (pl *poller) arrived(b []byte) {
	ep := pl.ep
	var h header
	if !h.parse(b, len(ep.peers)) || h.source == ep.rank {
		ep.Stats.Malformed++
		return
	}
	pl.handle(&h, b)
}

// arrivedNear handles what a neighbour has put. Its bytes may change at any
// time, so that each is read once.
func (pl *poller) arrivedNear(rank int32, b []byte) {
	ep := pl.ep
	var h header
	if !h.parse(b, len(ep.peers)) || h.source != rank || h.kind == kindHead || h.kind == kindRest || h.kind == kindLinked {
		ep.Stats.Malformed++ // nothing comes in pieces through a channel
		return
	}
	if h.near = true; h.kind == kindBatch && len(b) <= channelBatchRoom {
		b = ep.near.in[:copy(ep.near.in[:], b)] // at once: so all its cache lines come at the same time
	}
	pl.handle(&h, b)
}

// handle is arrived behind the header.
func (pl *poller) handle(h *header, b []byte) {
	ep := pl.ep
	p := &ep.peers[h.source]
	if p.err != nil {
		ep.Stats.Stale++
		ep.failures.disown(p, h.source)
		return
	}
	if p.used = true; h.kind != kindFIN || !h.near { // of what was pulled from here, which says nothing of the next one
		p.answered = true
	}
	p.saw(h)
	if ep.failures.impaired && (h.kind == kindEager || h.kind == kindSync || h.kind == kindRTS) && ep.failures.unwanted(h.envelope()) {
		ep.Stats.Stale++
		return
	}
	switch h.kind {
	case kindEager:
		ep.match.arrivedEager(h.envelope(), b[headerLen:])
	case kindSync:
		ep.match.arrivedSync(h, b[headerLen:])
	case kindHead:
		ep.pieces.arrivedHead(h, p, b[headerLen:])
	case kindRest:
		ep.pieces.arrivedRest(p, b[headerLen:])
	case kindBatch:
		pl.arrivedBatch(h, b[headerLen:])
	case kindRTS:
		ep.rendezvous.arrivedRTS(h, b)
	case kindCTS:
		ep.rendezvous.arrivedCTS(h, b)
	case kindFIN:
		ep.rendezvous.arrivedFIN(h)
	case kindLost:
		ep.failures.arrivedLost(h, b[headerLen:])
	case kindRevoke, kindAgree:
		ep.groups.arrivedAbout(h, b[headerLen:])
	case kindData:
		ep.rendezvous.arrivedData(h, b[headerLen:])
	case kindRecall:
		ep.reads.arrivedRecall(h)
	case kindActive:
		ep.actives.arrived(h, b[headerLen:])
	case kindPace:
		ep.match.arrivedPace(h, p)
	case kindBye:
		pl.arrivedBye(p)
	case kindRouse: // the caller that waits has made this step, and looks again
	case kindLinked:
		ep.lanes.arrivedLinked(h, p, b[headerLen:])
	case kindHave:
		ep.lanes.arrivedHave(h, p)
	case kindAgain:
		ep.lanes.arrivedAgain(p, b[headerLen:])
	case kindDelegate:
		ep.delegatee.arrivedDelegate(h, b)
	case kindClaim:
		ep.delegatee.arrivedClaim(h, b)
	case kindInvite:
		ep.inviter.arrived(h, b)
	case kindPlaced:
		ep.delegator.arrivedPlaced(h)
	case kindShare, kindShared, kindUnshare:
		Delegations{ep}.arrived(h, b)
	case kindCut:
		ep.net.conn.arrivedCut(p)
	}
}

func (pl *poller) arrivedBye(p *peer) {
	ep := pl.ep
	p.saidBye = ep.eng.Now()
	ep.reads.returned(p.rank)
	if ep.actives.server != nil { // it does not leave before the others, and has nothing more to say to this one
		ep.out.notify(int(p.rank), kindBye, 0, 0)
	}
}

// sent handles the completion of something that was sent.
func (pl *poller) sent(wc *verbs.WC) {
	ep := pl.ep
	switch wc.WRID >> wrKindShift {
	case wrBuffer >> wrKindShift:
		ep.net.give(int32(uint32(wc.WRID)))
		p := &ep.peers[wc.WRID>>wrPeerShift&wrPeerMask]
		if p.buffered--; p.buffered == 0 && p.idle != nil {
			ep.pieces.arrived(p.idle, inPieces, p.idle.id)
		}
	case wrRequest >> wrKindShift:
		pl.released(wc)
	case wrRead >> wrKindShift:
		ep.reads.fetched(wc)
	case wrAtomic >> wrKindShift:
		ep.actives.atomicDone(wc)
	case wrLink >> wrKindShift, wrPiece >> wrKindShift, wrWord >> wrKindShift, wrWordIn >> wrKindShift:
		ep.net.conn.completed(wc)
		return
	case wrLinkRead >> wrKindShift:
		ep.reads.fetched(wc)
		return
	}
	if wc.Status != verbs.Success {
		rank := int(wc.WRID >> wrPeerShift & wrPeerMask)
		ep.failures.failPeer(rank, ep.failures.lossOf(rank, wc.Status))
	}
}

// released handles that verbs has let go of memory or of the last word of a
// request.
func (pl *poller) released(wc *verbs.WC) {
	ep := pl.ep
	if ep.failures.ended {
		return // no caller waits for anything any more
	}
	r := ep.requests.lookup(uint32(wc.WRID))
	if r == nil {
		panic("p2p: a work request completes for a request that has ended")
	}
	r.inFlight--
	switch {
	case r.notice == kindInvite:
		ep.inviter.released(r)
	case wc.Status != verbs.Success && r.state != lingering:
		switch p := &ep.peers[r.peer]; {
		case r.state.waitsForRoom():
			p.pending.remove(r)
		case r.state == waitTurn:
			p.readers.remove(r)
		}
		r.fail(ep.failures.lossOf(int(r.peer), wc.Status))
	case r.inFlight == 0 && r.state == waitRead:
		ep.reads.finish(r)
	case r.inFlight == 0 && (r.state == waitAck || r.state == lingering):
		p := &ep.peers[r.peer]
		if p.idle != nil && r.err == nil {
			ep.pieces.arrived(p.idle, askedFor, r.wireID())
		}
		r.complete()
	}
}

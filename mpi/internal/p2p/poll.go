package p2p

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// A work request id is kind (8 bits), peer (24) and a number (32).
const (
	wrPeerShift = 32
	wrPeerMask  = 1<<24 - 1
	wrKindShift = 56

	wrNone    = uint64(iota) << wrKindShift // inline: only failures are told
	wrRecv                                  // number: receive buffer
	wrBuffer                                // number: send buffer
	wrRequest                               // number: request
	wrRead                                  // number: request
)

// Poll takes in what verbs has completed, posts what had no room before, and
// looks at the clock. It implements progress.Source.
func (ep *Endpoint) Poll(now mono.Time, budget int) int {
	ep.posts = 0
	var n int
	if ep.rel != nil {
		n = ep.pollUD(now)
	} else {
		n = ep.pollQueue(budget)
	}
	if ep.conn != nil && ep.cq.Len() == 0 { // what has arrived comes before the end of a connection
		n += ep.conn.poll(now)
	}
	for e, ok := ep.ctx.GetAsyncEvent(); ok; e, ok = ep.ctx.GetAsyncEvent() {
		n++
		ep.happened(&e)
	}
	if ep.channels != nil {
		n += ep.pollChannels(budget)
	}
	if ep.stuck.head != nil {
		n += ep.advanceStuck()
	}
	if now >= ep.abortAt {
		n++ // it may end what the caller waits for
		ep.askLauncher(now)
	}
	n += ep.advanceHook()
	if ep.batch.to != nil { // it had no room, or somebody else made the step
		ep.flushBatch()
	}
	return n
}

// advanceHook lets the hook go on.
func (ep *Endpoint) advanceHook() int {
	if ep.hook == nil {
		return 0
	}
	ep.polling = true
	n := ep.hook.Advance()
	ep.polling = false
	return n
}

// pollQueue takes in what verbs has completed.
func (ep *Endpoint) pollQueue(budget int) int {
	n := ep.cq.Poll(ep.wcs[:min(budget, len(ep.wcs))])
	for i := range ep.wcs[:n] {
		wc := &ep.wcs[i]
		if wc.WRID>>wrKindShift == wrRecv>>wrKindShift {
			ep.received(wc)
		} else {
			ep.sent(wc)
		}
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
func (ep *Endpoint) Deadline() mono.Time {
	at := min(ep.abortAt, ep.wakeAt)
	if ep.rel != nil {
		at = min(at, ep.rel.Deadline())
	}
	if ep.conn != nil {
		at = min(at, ep.conn.deadline)
	}
	return at
}

// received takes in one Send of a peer and gives its buffer back to verbs.
func (ep *Endpoint) received(wc *verbs.WC) {
	slot := int32(uint32(wc.WRID))
	switch wc.Status {
	case verbs.Success:
		ep.arrived(ep.rx.get(slot, int(wc.ByteLen)))
	case verbs.WRFlushErr: // a connection has ended in the middle of a message, or the queue pair is being closed
		if ep.conn == nil {
			return
		}
	default:
		ep.Stats.Malformed++
	}
	if err := ep.postRecv(slot); err != nil {
		panic("p2p: a receive buffer that has just come back does not fit: " + err.Error())
	}
}

// arrived handles what a peer has sent. The bytes are ours until it returns.
func (ep *Endpoint) arrived(b []byte) {
	var h header
	if !h.parse(b, len(ep.peers)) || h.source == ep.rank {
		ep.Stats.Malformed++
		return
	}
	ep.handle(&h, b)
}

// handle is arrived behind the header.
func (ep *Endpoint) handle(h *header, b []byte) {
	p := &ep.peers[h.source]
	if p.err != nil {
		ep.Stats.Stale++
		ep.disown(p, h.source)
		return
	}
	p.used, p.answered = true, true
	if ep.impaired && (h.kind == kindEager || h.kind == kindRTS) && ep.unwanted(h.envelope()) {
		ep.Stats.Stale++
		return
	}
	switch h.kind {
	case kindEager:
		ep.arrivedEager(h.envelope(), b[headerLen:])
	case kindHead:
		ep.arrivedHead(h, p, b[headerLen:])
	case kindRest:
		ep.arrivedRest(p, b[headerLen:])
	case kindBatch:
		ep.arrivedBatch(h, b[headerLen:])
	case kindRTS:
		ep.arrivedRTS(h, b)
	case kindCTS:
		ep.arrivedCTS(h, b)
	case kindFIN:
		ep.arrivedFIN(h)
	case kindLost:
		ep.arrivedLost(h, b[headerLen:])
	case kindRevoke, kindAgree:
		ep.arrivedAbout(h, b[headerLen:])
	case kindData:
		ep.arrivedData(h, b[headerLen:])
	case kindRecall:
		ep.arrivedRecall(h)
	case kindActive:
		(*actives)(ep).arrivedActive(h, b[headerLen:])
	case kindPace:
		ep.arrivedPace(h, p)
	case kindBye:
		p.saidBye = ep.eng.Now()
		ep.returned(h.source)
	case kindSwitch: // both ways complete to one queue: there is nothing to do
	}
}

// sent handles the completion of something that was sent.
func (ep *Endpoint) sent(wc *verbs.WC) {
	switch wc.WRID >> wrKindShift {
	case wrBuffer >> wrKindShift:
		ep.txFree = append(ep.txFree, int32(uint32(wc.WRID))) // never grows: cap is the number of buffers
		p := &ep.peers[wc.WRID>>wrPeerShift&wrPeerMask]
		if p.buffered--; p.buffered == 0 && p.idle != nil {
			ep.arrivedPieces(p)
		}
	case wrRequest >> wrKindShift:
		ep.released(wc)
	case wrRead >> wrKindShift:
		ep.fetched(wc)
	}
	if wc.Status != verbs.Success {
		ep.losePeer(int(wc.WRID>>wrPeerShift&wrPeerMask), wc.Status)
	}
}

// released handles that verbs has let go of memory or of the last word of a
// request.
func (ep *Endpoint) released(wc *verbs.WC) {
	if ep.ended {
		return // nobody waits for anything any more
	}
	r := ep.lookup(uint32(wc.WRID))
	if r == nil {
		panic("p2p: a work request completes for a request that has ended")
	}
	r.inFlight--
	switch {
	case wc.Status != verbs.Success && r.state != lingering:
		switch p := &ep.peers[r.peer]; {
		case r.state.waitsForRoom():
			p.pending.remove(r)
		case r.state == waitRoom:
			p.readers.remove(r)
		}
		r.fail(ep.lossOf(int(r.peer), wc.Status))
	case r.inFlight == 0 && r.state == waitRead:
		ep.endRead(r)
	case r.inFlight == 0 && (r.state == waitAck || r.state == lingering):
		marked := r.notice == kindSwitch && r.state == waitAck
		p := &ep.peers[r.peer]
		if p.idle != nil {
			ep.arrivedAsked(r)
		}
		if r.complete(); marked {
			ep.switched(p)
		}
	}
}

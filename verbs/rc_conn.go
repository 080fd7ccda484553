package verbs

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// rc is what a queue pair of type RC has: one connection, as RFC 5040, 5041 and
// 5044 have it. Bytes come in order, so what is placed is delivered.
type rc struct {
	q      *QP
	id     *CMID         // is told what becomes of the connection
	stream fabric.Stream // nil before attach and after the end
	phase  rcPhase
	queued bool // is in streams.sending
	again  bool // is in streams.again
	timed  bool // is in streams.timed
	timer  mono.Time
	why    error // why the connection ends, nil in order

	// Sending.
	requests wqeRing
	answers  wqeRing // owed to the peer
	asked    uint32  // no Read or atomic before this one is unanswered
	first    uint32  // the oldest request of this connection
	cur      cursor
	sent     [4]uint32 // MSN of the last message on each untagged queue
	ord      int32     // Reads and atomics that may be outstanding
	tx       mpa.Tx
	rest     []byte // of an FPDU that the stream has taken in part
	full     bool   // the stream takes no more for now
	probe    bool   // it was full: one FPDU is enough to see whether it still is
	ird      uint32 // how many answers may be owed

	looked uint32 // streams.step in which ready was called last
	in     rcReceiver
	rcStartup
	rcSegments
}

// rcSegments is how long the segments of messages are.
type rcSegments struct {
	mulpdu     int // now
	segmentMin int // QPInit.SegmentMin
}

// rcStartup is how far the ends have heard of each other.
type rcStartup struct {
	waits bool    // nothing may be sent before the peer has spoken
	told  bool    // id.established was called
	nudge bool    // the peer may not have noticed that we have spoken: see expire
	heard bool    // anything at all
	kind  mpa.RTR // of the peer's first message
	rtr   bool    // the next Read Response answers the first message of peer-to-peer mode
}

// rcPhase is how far a connection is.
type rcPhase uint8

const (
	rcIdle    rcPhase = iota // not connected yet, or no more
	rcOpen                   // data may flow
	rcClosing                // we have said our last, and wait for the peer's
)

// cursor is how far the messages of a connection were cut into FPDUs.
type cursor struct {
	req        uint32 // request that is cut, or will be next
	ans        uint32 // answer, likewise
	off        uint32 // bytes of the message under way that were cut
	reads      int32  // our Reads and atomics that were cut and not answered
	mid        bool   // a message is under way
	answering  bool   // it is an answer
	answerLast bool   // an answer was cut last
}

// Times of a connection.
const (
	// speakAfter is how long a responder waits for the initiator's first FPDU
	// before it sends all the same: RFC 5044, section 7.1.2, has it wait for
	// ever, but then a program whose server speaks first would hang. By then
	// the initiator has read the Reply, which is what the rule is for.
	speakAfter = 100 * mono.Millisecond
	// nudgeAfter is after how long an initiator whose first FPDU got no sign of
	// life sends an empty RDMA Write: Linux's siw may leave what comes right
	// behind its Reply unread until more comes.
	nudgeAfter = 100 * mono.Millisecond
	// closeAfter is how long the peer's FIN is waited for, and that the stream
	// takes our last. Then the stream is on its own.
	closeAfter = 5 * mono.Second
)

func (r *rc) init(q *QP, sends int) {
	r.q, r.in.rc, r.requests.limit, r.timer = q, r, uint32(sends), mono.Never
}

// attach connects a queue pair to a stream whose start-up is over, and takes
// the stream over. rest is what has arrived behind the peer's start-up frame;
// it is not kept. The queue pair calls id.established, once, when data may
// flow: at once, or after the first message of peer-to-peer mode; and id.ended,
// once, when the connection is over.
func (r *rc) attach(id *CMID, s fabric.Stream, a *mpa.Agreed, initiator bool, rest []byte) {
	q, c := r.q, r.q.ctx
	c.streams.out.init(slabLen, batchBufs, batchMarks)
	c.streams.allocIn(c.Arena())
	r.id, r.stream, r.phase, r.why, r.kind = id, s, rcOpen, nil, a.RTR
	r.tx = mpa.Tx{CRC: a.CRC, Markers: a.SendMarkers}
	r.in.rx = mpa.Rx{CRC: a.CRC, Markers: a.RecvMarkers, Empty: !initiator && a.RTR != 0}
	r.in.predicted, r.in.long = prediction{}, 0
	r.in.predicted.from, _ = s.(fabric.VectorReceiver)
	r.ird, r.ord = uint32(min(a.IRD, maxReads)), int32(min(a.ORD, maxReads))
	r.sent, r.in.got = [4]uint32{}, [4]uint32{}
	r.full, r.probe, r.heard, r.rtr, r.told = false, false, false, false, false
	r.waits, r.nudge = !initiator, initiator && a.RTR == 0
	r.answers = wqeRing{limit: max(r.ird, 1)} // 1: the first message of peer-to-peer mode may be a Read
	r.cur = cursor{req: r.requests.head}
	r.asked, r.first = r.requests.head, r.requests.head
	c.streams.use(s.ID(), r)
	q.setState(StateRTS)
	now := c.cfg.Engine.Now()
	switch {
	case !initiator && a.RTR != 0:
		r.arm(now.Add(mpa.RequestTimeout))
	case !initiator:
		r.arm(now.Add(speakAfter))
	case a.RTR != 0:
		r.speakFirst(a.RTR)
	}
	if initiator || a.RTR == 0 {
		r.tell()
	}
	if r.in.eof, r.in.unread = false, len(rest) > 0; r.in.unread {
		r.in.part = append(c.streams.buffer(), rest...)
	}
	r.lookAgain()
}

// tell tells the connection manager that data may flow.
func (r *rc) tell() {
	r.told = true
	if r.id != nil {
		r.id.established()
	}
}

// speakFirst sends what the initiator sends first in peer-to-peer mode (RFC
// 6581, section 9): a message that means nothing.
func (r *rc) speakFirst(kind mpa.RTR) {
	switch {
	case kind&mpa.RTRWrite != 0:
		r.sayNothing()
	case kind&mpa.RTRRead != 0:
		r.sent[iwarp.QNReadReq]++
		r.rtr = true
		h := controlHeader(rdmap.ReadRequest, r.sent[iwarp.QNReadReq])
		req := rdmap.ReadReq{SinkSTag: 1, SrcSTag: 1}
		var body [rdmap.ReadReqLen]byte
		req.Put(body[:])
		r.say(&h, body[:])
	default:
		r.say(nil, nil)
	}
}

// sayNothing sends a message that means nothing.
func (r *rc) sayNothing() {
	h := emptyWrite()
	r.say(&h, nil)
}

// emptyWrite is the header of an RDMA Write of no bytes, which is granted with
// any STag. Linux's siw sends this one.
func emptyWrite() ddp.Header {
	return ddp.Header{Tagged: true, Last: true, ULP: rdmap.Control(rdmap.Write), STag: 1}
}

// spokenFirst reports whether u is a first message of peer-to-peer mode that is
// no message of the verbs: an FPDU without a ULPDU, or, as some read RFC 6581,
// an empty Send, which then takes no receive.
func (r *rcReceiver) spokenFirst(u []byte) bool {
	if r.told || !r.waits {
		return false
	}
	if len(u) == ddp.UntaggedLen && r.kind&mpa.RTRSend != 0 && rdmap.IsWholeSend(u) {
		r.got[iwarp.QNSend]++
		return true
	}
	return len(u) == 0
}

// say appends an FPDU of our own to what goes out next; without a header it is
// an empty one. No FPDU of a message
// may be under way that it must not come into.
func (r *rc) say(h *ddp.Header, body []byte) {
	b := &r.q.ctx.streams.out
	b.reset()
	b.fpdu(&r.tx, h, [][]byte{body}, len(body))
	if r.rest == nil {
		r.rest = r.q.ctx.streams.buffer()
	}
	r.rest = b.appendFrom(r.rest, 0, b.total)
	r.enqueue()
}

// arm sets the connection's timer.
func (r *rc) arm(at mono.Time) {
	s := &r.q.ctx.streams
	r.timer = at
	if at == mono.Never {
		return
	}
	if !r.timed {
		r.timed = true
		s.timed = append(s.timed, r)
	}
	s.deadline = min(s.deadline, at)
	s.hurry()
}

// expire is called when the timer has run out.
func (r *rc) expire(now mono.Time) {
	r.timer = mono.Never
	switch {
	case r.phase == rcClosing: // the peer does not end its half
		r.over(len(r.rest) > 0) // what the stream has taken may still be on its way
	case r.phase == rcOpen && r.waits && !r.told: // in peer-to-peer mode the first message must come
		r.refuse(iwarp.LLPNoRTR, nil, 0)
	case r.phase == rcOpen && r.waits:
		r.waits = false
		r.enqueue()
	case r.phase == rcOpen && r.nudge && !r.heard && !r.cur.mid && len(r.rest) == 0:
		r.nudge = false
		r.sayNothing()
	}
}

// hear notes that the peer has sent its first FPDU.
func (r *rc) hear() {
	r.heard, r.nudge, r.in.rx.Empty = true, false, false
	if r.waits {
		told := r.told
		r.waits = false
		if !told {
			r.tell()
		}
		r.enqueue()
	}
	r.arm(mono.Never)
}

// lookAgain makes the next step look for more to receive.
func (r *rc) lookAgain() {
	if !r.again {
		r.again = true
		r.q.ctx.streams.hurry()
		r.q.ctx.streams.again = append(r.q.ctx.streams.again, r)
	}
}

// disconnect ends the connection in order: FIN follows what the stream has
// taken. Everything else is flushed.
func (r *rc) disconnect(why error) {
	if r.phase != rcOpen {
		return
	}
	if r.transmit(r.q.ctx.cfg.Engine.Now()); r.phase == rcOpen {
		r.close(why)
	}
}

// close says our last: what is in rest, then FIN. The peer's end is waited for.
func (r *rc) close(why error) {
	r.why, r.phase = why, rcClosing
	r.q.setState(StateErr)
	if r.stream == nil {
		return
	}
	r.in.giveUpWaiting()
	r.arm(r.q.ctx.cfg.Engine.Now().Add(closeAfter))
	if len(r.rest) == 0 {
		r.closeWrite()
	}
}

// closeWrite ends our half of the stream, and all of it when the peer has ended
// its half.
func (r *rc) closeWrite() {
	r.stream.CloseWrite()
	if r.in.eof {
		r.over(false)
	}
}

// detach ends the connection of a queue pair: in order behind what was sent, or
// abruptly. id.ended is called when it is over.
func (r *rc) detach(abort bool) {
	switch {
	case r.stream == nil:
	case !abort:
		r.disconnect(nil)
	default:
		if r.phase == rcOpen {
			r.phase = rcClosing
			r.q.setState(StateErr)
		}
		r.over(true)
	}
}

// ErrConnection is wrapped when a connection has ended otherwise than by
// Disconnect at either end.
var ErrConnection = errors.New("verbs: the connection has failed")

// lost ends a connection whose stream has failed, or was ended by the peer in
// the middle of a message.
func (r *rc) lost(cause error) {
	if r.phase == rcOpen {
		r.phase = rcClosing
		r.why = fmt.Errorf("%w: %w", ErrConnection, cause)
		r.failRequests(r.requests.head, RetryExcErr)
		r.q.ctx.raise(AsyncEvent{Type: EventQPFatal, QP: r.q})
		r.q.setState(StateErr)
	}
	r.over(true)
}

// over gives the stream back.
func (r *rc) over(abort bool) {
	if r.stream == nil {
		return
	}
	s, id, c := r.stream, r.id, r.q.ctx
	r.in.giveUpWaiting()
	r.stream, r.id, r.phase = nil, nil, rcIdle
	c.streams.use(s.ID(), nil)
	s.Close(abort)
	c.streams.keep(r.rest)
	c.streams.keep(r.in.part)
	r.rest, r.in.part = nil, nil
	r.arm(mono.Never)
	if id != nil {
		id.ended(r.why)
	}
}

// flush ends every request and answer. The receives are the queue pair's.
func (r *rc) flush() {
	r.failRequests(r.requests.head, WRFlushErr)
	r.answers = wqeRing{limit: r.answers.limit, wqes: r.answers.wqes}
	clear(r.answers.wqes)
	r.cur = cursor{req: r.requests.tail}
	if r.in.msg.used {
		r.q.flushOne(r.in.msg.buf.wrid)
		r.in.msg = inboundSend{}
	}
	if r.phase == rcOpen || r.stream != nil && r.q.state == StateReset { // by the user: there is no wait for what is flushed
		r.phase = rcClosing
		r.over(true)
	}
}

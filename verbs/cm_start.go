package verbs

import (
	"bytes"
	"errors"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// frameRoom is for the longest start-up frame, and one byte that tells that
// there is more.
const frameRoom = mpa.FrameMax + 1

// startup is what an identifier has only while its connection starts up.
type startup struct {
	stream    fabric.Stream // until the queue pair has it
	in        []byte        // what has arrived of the peer's frame
	out       []byte        // what is left to send of ours
	initiator mpa.Initiator
	responder mpa.Responder
	agreed    mpa.Agreed
	qp        *QP
	timeout   mono.Duration
	rtr       mpa.RTR     // an initiator's: not empty asks for peer-to-peer mode
	tx        mpa.Tx      // of what is said behind a Reply that is no good
	cause     iwarp.Cause // why it is not
	why       error       // the same for the user
	rtrSent   bool        // the first message of peer-to-peer mode is out
}

// ready implements streamUser.
func (id *CMID) ready(now mono.Time) (work int) {
	switch id.state {
	case IDListening:
		return id.accept(now)
	case IDConnecting:
		return id.connecting(now)
	case IDRequesting:
		return id.requesting()
	case IDAccepting:
		return id.accepting(now)
	case IDAsked:
		return id.asked()
	case IDReplying, IDRejecting:
		return id.replying()
	case IDTerminating:
		return id.terminating()
	}
	return 0 // the carrier names some for nothing
}

// connecting looks whether TCP has connected.
func (id *CMID) connecting(now mono.Time) int {
	switch s := id.start.stream; s.State() {
	case fabric.StreamConnecting:
		return 0
	case fabric.StreamFailed:
		id.fail(eventOf(s.Err()), s.Err())
		return 1
	default:
		id.local, id.peer = s.Local(), s.Remote()
		id.setState(IDRequesting)
		id.ch.ctx.cm.arm(id, now.Add(id.start.timeout))
		return 1 + id.requesting()
	}
}

// requesting sends what is left of the Request, and looks for the Reply.
func (id *CMID) requesting() (work int) {
	st := id.start
	work = st.push()
	if len(st.out) > 0 && st.stream.State() != fabric.StreamFailed {
		return work // an answer to half a question would lose the other half
	}
	got, over := st.pull(&id.ch.ctx.cm.frame)
	if got == 0 && over == nil {
		return work
	}
	n, agreed, err := st.initiator.Reply(st.in)
	switch {
	case err != nil:
		st.agreed = agreed
		id.refused(err)
	case n > 0:
		st.agreed = agreed
		id.attach(true, st.in[n:])
	case over != nil:
		id.fail(eventOf(over), over)
	}
	return work + 1
}

// accepting looks for the Request.
func (id *CMID) accepting(now mono.Time) int {
	st := id.start
	got, over := st.pull(&id.ch.ctx.cm.frame)
	if got == 0 && over == nil {
		return 0
	}
	n, reply, err := st.responder.Request(st.in)
	switch {
	case err != nil && over == nil && len(reply) > 0:
		id.ch.ctx.cm.dropped++
		id.refuse(now, reply)
	case err != nil, over != nil:
		id.drop()
	case n > 0:
		st.in = nil
		id.ch.ctx.cm.disarm(id) // the user takes as long as it takes
		id.stranger = false
		id.setState(IDAsked)
		id.raise(CMConnectRequest, nil, paramOf(&st.responder.Peer, true))
	}
	return 1
}

// asked looks whether the peer is still there, and silent, while the user
// decides.
func (id *CMID) asked() int {
	got, over := id.start.pull(&id.ch.ctx.cm.frame)
	if got > 0 {
		over = errEarly
	}
	if over == nil {
		return 0
	}
	if id.ch.withdraw(func(e CMEvent) bool { return e.ID == id }) {
		id.drop() // the user has never heard of it
	} else {
		id.fail(CMConnectError, over)
	}
	return 1
}

// replying sends what is left of the Reply. Then the connection is the queue
// pair's, or over.
func (id *CMID) replying() int {
	st := id.start
	work := st.push()
	var over error
	switch {
	case len(st.out) > 0: // a peer that has gone may show in that nothing comes any more
		_, over = st.pull(&id.ch.ctx.cm.frame)
	case st.stream.State() == fabric.StreamFailed:
		over = st.stream.Err()
	}
	switch {
	case over != nil && id.state == IDReplying:
		id.fail(CMConnectError, over)
	case over != nil, len(st.out) == 0 && id.state == IDRejecting:
		id.leave()
	case len(st.out) == 0:
		id.attach(false, nil)
	default:
		return work
	}
	return work + 1
}

// refuse sends a Reply that refuses, and ends the connection behind it.
func (id *CMID) refuse(now mono.Time, reply []byte) {
	id.start.out = reply
	id.ch.ctx.cm.arm(id, now.Add(mpa.ReplyTimeout))
	id.setState(IDRejecting)
	id.replying()
}

// attach gives the connection to the queue pair, which calls established and
// ended.
func (id *CMID) attach(initiator bool, rest []byte) {
	st := id.start
	if err := mayConnect(st.qp, id.ch.ctx); err != nil { // the user did something else with it meanwhile
		id.fail(CMConnectError, err)
		return
	}
	id.ch.ctx.cm.disarm(id)
	id.conn = st.qp
	id.setState(IDStarting)
	st.qp.rc.attach(id, st.stream, &st.agreed, initiator, rest)
}

// established is the queue pair's call when data may flow.
func (id *CMID) established() {
	if id.state != IDStarting {
		return // the user has disconnected
	}
	id.setState(IDEstablished)
	id.raise(CMEstablished, nil, paramOf(&id.start.agreed, false))
	id.start = nil
}

// ended is the queue pair's call when the connection is over; err is nil when
// that was in order.
func (id *CMID) ended(err error) {
	was := id.state
	id.conn = nil
	if was == IDDestroyed {
		return
	}
	event := CMDisconnected
	if was == IDStarting {
		event = CMConnectError
		if err == nil {
			err = errHungUp
		}
	}
	id.start = nil
	id.setState(IDGone)
	id.raise(event, wrapCM(id.peer, err), ConnParam{})
}

// expire is called when the peer's time is up.
func (id *CMID) expire(now mono.Time) {
	switch id.state {
	case IDListening:
		id.accept(now)
	case IDConnecting, IDRequesting:
		id.fail(CMUnreachable, errNoAnswer)
	case IDAccepting:
		id.drop()
	case IDReplying:
		id.fail(CMConnectError, errNoAnswer)
	case IDRejecting:
		id.leave()
	case IDTerminating:
		id.farewell(now)
	}
}

// fail ends a connection that has not come about.
func (id *CMID) fail(event CMEventType, err error) {
	id.failWith(event, err, ConnParam{})
}

// refused ends a connection whose Reply was no good, or a refusal.
func (id *CMID) refused(err error) {
	if r := (*mpa.RejectedError)(nil); errors.As(err, &r) {
		id.failWith(CMRejected, err, ConnParam{PrivateData: r.Private})
		return
	}
	st, bad := id.start, (*mpa.ProtocolError)(nil)
	if !errors.As(err, &bad) || !bad.Terminate {
		id.fail(CMConnectError, err)
		return
	}
	st.cause, st.why = bad.Cause, err
	st.tx = mpa.Tx{CRC: st.agreed.CRC, Markers: st.agreed.SendMarkers}
	id.setState(IDTerminating)
	if st.rtr == 0 {
		id.farewell(id.ch.ctx.now())
		return
	}
	st.in = nil
	id.ch.ctx.cm.arm(id, id.ch.ctx.now().Add(nudgeAfter))
}

// farewell tells a responder, whose connection is up already, why it
// ends. The queue pair takes no part.
//
// In peer-to-peer mode a responder is connected when it has the initiator's first
// message, and Linux's siw takes its kernel down with it when a Terminate, or
// the end of the stream, comes before that. So an RDMA Write of nothing goes first,
// and by itself: siw does not look at what comes right behind its Reply until
// more comes, and what it reads in one piece is one event for it.
func (id *CMID) farewell(now mono.Time) {
	st := id.start
	if st.rtr != 0 && !st.rtrSent {
		st.rtrSent = true
		h := emptyWrite()
		st.say(id.ch.ctx, &h, nil)
		id.ch.ctx.cm.arm(id, now.Add(nudgeAfter))
		return
	}
	var t rdmap.Term
	t.Blame(st.cause, nil, 0)
	var body [rdmap.TermMaxLen]byte
	h := terminateHeader()
	st.say(id.ch.ctx, &h, body[:t.Put(body[:])])
	id.fail(CMConnectError, st.why)
}

// terminating looks whether the peer is still there to hear why it is over.
func (id *CMID) terminating() (work int) {
	st := id.start
	work = st.push()
	got, over := st.pull(&id.ch.ctx.cm.frame)
	if st.in = st.in[:0]; over != nil {
		id.fail(CMConnectError, st.why)
	} else if got == 0 {
		return work
	}
	return work + 1
}

// say sends an FPDU. Should there be no room, the end of the stream has to do.
func (st *startup) say(c *Context, h *ddp.Header, body []byte) {
	b := &c.streams.out
	b.init(slabLen, batchBufs, batchMarks)
	b.reset()
	b.fpdu(&st.tx, h, [][]byte{body}, len(body))
	st.out = b.appendFrom(st.out, 0, b.total)
	st.push()
}

func (id *CMID) failWith(event CMEventType, err error, p ConnParam) {
	id.leave()
	id.raise(event, wrapCM(id.peer, err), p)
}

// leave gives the stream back, and with it the connection. What was sent still
// arrives.
func (id *CMID) leave() {
	id.ch.ctx.cm.disarm(id)
	id.closeStream(false)
	id.setState(IDGone)
	if id.stranger {
		id.destroy(true)
	}
}

// drop ends an identifier that the user has never heard of.
func (id *CMID) drop() {
	id.ch.ctx.cm.dropped++
	id.destroy(true)
}

// wrapCM adds the peer to an error.
func wrapCM(peer netip.AddrPort, err error) error {
	if err == nil {
		return nil
	}
	return &CMError{Peer: peer, Err: err}
}

// closeStream ends the connection while it is not the queue pair's.
func (id *CMID) closeStream(abort bool) {
	if id.start != nil && id.start.stream != nil {
		id.ch.ctx.streams.use(id.start.stream.ID(), nil)
		id.start.stream.Close(abort)
	}
	id.start = nil
}

// destroy ends an identifier in any state. With abort a connection that a queue
// pair has is aborted.
func (id *CMID) destroy(abort bool) {
	c, conn := id.ch.ctx, id.conn
	id.ch.ctx.cm.disarm(id)
	if conn == nil {
		id.closeStream(id.state != IDAccepting)
	}
	id.start = nil
	id.setState(IDDestroyed)
	if id.listens != nil {
		id.listens.end(id)
	}
	id.ch.withdraw(func(e CMEvent) bool { return e.ID == id })
	c.cm.forgetID(id)
	if conn != nil && abort {
		conn.rc.detach(true)
	}
}

// push sends what is left of our frame, and reports whether that was anything.
func (st *startup) push() (work int) {
	for len(st.out) > 0 {
		n := st.stream.Send([][]byte{st.out})
		if n == 0 {
			break
		}
		st.out, work = st.out[n:], 1
	}
	return work
}

// pull takes in what has arrived of the peer's frame. over says why nothing
// more will come.
func (st *startup) pull(room *[frameRoom]byte) (got int, over error) {
	for len(st.in) < len(room) {
		n, eof := st.stream.Recv(room[:len(room)-len(st.in)])
		st.in = append(st.in, room[:n]...)
		got += n
		if eof {
			return got, errHungUp
		}
		if n == 0 {
			break
		}
	}
	if st.stream.State() == fabric.StreamFailed {
		over = st.stream.Err()
	}
	return got, over
}

// paramOf returns what the user is told. With turn, a is the peer's own point of
// view: its IRD is what bounds our Reads.
func paramOf(a *mpa.Agreed, turn bool) ConnParam {
	ird, ord := a.IRD, a.ORD
	if turn {
		ird, ord = ord, ird
	}
	p := ConnParam{PrivateData: bytes.Clone(a.Private), Revision: a.Revision, CRC: a.CRC, RTR: a.RTR}
	if !turn || a.Revision > 1 { // RFC 5044 has no word for them
		p.ResponderResources, p.InitiatorDepth = depthOf(ird), depthOf(ord)
	}
	return p
}

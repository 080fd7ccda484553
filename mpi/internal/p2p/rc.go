package p2p

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// Connections: what RC has instead of datagrams, and RD and Hybrid may have beside them. Every
// rank listens. A connection is made when there is something to send, and serves
// both directions. When two ranks connect to each other at the same time, the
// connection of the lower rank counts: the higher one refuses its own.

// connector makes the connections of an endpoint.
type connector struct {
	ep        *Endpoint
	channel   *verbs.CMChannel
	listener  *verbs.CMID      // listens
	listeners []netip.AddrPort // of all ranks
	timeout   mono.Duration    // with a peer that does not answer
	links     int              // that are there, or coming about
	timed     []*link          // that wait for a time
	deadline  mono.Time        // the earliest of them, or Never
	refused   []*verbs.CMID    // whose refusal is still on its way
	srq       *verbs.SRQ       // of all connections
	looks     uint32           // CMChannel.Looks when events were polled last
	beside    bool             // they stand beside datagrams: see hybrid.go
}

// link is a connection with a peer.
type link struct {
	rank   int32
	state  linkState
	id     *verbs.CMID
	qp     *verbs.QP
	tries  int
	pieces int       // buffers of packed data that are posted
	since  mono.Time // when no way to the peer was found first; 0: there is one
	until  mono.Time // when to do something about it, in states resting and awaited
	tune   linkTuner // beside datagrams
	told   bool      // the peer knows that this end has let go of it
	cut    bool      // the peer has let go of it
}

// linkState is how far a link is.
type linkState uint8

const (
	connecting linkState = iota // we connect
	answering                   // the peer connects, and we have accepted
	awaited                     // the peer connects, as it has told us
	resting                     // it has failed, and is tried again soon
	up
	over // there will be none
)

// Numbers of connections.
const (
	linkSends     = 128 // send queue of each
	sharedLinks   = 64  // how many of them may be full before others notice
	listenBacklog = 1024
	connectTries  = 6 // of which the last is a good second after the first
	firstRest     = 20 * mono.Millisecond
	retryRest     = 100 * mono.Millisecond // until a way to the peer is looked for again
	// linkSegment is how many bytes a segment has, for both ends are software: see verbs.QPInit.SegmentMin. 16 KiB with their
	// envelope are one, behind the header of DDP, and between the length, padding and CRC of MPA.
	linkSegment = 16<<10 + laneHead + 18 + 2 + 3 + 4
	// crossedWait is how long a connection is waited for that the peer has told
	// of. It is under way at that moment.
	crossedWait = 30 * mono.Second
	// connectTimeout is how long a peer may take to accept, which it does in its
	// next call of MPI, unless the context says how long peers may be silent.
	connectTimeout = 10 * 60 * mono.Second
)

// cardRC tells where a rank listens.
const cardRC = "rc"

// openConnector begins to listen.
func openConnector(ep *Endpoint, ctx *verbs.Context, srq *verbs.SRQ, beside bool) (c *connector, err error) {
	c = &connector{ep: ep, srq: srq, beside: beside, listeners: make([]netip.AddrPort, len(ep.peers)), deadline: mono.Never}
	if c.timeout = ctx.Dgram().PeerLost; c.timeout == 0 {
		c.timeout = connectTimeout
	}
	if c.channel, err = ctx.CreateCMChannel(); err != nil {
		return nil, err
	}
	if c.listener, err = c.channel.CreateID(); err != nil {
		return nil, err
	}
	if err = c.listener.BindAddr(netip.AddrPortFrom(ctx.Addr().Addr(), 0)); err != nil {
		return nil, err
	}
	return c, c.listener.Listen(listenBacklog)
}

// init says how the queue pair of a connection is made. Its receives are those of
// all peers, and a peer that finds none waits.
func (c *connector) init() verbs.QPInit {
	ep := c.ep
	return verbs.QPInit{
		Type: verbs.RC, SendCQ: ep.net.cq, RecvCQ: ep.net.cq, SRQ: c.srq, RecvWait: true,
		Cap: verbs.QPCap{MaxSendWR: linkSends}, SegmentMin: linkSegment,
	}
}

// reach begins to connect with a peer unless that was done before.
func (c *connector) reach(p *peer) {
	if p.link == nil && p.err == nil {
		c.newLink(p)
		c.start(p.link)
	}
}

func (c *connector) newLink(p *peer) {
	p.link = &link{rank: p.rank, tune: linkTuner{fixed: !c.ep.cfg.tunesLink}}
	c.links++
}

// start begins to connect.
func (c *connector) start(l *link) {
	l.state = connecting
	id, err := c.channel.CreateID()
	if err == nil {
		id.UserData, l.id = l, id
		err = c.connect(l)
	}
	if err != nil { // open files, or memory
		c.fail(l, accepted, err)
	}
	c.hurry()
}

func (c *connector) connect(l *link) error {
	id := l.id
	if err := id.ResolveAddr(c.listeners[l.rank], 0); err != nil {
		return err
	}
	if err := id.ResolveRoute(0); err != nil {
		return err
	}
	if err := id.CreateQP(c.ep.net.pd, c.init()); err != nil {
		return err
	}
	l.qp = id.QP
	return id.Connect(verbs.ConnParam{PrivateData: c.handshake(l.rank, accepted), Timeout: c.timeout})
}

func (c *connector) handshake(to int32, v verdict) []byte {
	g := handshake{verdict: v, key: c.ep.cfg.Key, from: c.ep.rank, to: to}
	return g.put()
}

// poll takes in what has happened to connections, and returns how much that was.
func (c *connector) poll(now mono.Time) (n int) {
	c.looks = c.channel.Looks()
	for e, ok := c.channel.Poll(); ok; e, ok = c.channel.Poll() {
		c.event(&e)
		n++
	}
	if now >= c.deadline {
		n += c.expire(now)
	}
	if n > 0 {
		c.hurry() // what was asked for may have times and events of its own
	}
	return n
}

// event handles one event.
func (c *connector) event(e *verbs.CMEvent) {
	if e.Type == verbs.CMConnectRequest {
		c.asked(e)
		return
	}
	l, ok := e.ID.UserData.(*link)
	if !ok || l.id != e.ID {
		return // it was given up
	}
	switch e.Type {
	case verbs.CMEstablished:
		if l.state == connecting && !c.knows(e.Param.PrivateData, l.rank) {
			c.fail(l, stranger, nil)
			return
		}
		c.established(l)
	case verbs.CMRejected:
		var g handshake
		if !g.parse(e.Param.PrivateData) {
			g.verdict = accepted // by the network, or a process that has ended
		}
		c.fail(l, g.verdict, e.Err)
	case verbs.CMAddrError, verbs.CMRouteError, verbs.CMConnectError, verbs.CMUnreachable:
		c.fail(l, accepted, e.Err)
	case verbs.CMDisconnected:
		c.ended(l)
	}
}

// knows reports whether private data is what a rank of this job has sent to this
// one.
func (c *connector) knows(private []byte, rank int32) bool {
	var g handshake
	return g.parse(private) && g.key == c.ep.cfg.Key && g.to == c.ep.rank && g.from == rank
}

// asked decides about a connection that a peer wants.
func (c *connector) asked(e *verbs.CMEvent) {
	var g handshake
	p, v := c.judge(&g, e.Param.PrivateData)
	if v == accepted {
		if err := c.accept(p, g.from, e.ID); err == nil {
			return
		}
		v = full
	}
	if v == stranger {
		c.ep.Stats.Strangers++
	}
	c.refuse(e.ID, c.handshake(g.from, v))
}

// judge reads which rank asks for a connection, and says what is to become of it.
func (c *connector) judge(g *handshake, private []byte) (*peer, verdict) {
	ep := c.ep
	if !g.parse(private) || g.key != ep.cfg.Key || g.to != ep.rank || g.from < 0 || int(g.from) >= len(ep.peers) || g.from == ep.rank {
		return nil, stranger
	}
	p := &ep.peers[g.from]
	switch l := p.link; {
	case p.err != nil:
		return p, lostHere
	case l == nil:
		if c.beside && (c.links >= ep.cfg.Connections || ep.failures.closing) {
			return p, full
		}
	case l.state == connecting && g.from > ep.rank:
		return p, simultaneous
	case l.state == up, l.state == over:
		return p, lostHere
	}
	return p, accepted
}

// accept takes the connection that a peer has asked for, instead of any of our
// own that is on its way.
func (c *connector) accept(p *peer, rank int32, id *verbs.CMID) error {
	qp, err := c.ep.net.pd.CreateQP(c.init())
	if err != nil {
		return err
	}
	if err := id.Accept(verbs.ConnParam{QP: qp, PrivateData: c.handshake(rank, accepted), Timeout: c.timeout}); err != nil {
		qp.Destroy()
		return err
	}
	if p.link == nil {
		c.newLink(p)
	}
	l := p.link
	c.drop(l)
	id.UserData, l.id, l.qp, l.state = l, id, qp, answering
	return nil
}

// refuse says no.
func (c *connector) refuse(id *verbs.CMID, why []byte) {
	c.refused = slices.DeleteFunc(append(c.refused, id), func(x *verbs.CMID) bool {
		if x == id {
			if err := x.Reject(why); err != nil { // it has gone away
				return x.Destroy() == nil
			}
		}
		return x.State() == verbs.IDGone && x.Destroy() == nil
	})
}

// established begins to use a connection.
func (c *connector) established(l *link) {
	ep, p := c.ep, &c.ep.peers[l.rank]
	first := l.state == connecting
	l.state = up
	p.used = true
	ep.Stats.Connections++
	if c.beside {
		ep.lanes.joins(ep.net.ctx.Attr().Aggregates)
		if first { // the other end may not speak before this one has (RFC 5044, section 7.1.2)
			_ = l.qp.PostSend(&verbs.SendWR{WRID: wrWord, Opcode: verbs.OpRDMAWrite, Flags: verbs.Inline, RKey: 1})
		}
		return
	}
	if ep.failures.closing { // the others have their bye
		ep.out.notify(int(l.rank), kindBye, 0, 0)
	}
	p.qp = l.qp
	ep.out.goOn(p)
}

// fail handles that a connection has not come about: the peer's answer, or
// accepted and the error of the network.
func (c *connector) fail(l *link, v verdict, err error) {
	c.drop(l)
	now := c.ep.eng.Clock().Now()
	if !c.beside && unreachable(err) { // beside datagrams no request waits for it
		if l.since == 0 {
			l.since = now
		}
		if now.Sub(l.since) < c.timeout {
			c.rest(l, resting, now.Add(retryRest))
			return
		}
	}
	l.tries++
	switch {
	case v == simultaneous && l.tries < connectTries:
		c.rest(l, awaited, now.Add(crossedWait))
	case v == accepted && l.tries < connectTries && !errors.Is(err, syscall.ETIMEDOUT):
		// It may have been cut off by the peer because this rank was long in
		// computing, or the peer is about to listen to many at a time.
		c.rest(l, resting, now.Add(firstRest<<(l.tries-1)))
	default:
		c.giveUp(l, fmt.Errorf("no connection to %v: %w", c.listeners[l.rank], errors.Join(v.err(), err)))
	}
}

// unreachable reports whether an error says that there is no way to the peer now: a
// device is down perhaps, and up again soon.
func unreachable(err error) bool {
	for _, no := range []error{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// err returns why a peer has refused, or nil if it has not.
func (v verdict) err() error {
	if v == accepted {
		return nil
	}
	return fmt.Errorf("the peer says: %v", v)
}

// rest waits for a time.
func (c *connector) rest(l *link, s linkState, until mono.Time) {
	l.state, l.until = s, until
	c.timed = append(c.timed, l)
	c.deadline = min(c.deadline, until)
}

// expire connects those again whose time has come.
func (c *connector) expire(now mono.Time) (n int) {
	timed := c.timed
	c.timed, c.deadline = nil, mono.Never
	for _, l := range timed {
		switch {
		case l.state != resting && l.state != awaited:
		case l.until > now:
			c.rest(l, l.state, l.until)
		default:
			n++
			c.start(l)
		}
	}
	return n
}

// giveUp handles that there will be no connection.
func (c *connector) giveUp(l *link, why error) {
	l.state = over
	c.links--
	if c.beside {
		return // datagrams go on
	}
	c.ep.failures.failPeer(int(l.rank), c.ep.failures.lost(int(l.rank), c.ep.failures.silent(why.Error())))
}

// ended handles the end of a connection. When all ranks leave, a peer that has
// said bye may go.
func (c *connector) ended(l *link) {
	if c.beside {
		c.sever(l)
		return
	}
	c.drop(l)
	l.state = over
	c.links--
	if ep := c.ep; !ep.failures.closing && ep.actives.server == nil || ep.peers[l.rank].saidBye == mono.Never {
		ep.failures.failPeer(int(l.rank), ep.failures.lossOf(int(l.rank), verbs.RetryExcErr))
	}
}

// drop forgets the connection of a link, in whatever state it is.
func (c *connector) drop(l *link) {
	if p := &c.ep.peers[l.rank]; p.qp == l.qp {
		p.qp = nil // not beside datagrams: there it is theirs
	}
	if l.id != nil {
		_ = l.id.Destroy() // it fails for one that was destroyed before
	}
	if l.qp != nil {
		l.qp.Destroy()
	}
	l.id, l.qp = nil, nil
}

// abort ends the connection with a peer that is lost.
func (c *connector) abort(p *peer) {
	c.ep.lanes.lost(c, p)
	if l := p.link; l != nil && l.state != over {
		l.state = over
		c.links--
		c.drop(l)
	}
}

// unsettled reports whether a connection is still coming about.
func (c *connector) unsettled() bool {
	for i := range c.ep.peers {
		if l := c.ep.peers[i].link; l != nil && l.state < up {
			return true
		}
	}
	return false
}

// disconnect ends the connections in order with those peers that need nothing
// more: what was sent still arrives. TCP does not tell what has arrived; but an
// end that has a bye has all that the peer has sent, and both wait for one.
func (c *connector) disconnect() {
	for i := range c.ep.peers {
		if p := &c.ep.peers[i]; p.link != nil && p.link.state == up && p.saidBye != mono.Never {
			_ = p.link.id.Disconnect() // it cannot fail in this state, and says so once
		}
	}
}

// close ends everything abruptly that is left.
func (c *connector) close() error {
	for i := range c.ep.peers {
		c.abort(&c.ep.peers[i])
	}
	ids := c.refused
	if c.listener != nil {
		ids = append(ids, c.listener)
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, id.Destroy())
	}
	c.refused, c.listener = nil, nil
	return errors.Join(append(errs, c.channel.Close())...)
}

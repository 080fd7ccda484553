package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// ConnParam says how to connect (struct rdma_conn_param). In an event it is
// what the peer offers, seen from this end, so that it can be given to Accept.
type ConnParam struct {
	// PrivateData goes to the peer with the start-up frame: at most 252 bytes,
	// with Revision 1 256.
	PrivateData []byte
	// ResponderResources (IRD) is how many Reads and atomics of the peer may be
	// outstanding, InitiatorDepth (ORD) how many of ours. Default and at most
	// DeviceAttr.MaxQPRdAtom; -1 is none.
	ResponderResources, InitiatorDepth int
	// QP is the queue pair to connect; default that of CMID.CreateQP.
	QP *QP
	// Revision, CRC, Markers and RTR: see mpa.Config.
	Revision uint8
	CRC      bool
	Markers  bool
	RTR      mpa.RTR
	// Timeout is how long TCP may take to connect, and then the peer's start-up
	// frame; default mpa.ReplyTimeout.
	Timeout time.Duration
}

// CMID is a connection, or a place to listen at (struct rdma_cm_id).
type CMID struct {
	UserData any
	QP       *QP // of CreateQP

	ch       *CMChannel
	state    IDState
	at       int       // in cmState.ids
	timed    int       // in cmState.timed
	deadline mono.Time // mono.Never: none
	local    netip.AddrPort
	peer     netip.AddrPort
	start    *startup   // while the connection starts up
	conn     *QP        // the queue pair that has the connection
	listener *CMID      // that the peer connects to, until the user has decided
	listens  *listening // in state Listening
	stranger bool       // the user has never heard of it
}

// CreateID makes an identifier (rdma_create_id(3)). It fails with ErrClosed.
func (ch *CMChannel) CreateID() (*CMID, error) {
	if ch.ctx == nil || ch.ctx.closed {
		return nil, ErrClosed
	}
	return ch.newID(), nil
}

// BindAddr sets the local address (rdma_bind_addr(3)). Unspecified means all
// addresses, and port 0 one that is free. Whether they can be had shows in
// Listen or Connect. Its errors wrap ErrInvalid: the state, or an address that the carrier
// cannot have.
func (id *CMID) BindAddr(at netip.AddrPort) error {
	if err := id.may(callBindAddr); err != nil {
		return err
	}
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	if err := id.ch.carries(at.Addr()); err != nil {
		return err
	}
	id.local = at
	id.setState(IDBound)
	return nil
}

// carries reports why connections from or to an address cannot be made.
func (ch *CMChannel) carries(a netip.Addr) error {
	switch caps := ch.ctx.cfg.Streams.Caps(); {
	case !a.IsValid():
		return fmt.Errorf("%w: there is no address", ErrInvalid)
	case a.IsMulticast():
		return fmt.Errorf("%w: %v is a group, and a connection has one peer", ErrInvalid, a)
	case a.Is6() && !caps.IPv6:
		return fmt.Errorf("%w: %s has no IPv6, and %v needs it", ErrInvalid, caps.Carrier, a)
	}
	return nil
}

// ResolveAddr sets the peer's address (rdma_resolve_addr(3)); CMAddrResolved or
// CMAddrError follows. timeout 0: 2 s. TCP looks up no address, so the
// event is there at once, and the time does not matter.
func (id *CMID) ResolveAddr(to netip.AddrPort, timeout time.Duration) error {
	if err := id.may(callResolveAddr); err != nil {
		return err
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	switch a := to.Addr(); {
	case timeout < 0:
		return fmt.Errorf("%w: timeout %v", ErrInvalid, timeout)
	case !a.IsValid() || a.IsUnspecified() || to.Port() == 0:
		return fmt.Errorf("%w: %v is not where a peer can be: name its address and port", ErrInvalid, to)
	case id.local.IsValid() && id.local.Addr().Is4() != a.Is4():
		return fmt.Errorf("%w: %v cannot be reached from %v: the addresses are of different families", ErrInvalid, to, id.local)
	}
	if err := id.ch.carries(to.Addr()); err != nil {
		id.raise(CMAddrError, &CMError{Peer: to, Err: err}, ConnParam{})
		return nil
	}
	id.peer = to
	id.setState(IDAddrResolved)
	id.raise(CMAddrResolved, nil, ConnParam{})
	return nil
}

// ResolveRoute finds the way there (rdma_resolve_route(3)); CMRouteResolved or
// CMRouteError follows. TCP finds its way while it connects, as for every
// iWARP device, so it is always CMRouteResolved, at once.
func (id *CMID) ResolveRoute(timeout time.Duration) error {
	if err := id.may(callResolveRoute); err != nil {
		return err
	}
	if timeout < 0 {
		return fmt.Errorf("%w: timeout %v", ErrInvalid, timeout)
	}
	id.setState(IDRouteResolved)
	id.raise(CMRouteResolved, nil, ConnParam{})
	return nil
}

// CreateQP makes the queue pair of the connection (rdma_create_qp(3)), of type
// RC. Its errors are those of PD.CreateQP, or wrap ErrInvalid: there is one already.
func (id *CMID) CreateQP(pd *PD, init QPInit) error {
	if err := id.may(callCreateQP); err != nil {
		return err
	}
	switch {
	case id.QP != nil:
		return fmt.Errorf("%w: the identifier has its queue pair already", ErrInvalid)
	case pd == nil || pd.ctx != id.ch.ctx:
		return fmt.Errorf("%w: the protection domain is of another context", ErrInvalid)
	case init.Type != 0 && init.Type != RC:
		return fmt.Errorf("%w: queue pairs of type %v are not connected; use RC", ErrInvalid, init.Type)
	}
	init.Type = RC
	q, err := pd.CreateQP(init)
	if err != nil {
		return err
	}
	id.QP = q
	return nil
}

// Listen waits for connections (rdma_listen(3)) at the bound address. Each
// makes a CMConnectRequest with an identifier of its own. When backlog of them
// (default 128) wait for the user to decide, no more connections are taken:
// they wait in the carrier. Its errors wrap ErrInvalid where the state is wrong, or that of
// the carrier: the address is taken, say.
func (id *CMID) Listen(backlog int) error {
	if err := id.may(callListen); err != nil {
		return err
	}
	if backlog <= 0 {
		backlog = backlogDefault
	}
	at := id.local
	if !at.IsValid() {
		at = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		if id.ch.ctx.cfg.Streams.Addr().Is6() {
			at = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
		}
	}
	l, err := id.ch.ctx.cfg.Streams.Listen(at, max(backlog, waitingRoom))
	if err != nil {
		return fmt.Errorf("verbs: cannot listen at %v: %w", at, err)
	}
	id.local = l.Local()
	id.listens = &listening{carrier: l, backlog: backlog}
	id.setState(IDListening)
	id.ch.ctx.streams.use(l.ID(), id)
	return nil
}

// Connect connects (rdma_connect(3)). CMEstablished, or an event that tells why
// not, follows. An identifier connects once; to try again, make a new one. Its errors
// wrap ErrInvalid; those of the network come as events.
func (id *CMID) Connect(p ConnParam) error {
	if err := id.may(callConnect); err != nil {
		return err
	}
	c, q := id.ch.ctx, cmp.Or(p.QP, id.QP)
	config, err := p.check(c, q)
	if err != nil {
		return err
	}
	st := &startup{qp: q, timeout: cmp.Or(p.Timeout, mpa.ReplyTimeout), rtr: p.RTR}
	if st.out, err = st.initiator.Start(config, p.PrivateData); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s, err := c.cfg.Streams.Dial(id.peer, id.local)
	if err != nil && !ofNetwork(err) {
		return fmt.Errorf("verbs: cannot connect to %v: %w", id.peer, err)
	}
	id.start = st
	id.setState(IDConnecting)
	if err != nil { // some carriers know at once, others later: the user is told in the same way
		id.fail(eventOf(err), err)
		return nil
	}
	id.own(s)
	id.ch.ctx.cm.arm(id, c.now().Add(st.timeout))
	return nil
}

// Accept accepts a connection (rdma_accept(3)). CMEstablished follows, or
// CMConnectError.
func (id *CMID) Accept(p ConnParam) error {
	if err := id.may(callAccept); err != nil {
		return err
	}
	st, q := id.start, cmp.Or(p.QP, id.QP)
	config, err := p.check(id.ch.ctx, q)
	if err != nil {
		return err
	}
	reply, agreed, err := st.responder.Accept(config, p.PrivateData)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	st.out, st.agreed, st.qp, st.timeout = reply, agreed, q, cmp.Or(p.Timeout, mpa.ReplyTimeout)
	now := id.ch.ctx.now()
	id.setState(IDReplying)
	id.ch.ctx.cm.arm(id, now.Add(st.timeout))
	id.ready(now)
	return nil
}

// Reject refuses a connection (rdma_reject(3)); the peer gets CMRejected with
// the private data. What is left to do with the identifier is Destroy.
func (id *CMID) Reject(private []byte) error {
	if err := id.may(callReject); err != nil {
		return err
	}
	reply, err := id.start.responder.Reject(private)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	id.refuse(id.ch.ctx.now(), reply)
	return nil
}

// Disconnect ends a connection in order: what has been sent arrives, requests
// and receives that are left end with WRFlushErr, and the queue pair goes to
// state Err (rdma_disconnect(3)). CMDisconnected follows at both ends. When
// the peer was faster, it does nothing.
func (id *CMID) Disconnect() error {
	if err := id.may(callDisconnect); err != nil {
		return err
	}
	if id.state == IDDisconnecting || id.state == IDGone {
		return nil
	}
	id.setState(IDDisconnecting)
	id.conn.rc.detach(false)
	return nil
}

// Destroy ends the use of an identifier (rdma_destroy_id(3)); a connection that
// is left is aborted. Its queue pair stays. Its events that were not taken are
// withdrawn, and connections that wait for a listener are aborted. A second call is
// ErrClosed.
func (id *CMID) Destroy() error {
	if id.state == IDDestroyed {
		return fmt.Errorf("%w: the identifier was destroyed before", ErrClosed)
	}
	id.destroy(true)
	return nil
}

// State returns how far the identifier is.
func (id *CMID) State() IDState { return id.state }

// LocalAddr returns the local address: the bound one, or that of the
// connection.
func (id *CMID) LocalAddr() netip.AddrPort { return id.local }

// PeerAddr returns the peer's address.
func (id *CMID) PeerAddr() netip.AddrPort { return id.peer }

// check reports why one cannot connect with these parameters and this queue
// pair, and returns what they mean for the start-up.
func (p *ConnParam) check(c *Context, q *QP) (mpa.Config, error) {
	config := mpa.Config{Revision: p.Revision, CRC: p.CRC, Markers: p.Markers, RTR: p.RTR}
	if err := mayConnect(q, c); err != nil {
		return config, err
	}
	if p.Timeout < 0 {
		return config, fmt.Errorf("%w: timeout %v", ErrInvalid, p.Timeout)
	}
	var err, err2 error
	config.IRD, err = depth("ResponderResources", p.ResponderResources)
	config.ORD, err2 = depth("InitiatorDepth", p.InitiatorDepth)
	return config, errors.Join(err, err2)
}

// mayConnect reports why a queue pair cannot be connected.
func mayConnect(q *QP, c *Context) error {
	switch {
	case q == nil:
		return fmt.Errorf("%w: there is no queue pair to connect: use CMID.CreateQP, or name one in ConnParam.QP", ErrInvalid)
	case q.ctx != c:
		return fmt.Errorf("%w: the queue pair is of another context", ErrInvalid)
	case q.typ != RC:
		return fmt.Errorf("%w: queue pairs of type %v are not connected; use RC", ErrInvalid, q.typ)
	case q.closed:
		return fmt.Errorf("%w: the queue pair was destroyed", ErrClosed)
	case q.state != StateInit:
		return &StateError{From: q.state, To: q.state, Op: "connecting (which takes INIT)"}
	}
	return nil
}

// depth returns what an IRD or ORD of ConnParam means.
func depth(name string, n int) (uint16, error) {
	switch {
	case n == 0:
		return maxReads, nil
	case n == -1:
		return 0, nil
	case n < 0 || n > maxReads:
		return 0, fmt.Errorf("%w: %s %d; at most %d, and -1 for none", ErrInvalid, name, n, maxReads)
	}
	return uint16(n), nil
}

// depthOf is the other way round: what the user reads, and may give back.
func depthOf(n uint16) int {
	if n == 0 {
		return -1
	}
	return int(min(n, maxReads))
}

// own makes the identifier the user of a stream.
func (id *CMID) own(s fabric.Stream) {
	id.start.stream = s
	id.ch.ctx.streams.use(s.ID(), id)
}

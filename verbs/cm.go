package verbs

import (
	"net/netip"

	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// CMEventType is the kind of a CMEvent (rdma_get_cm_event(3)).
type CMEventType uint8

// Kinds of connection events.
const (
	CMAddrResolved   CMEventType = iota + 1 // ResolveAddr has succeeded
	CMAddrError                             // it has failed
	CMRouteResolved                         // ResolveRoute has succeeded
	CMRouteError                            // it has failed
	CMConnectRequest                        // ID is new, and wants to connect to Listener: Accept or Reject it
	CMConnectError                          // start-up has failed: the peer does not speak MPA as we do, or broke off
	CMUnreachable                           // nobody has answered in time
	CMRejected                              // the peer has said no, or nobody listens there
	CMEstablished                           // connected: the queue pair is in state RTS
	CMDisconnected                          // either end has disconnected, or the connection has failed: see Err
	cmEventCount
)

// ConnParam says how to connect (struct rdma_conn_param). In an event it is
// what the peer has said.
type ConnParam struct {
	// PrivateData goes to the peer with the start-up frame: at most 252 bytes.
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
	// Timeout is how long the peer's start-up frame may take; default
	// mpa.ReplyTimeout.
	Timeout mono.Duration
}

// CMEvent is something that happened to a connection. Taking it acknowledges
// it.
type CMEvent struct {
	Type     CMEventType
	ID       *CMID
	Listener *CMID // CMConnectRequest: whom the peer wants to connect to
	Err      error // why, for those that tell of a failure: a typed error
	// Param: CMConnectRequest, CMEstablished, CMRejected: the peer's private
	// data, and what it offers. Valid for good.
	Param ConnParam
}

// CMChannel is a queue of connection events (rdma_create_event_channel(3)).
type CMChannel struct{ ctx *Context }

// CreateCMChannel makes a channel. The caller closes it.
func (c *Context) CreateCMChannel() (*CMChannel, error) { panic("stub") }

// Close ends a channel whose CMIDs are destroyed.
func (ch *CMChannel) Close() error { panic("stub") }

// GetEvent returns the oldest event that was not taken yet. Events come up
// while the engine steps.
func (ch *CMChannel) GetEvent() (CMEvent, bool) { panic("stub") }

// Wait steps and parks until there is an event (a blocking
// rdma_get_cm_event(3)).
func (ch *CMChannel) Wait() CMEvent { panic("stub") }

// FD returns a descriptor for poll(2), as CompChannel.FD does.
func (ch *CMChannel) FD() int { panic("stub") }

// CMID is a connection, or a place to listen at (struct rdma_cm_id).
type CMID struct {
	UserData any
	QP       *QP // of CreateQP
}

// CreateID makes an identifier (rdma_create_id(3)).
func (ch *CMChannel) CreateID() (*CMID, error) { panic("stub") }

// BindAddr sets the local address (rdma_bind_addr(3)).
func (id *CMID) BindAddr(at netip.AddrPort) error { panic("stub") }

// ResolveAddr sets the peer's address (rdma_resolve_addr(3)); CMAddrResolved or
// CMAddrError follows. timeout 0: 2 s.
func (id *CMID) ResolveAddr(to netip.AddrPort, timeout mono.Duration) error { panic("stub") }

// ResolveRoute finds the way there (rdma_resolve_route(3)); CMRouteResolved or
// CMRouteError follows.
func (id *CMID) ResolveRoute(timeout mono.Duration) error { panic("stub") }

// CreateQP makes the queue pair of the connection (rdma_create_qp(3)), of type
// RC.
func (id *CMID) CreateQP(pd *PD, init QPInit) error { panic("stub") }

// Listen waits for connections (rdma_listen(3)) at the bound address. Each
// makes a CMConnectRequest.
func (id *CMID) Listen(backlog int) error { panic("stub") }

// Connect connects (rdma_connect(3)). CMEstablished, or an event that tells why
// not, follows.
func (id *CMID) Connect(p ConnParam) error { panic("stub") }

// Accept accepts a connection (rdma_accept(3)). CMEstablished follows, or
// CMConnectError.
func (id *CMID) Accept(p ConnParam) error { panic("stub") }

// Reject refuses a connection (rdma_reject(3)).
func (id *CMID) Reject(private []byte) error { panic("stub") }

// Disconnect ends a connection in order: what has been sent arrives, requests
// and receives that are left end with WRFlushErr, and the queue pair goes to
// state Err (rdma_disconnect(3)). CMDisconnected follows at both ends.
func (id *CMID) Disconnect() error { panic("stub") }

// Destroy ends the use of an identifier (rdma_destroy_id(3)); a connection that
// is left is aborted. Its queue pair stays.
func (id *CMID) Destroy() error { panic("stub") }

// LocalAddr returns the local address, PeerAddr the peer's.
func (id *CMID) LocalAddr() netip.AddrPort { panic("stub") }

// PeerAddr returns the peer's address.
func (id *CMID) PeerAddr() netip.AddrPort { panic("stub") }

package verbs

import "fmt"

// IDState is how far a CMID is.
type IDState uint8

// States of identifiers. One that connects goes from Idle down to Requesting,
// one that is connected to begins with Accepting; both are Starting when the
// queue pair gets the connection.
const (
	IDIdle          IDState = iota
	IDBound                 // has a local address
	IDAddrResolved          // has the peer's address
	IDRouteResolved         // and how
	IDListening
	IDConnecting    // TCP connects
	IDRequesting    // the Request was sent, the peer's Reply is awaited
	IDAccepting     // the peer's Request is awaited; only the listener knows of it
	IDAsked         // CMConnectRequest: the user decides
	IDReplying      // the Reply is being sent
	IDRejecting     // likewise one that refuses
	IDTerminating   // the Reply was no good: the peer is told why before the user is
	IDStarting      // the queue pair has the connection; in peer-to-peer mode its first message is awaited
	IDEstablished   // data may flow
	IDDisconnecting // our end is over, the peer's not yet
	IDGone          // the connection is over, or has never been
	IDDestroyed
	idStateCount
)

var idStateNames = [idStateCount]string{
	"IDLE", "BOUND", "ADDR_RESOLVED", "ROUTE_RESOLVED", "LISTENING", "CONNECTING", "REQUESTING", "ACCEPTING", "ASKED",
	"REPLYING", "REJECTING", "TERMINATING", "STARTING", "ESTABLISHED", "DISCONNECTING", "GONE", "DESTROYED",
}

func (s IDState) String() string { return enumName(idStateNames[:], "IDState", uint8(s)) }

// idStates is a set of states.
type idStates uint32

func in(states ...IDState) (set idStates) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

func (set idStates) has(s IDState) bool { return set>>s&1 != 0 }

// idNext says which states may follow; IDDestroyed follows all.
var idNext = [idStateCount]idStates{
	IDIdle:          in(IDBound, IDAddrResolved, IDListening, IDAccepting),
	IDBound:         in(IDAddrResolved, IDListening),
	IDAddrResolved:  in(IDRouteResolved),
	IDRouteResolved: in(IDConnecting),
	IDConnecting:    in(IDRequesting, IDGone),
	IDRequesting:    in(IDStarting, IDTerminating, IDGone),
	IDAccepting:     in(IDAsked, IDRejecting),
	IDAsked:         in(IDReplying, IDRejecting, IDGone),
	IDReplying:      in(IDStarting, IDGone),
	IDRejecting:     in(IDGone),
	IDTerminating:   in(IDGone),
	IDStarting:      in(IDEstablished, IDDisconnecting, IDGone),
	IDEstablished:   in(IDDisconnecting, IDGone),
	IDDisconnecting: in(IDGone),
}

// idCall is a call of a CMID.
type idCall uint8

const (
	callBindAddr idCall = iota
	callResolveAddr
	callResolveRoute
	callCreateQP
	callListen
	callConnect
	callAccept
	callReject
	callDisconnect
	idCallCount
)

// idCalls says in which states each call may be made, and what to do in the
// others. Destroy may be called in all of them.
var idCalls = [idCallCount]struct {
	name string
	when idStates
	hint string
}{
	callBindAddr:     {"BindAddr", in(IDIdle), "it is the first call"},
	callResolveAddr:  {"ResolveAddr", in(IDIdle, IDBound), "it is the first call, or follows BindAddr"},
	callResolveRoute: {"ResolveRoute", in(IDAddrResolved), "call ResolveAddr, and await CMAddrResolved"},
	callCreateQP:     {"CreateQP", in(IDIdle, IDBound, IDAddrResolved, IDRouteResolved, IDAsked), "it comes before Connect or Accept"},
	callListen:       {"Listen", in(IDIdle, IDBound), "it is the first call, or follows BindAddr"},
	callConnect:      {"Connect", in(IDRouteResolved), "call ResolveAddr and ResolveRoute, await CMRouteResolved, and connect once"},
	callAccept:       {"Accept", in(IDAsked), "it answers CMConnectRequest, once, while the peer waits"},
	callReject:       {"Reject", in(IDAsked), "it answers CMConnectRequest, once, while the peer waits"},
	callDisconnect:   {"Disconnect", in(IDStarting, IDEstablished, IDDisconnecting, IDGone), "it ends a connection; Destroy ends what is less"},
}

// CMStateError says that a call does not fit the state of a CMID. It wraps
// ErrInvalid.
type CMStateError struct {
	Call  string
	State IDState
	Hint  string // what to do
}

func (e *CMStateError) Error() string {
	return fmt.Sprintf("%v: %s of an identifier in state %v: %s", ErrInvalid, e.Call, e.State, e.Hint)
}

// Unwrap returns ErrInvalid.
func (e *CMStateError) Unwrap() error { return ErrInvalid }

// may reports why a call cannot be made now.
func (id *CMID) may(call idCall) error {
	if id.state == IDDestroyed {
		return fmt.Errorf("%w: the identifier was destroyed", ErrClosed)
	}
	if k := &idCalls[call]; !k.when.has(id.state) {
		return &CMStateError{Call: k.name, State: id.state, Hint: k.hint}
	}
	return nil
}

// setState is the only place that changes the state.
func (id *CMID) setState(to IDState) {
	from := id.state
	if !idNext[from].has(to) && (to != IDDestroyed || from == IDDestroyed) {
		panic(fmt.Sprintf("verbs: an identifier goes from state %v to %v", from, to))
	}
	id.state = to
	if l := id.listener; l != nil {
		l.listens.leave(id, from)
		l.listens.enter(id, to)
		if to != IDAccepting && to != IDAsked {
			id.listener = nil
			l.resume()
		}
	}
}

package verbs

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/xwarp/xwarp/internal/progress"
)

// CMEventType is the kind of a CMEvent (rdma_get_cm_event(3)).
type CMEventType uint8

// Kinds of connection events. Those that tell why there is no connection are
// told apart as Linux does for iWARP.
const (
	CMAddrResolved   CMEventType = iota + 1 // ResolveAddr has succeeded
	CMAddrError                             // it has failed
	CMRouteResolved                         // ResolveRoute has succeeded
	CMRouteError                            // it has failed
	CMConnectRequest                        // ID is new, and wants to connect to Listener: Accept or Reject it
	CMConnectError                          // start-up has failed: the peer does not speak MPA as we do, or has left while we accepted
	CMUnreachable                           // there is no way to the peer, or it has not answered in time
	CMRejected                              // the peer rejected it, or closed without an answer, or there is no listener
	CMEstablished                           // connected: the queue pair is in state RTS
	CMDisconnected                          // either end has disconnected, or the connection has failed: see Err
	cmEventCount
)

var cmEventNames = [cmEventCount]string{
	"CMEventType(0)", "address resolved", "address error", "route resolved", "route error", "connect request",
	"connect error", "unreachable", "rejected", "established", "disconnected",
}

func (t CMEventType) String() string { return enumName(cmEventNames[:], "CMEventType", uint8(t)) }

// CMEvent is something that happened to a connection. Taking it acknowledges
// it.
type CMEvent struct {
	Type     CMEventType
	ID       *CMID
	Listener *CMID // CMConnectRequest: the listener that the peer connects to
	Err      error // why, for those that tell of a failure: a *CMError
	// Param: CMConnectRequest, CMEstablished, CMRejected: the peer's private
	// data. CMConnectRequest: also what the peer offers, at most
	// DeviceAttr.MaxQPRdAtom; CMEstablished: what both have agreed on. Valid
	// for good.
	Param ConnParam
}

// CMError says why a connection did not come about, or has ended.
type CMError struct {
	Peer netip.AddrPort
	Err  error // a syscall.Errno, an error of package mpa, an iwarp.Cause
}

func (e *CMError) Error() string {
	return fmt.Sprintf("verbs: connection with %v: %v", e.Peer, e.Err)
}

// Unwrap returns Err.
func (e *CMError) Unwrap() error { return e.Err }

// Why a start-up failed, beside what the carrier and package mpa say.
var (
	errNoAnswer = fmt.Errorf("it has not answered in time: %w", syscall.ETIMEDOUT)
	errHungUp   = fmt.Errorf("it hung up during start-up: %w", syscall.ECONNRESET)
	errEarly    = errors.New("it sent data before start-up was over")
)

// cmEventsOf says which event tells of an error of TCP, as Linux's rdma_cm does
// for iWARP (cma_iw_handler). What is not here makes a CMConnectError.
var cmEventsOf = []struct {
	err   error
	event CMEventType
}{
	{syscall.ECONNREFUSED, CMRejected},
	{syscall.ECONNRESET, CMRejected},
	{syscall.EPIPE, CMRejected}, // it was reset before
	{syscall.ETIMEDOUT, CMUnreachable},
	{syscall.EHOSTUNREACH, CMUnreachable},
	{syscall.ENETUNREACH, CMUnreachable},
	{syscall.ENETDOWN, CMUnreachable}, // our own device is down
}

// ofNetwork reports whether an error tells of the network or the peer, and not
// of what was asked for.
func ofNetwork(err error) bool { return eventOf(err) != CMConnectError }

// eventOf returns the event that tells an initiator of an error of its stream.
func eventOf(err error) CMEventType {
	for _, k := range cmEventsOf {
		if errors.Is(err, k.err) {
			return k.event
		}
	}
	return CMConnectError
}

// CMChannel is a queue of connection events (rdma_create_event_channel(3)).
type CMChannel struct {
	ctx    *Context // nil after Close
	events []CMEvent
	taken  int              // events before that one are gone
	fd     *progress.WaitFD // nil before FD: with it all that comes wakes two more waiters
}

// CreateCMChannel makes a channel. The caller closes it. It fails with ErrClosed, and with
// ErrInvalid where the context carries no connections.
func (c *Context) CreateCMChannel() (*CMChannel, error) {
	if c.closed {
		return nil, ErrClosed
	}
	if c.cfg.Streams == nil {
		return nil, fmt.Errorf("%w: this context carries no connections: open the device with RC", ErrInvalid)
	}
	ch := &CMChannel{ctx: c}
	c.cm.channels = append(c.cm.channels, ch)
	return ch, nil
}

// Close ends a channel whose CMIDs are destroyed; it fails with ErrBusy while
// there are some (rdma_destroy_event_channel(3)).
func (ch *CMChannel) Close() error {
	if ch.ctx == nil {
		return fmt.Errorf("%w: event channel was closed before", ErrInvalid)
	}
	if n := ch.ctx.cm.users(ch); n > 0 {
		return fmt.Errorf("%w: %d identifiers have this channel: destroy them first", ErrBusy, n)
	}
	m := &ch.ctx.cm
	m.channels = slices.DeleteFunc(m.channels, func(x *CMChannel) bool { return x == ch })
	ch.ctx, ch.events, ch.taken = nil, nil, 0
	if ch.fd == nil {
		return nil
	}
	return ch.fd.Close()
}

// GetEvent returns the oldest event that was not taken yet; without one it
// lets the engine step first. It does not wait (rdma_get_cm_event(3) on a
// channel that does not block).
func (ch *CMChannel) GetEvent() (CMEvent, bool) {
	if ch.ctx == nil {
		return CMEvent{}, false
	}
	if !ch.ready() {
		ch.ctx.Engine().Step()
	}
	return ch.take()
}

// Poll returns the oldest event that was not taken yet. As CQ.Poll it makes no
// progress by itself, so that a source of the engine may call it in its turn.
func (ch *CMChannel) Poll() (CMEvent, bool) {
	if ch.ctx == nil {
		return CMEvent{}, false
	}
	return ch.take()
}

// Wait steps and parks until there is an event (a blocking
// rdma_get_cm_event(3)). After Close it returns an event of no type.
func (ch *CMChannel) Wait() CMEvent {
	e, _ := ch.WaitFor(-1)
	return e
}

// FD returns a descriptor for poll(2), as CompChannel.FD does; -1 also if the process has
// no more left.
func (ch *CMChannel) FD() int {
	if ch.ctx == nil {
		return -1
	}
	if ch.fd == nil {
		if ch.fd, _ = ch.ctx.Engine().NewWaitFD(); ch.fd == nil {
			return -1
		}
	}
	for e := ch.ctx.Engine(); !ch.ready() && e.Step() > 0; {
	}
	ch.ctx.signalChannels()
	return ch.fd.FD()
}

func (ch *CMChannel) ready() bool { return ch.taken < len(ch.events) }

// take takes the oldest event. Room is used again when all were taken, or most.
func (ch *CMChannel) take() (CMEvent, bool) {
	if !ch.ready() {
		return CMEvent{}, false
	}
	e := ch.events[ch.taken]
	ch.events[ch.taken] = CMEvent{}
	ch.taken++
	if ch.taken == len(ch.events) {
		ch.events, ch.taken = ch.events[:0], 0
	} else if ch.taken > len(ch.events)/2 {
		n := copy(ch.events, ch.events[ch.taken:])
		clear(ch.events[n:])
		ch.events, ch.taken = ch.events[:n], 0
	}
	ch.signal()
	return e, true
}

// signal makes the descriptor say what is true.
func (ch *CMChannel) signal() {
	if ch.fd != nil {
		ch.fd.Set(ch.ready())
	}
}

// raise appends an event of id.
func (id *CMID) raise(t CMEventType, err error, p ConnParam) {
	e := CMEvent{Type: t, ID: id, Err: err, Param: p}
	if t == CMConnectRequest {
		e.Listener = id.listener
	}
	id.ch.events = append(id.ch.events, e)
	id.ch.signal()
}

// withdraw drops the events that drop says, and reports whether there were any.
func (ch *CMChannel) withdraw(drop func(CMEvent) bool) bool {
	waiting := slices.Delete(ch.events, 0, ch.taken)
	ch.events, ch.taken = slices.DeleteFunc(waiting, drop), 0
	dropped := len(ch.events) < len(waiting)
	ch.signal()
	return dropped
}

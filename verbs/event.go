package verbs

import (
	"errors"
	"slices"

	"github.com/xwarp/xwarp/internal/progress"
)

// EventType is the kind of an AsyncEvent.
type EventType uint8

// Kinds of asynchronous events (ibv_get_async_event(3)).
const (
	EventPeerLost         EventType = iota + 1 // AH: silent for too long
	EventPeerRestarted                         // AH: its process began anew; make a new handle
	EventQPAccessErr                           // QP, AH: the peer asked for memory that was not granted
	EventQPReqErr                              // QP, AH: the peer sent what makes no sense
	EventQPFatal                               // QP
	EventSQDrained                             // QP: in state SQD, and what had begun is done
	EventSRQLimitReached                       // SRQ: see SRQ.Modify
	EventQPLastWQEReached                      // QP: in state Err, and takes nothing more from its SRQ
	EventDeviceFatal                           // the network device is of no use any more: Context.Trouble says why
	EventPortErr                               // something has been wrong with the network device for long: Context.Trouble says what
	eventTypeCount
)

var eventNames = [eventTypeCount]string{
	"EventType(0)", "peer lost", "peer restarted", "queue pair access error", "queue pair request error",
	"queue pair fatal error", "send queue drained", "shared receive queue limit reached", "last request of the shared receive queue reached",
	"device fatal", "port error",
}

func (t EventType) String() string { return enumName(eventNames[:], "EventType", uint8(t)) }

// AsyncEvent is something that happened apart from any work request.
type AsyncEvent struct {
	Type EventType
	QP   *QP
	AH   *AH
	SRQ  *SRQ
}

// eventMax is how many events wait. A program that takes none for so long has no use
// for more; they are counted.
const eventMax = 256

// asyncEvents are the events not taken yet.
type asyncEvents struct {
	waiting []AsyncEvent
	lost    uint64
	signal  *progress.Signal // nil until the descriptor is asked for
}

// raise appends an event.
func (c *Context) raise(e AsyncEvent) {
	a := &c.events
	if len(a.waiting) == eventMax {
		a.lost++
		return
	}
	a.waiting = append(a.waiting, e)
	if a.signal != nil {
		a.signal.Set(true)
	}
}

// GetAsyncEvent returns the oldest event that was not taken yet. Taking it
// acknowledges it. Events come up while the engine steps.
func (c *Context) GetAsyncEvent() (AsyncEvent, bool) {
	a := &c.events
	if len(a.waiting) == 0 {
		return AsyncEvent{}, false
	}
	e := a.waiting[0]
	a.waiting = slices.Delete(a.waiting, 0, 1)
	if a.signal != nil && len(a.waiting) == 0 {
		a.signal.Set(false)
	}
	return e, true
}

// AsyncFD returns a descriptor for poll(2) and its like, always the same, that
// is readable while GetAsyncEvent has something. The context keeps it. It does
// not make the engine step: wait on CompChannel.FD as well. It fails with ErrClosed, or
// where there is no descriptor.
func (c *Context) AsyncFD() (int, error) {
	a := &c.events
	if c.closed {
		return -1, ErrClosed
	}
	if a.signal == nil {
		s, err := progress.NewSignal()
		if err != nil {
			return -1, err
		}
		a.signal = s
		s.Set(len(a.waiting) > 0)
	}
	return a.signal.FD(), nil
}

// closeDescriptors closes what a program may have waited on.
func (c *Context) closeDescriptors() error {
	var err error
	for len(c.channels) > 0 {
		err = errors.Join(err, c.channels[0].Close())
	}
	if c.events.signal != nil {
		err = errors.Join(err, c.events.signal.Close())
		c.events.signal = nil
	}
	return err
}

// LostAsyncEvents returns how many events found no room, because hundreds
// waited to be taken.
func (c *Context) LostAsyncEvents() uint64 { return c.events.lost }

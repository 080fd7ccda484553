package verbs

import "fmt"

// QPState is the state of a queue pair (ibv_modify_qp(3)).
type QPState uint8

// States. Datagrams need no exchange before, so Init, RTR and RTS differ only
// in what may be posted and taken in.
const (
	StateReset QPState = iota // does and accepts nothing
	StateInit                 // receives may be posted
	StateRTR                  // ready to receive: peers are heard too
	StateRTS                  // ready to send: everything works
	StateSQD                  // send queue drained: what has begun ends, nothing new begins
	StateErr                  // every request ends at once, flushed
	stateCount
)

var stateNames = [stateCount]string{"RESET", "INIT", "RTR", "RTS", "SQD", "ERR"}

func (s QPState) String() string { return enumName(stateNames[:], "QPState", uint8(s)) }

// transitions has a bit for each state that may follow.
var transitions = [stateCount]uint8{
	StateReset: 1<<StateReset | 1<<StateInit | 1<<StateErr,
	StateInit:  1<<StateReset | 1<<StateInit | 1<<StateRTR | 1<<StateErr,
	StateRTR:   1<<StateReset | 1<<StateRTS | 1<<StateErr,
	StateRTS:   1<<StateReset | 1<<StateRTS | 1<<StateSQD | 1<<StateErr,
	StateSQD:   1<<StateReset | 1<<StateRTS | 1<<StateSQD | 1<<StateErr,
	StateErr:   1<<StateReset | 1<<StateErr,
}

// StateError says that a queue pair's state does not permit something. It
// wraps ErrInvalid.
type StateError struct {
	From, To QPState // of a transition; else both are the state
	Op       string  // what was tried, if it was no transition
}

func (e *StateError) Error() string {
	if e.Op != "" {
		return fmt.Sprintf("%v: %s in state %v: Modify the queue pair first", ErrInvalid, e.Op, e.From)
	}
	return fmt.Sprintf("%v: no way from state %v to %v: the states are RESET, INIT, RTR, RTS, and SQD beside RTS; ERR and RESET from everywhere", ErrInvalid, e.From, e.To)
}

// Unwrap returns ErrInvalid.
func (e *StateError) Unwrap() error { return ErrInvalid }

// lifecycle is the state of a queue pair, and what goes with it.
type lifecycle struct {
	state    QPState
	draining bool // in SQD: EventSQDrained is still to come
}

// State returns the state.
func (q *QP) State() QPState { return q.state }

// Modify moves the queue pair to another state. Reset forgets every request
// without completions; Err ends all of them with WRFlushErr. SQD lets the
// requests end that have begun, and raises EventSQDrained then; those that
// have not, and new ones, wait for RTS.
func (q *QP) Modify(to QPState) error {
	if q.closed {
		return ErrClosed
	}
	from := q.state
	if to >= stateCount || transitions[from]>>to&1 == 0 {
		return &StateError{From: from, To: to}
	}
	if q.typ == RC && (to == StateRTR || to == StateRTS) && q.rc.phase != rcOpen {
		return fmt.Errorf("%w: a queue pair of type RC gets to state %v by being connected: see CMID", ErrInvalid, to)
	}
	q.setState(to)
	return nil
}

// setState does what a transition means. It is the only place that changes the
// state.
func (q *QP) setState(to QPState) {
	from := q.state
	q.state, q.draining = to, to == StateSQD && (q.draining || from != StateSQD)
	switch {
	case to == StateReset:
		q.reset()
	case to == StateErr && from != StateErr:
		q.flushAll()
		if q.srq != nil {
			q.ctx.raise(AsyncEvent{Type: EventQPLastWQEReached, QP: q})
		}
	case to == StateRTS && from == StateSQD:
		q.resume()
	case to == StateSQD:
		q.checkDrained()
	}
	if q.typ == RD {
		q.ctx.ep.SetReliable(to != StateErr) // else peers would wait for what is never taken
	}
}

// checkDrained raises EventSQDrained, once, when nothing that had begun is left.
// It is called whenever a request ends in SQD.
func (q *QP) checkDrained() {
	if q.draining {
		q.raiseDrained()
	}
}

// raiseDrained is checkDrained in SQD.
func (q *QP) raiseDrained() {
	switch {
	case q.typ == RC && !q.rc.drained(), q.typ == UD && q.ud.sq.begun > 0, q.typ == RD && q.rd.sq.begun > 0:
		return
	}
	q.draining = false
	q.ctx.raise(AsyncEvent{Type: EventSQDrained, QP: q})
}

// mayPostSend reports why no send request can be posted in this state. In SQD
// it waits; in Err it is flushed at once.
func (q *lifecycle) mayPostSend() error {
	if q.state < StateRTS {
		return &StateError{From: q.state, To: q.state, Op: "posting a send request"}
	}
	return nil
}

// mayPostRecv reports why no receive can be posted in this state. In Err it is
// flushed at once.
func (q *lifecycle) mayPostRecv() error {
	if q.state == StateReset {
		return &StateError{From: q.state, To: q.state, Op: "posting a receive"}
	}
	return nil
}

// mayBegin reports whether send requests may go out that have not begun.
func (q *lifecycle) mayBegin() bool { return q.state == StateRTS }

// takesInbound reports whether peers are heard.
func (q *lifecycle) takesInbound() bool { return q.state >= StateRTR && q.state <= StateSQD }

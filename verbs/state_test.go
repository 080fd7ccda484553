package verbs

import (
	"errors"
	"strings"
	"testing"
)

// The state diagram of ibv_modify_qp(3): from down, to across.
const stateDiagram = `
       RESET INIT RTR RTS SQD ERR
RESET  x     x    .   .   .   x
INIT   x     x    x   .   .   x
RTR    x     .    .   x   .   x
RTS    x     .    .   x   x   x
SQD    x     .    .   x   x   x
ERR    x     .    .   .   .   x
`

// statefulQP returns a queue pair in a state, without any requests.
func statefulQP(t *testing.T, s QPState) *QP {
	t.Helper()
	q := newQP(newPD(t, newContext()))
	q.state = s
	return q
}

func TestModify_diagram(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(stateDiagram), "\n")
	heads := strings.Fields(lines[0])
	for from, line := range lines[1:] {
		from, cells := QPState(from), strings.Fields(line)
		if cells[0] != from.String() {
			t.Fatalf("line %v is called %s", from, cells[0])
		}
		for to, cell := range cells[1:] {
			to := QPState(to)
			if heads[to] != to.String() {
				t.Fatalf("column %v is called %s", to, heads[to])
			}
			q := statefulQP(t, from)
			err := q.Modify(to)
			if cell == "x" {
				if err != nil || q.State() != to {
					t.Errorf("%v to %v: %v, now %v", from, to, err, q.State())
				}
				continue
			}
			if e, ok := errors.AsType[*StateError](err); !ok || !errors.Is(err, ErrInvalid) || e.From != from || e.To != to || q.State() != from {
				t.Errorf("%v to %v: %v, now %v", from, to, err, q.State())
			}
		}
	}
	for from := range stateCount {
		for _, to := range []QPState{stateCount, 255} {
			if err := statefulQP(t, from).Modify(to); !errors.Is(err, ErrInvalid) {
				t.Errorf("%v to %v: %v", from, to, err)
			}
		}
	}
	q := statefulQP(t, StateRTS)
	q.closed = true
	if err := q.Modify(StateErr); !errors.Is(err, ErrClosed) {
		t.Errorf("after Destroy: %v", err)
	}
}

func TestState_whatIsPermitted(t *testing.T) {
	for _, c := range []struct {
		s                          QPState
		send, recv, begin, inbound bool
	}{
		{StateReset, false, false, false, false},
		{StateInit, false, true, false, false},
		{StateRTR, false, true, false, true},
		{StateRTS, true, true, true, true},
		{StateSQD, true, true, false, true},
		{StateErr, true, true, false, false},
	} {
		q := statefulQP(t, c.s)
		send, recv := q.mayPostSend(), q.mayPostRecv()
		if (send == nil) != c.send || (recv == nil) != c.recv || q.mayBegin() != c.begin || q.takesInbound() != c.inbound {
			t.Errorf("%v: send %v, recv %v, begins %v, hears peers %v", c.s, send, recv, q.mayBegin(), q.takesInbound())
		}
		for _, err := range []error{send, recv} {
			if err != nil && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.s.String())) {
				t.Errorf("%v: %v", c.s, err)
			}
		}
	}
}

// Events that transitions raise on a queue pair with nothing to do.
func TestModify_events(t *testing.T) {
	q := statefulQP(t, StateRTS)
	q.srq = newSRQ(t, SRQInit{})
	for _, step := range []struct {
		to   QPState
		want EventType // 0: none
	}{
		{StateSQD, EventSQDrained},
		{StateSQD, 0},
		{StateRTS, 0},
		{StateSQD, EventSQDrained},
		{StateErr, EventQPLastWQEReached},
		{StateErr, 0},
		{StateReset, 0},
	} {
		ok(t, q.Modify(step.to))
		e, got := q.ctx.GetAsyncEvent()
		if e.Type != step.want || got && e.QP != q {
			t.Errorf("on the way to %v: %+v", step.to, e)
		}
	}
}

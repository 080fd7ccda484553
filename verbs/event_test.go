package verbs

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAsyncEvents_order(t *testing.T) {
	c := newContext()
	if _, got := c.GetAsyncEvent(); got {
		t.Fatal("an event that nobody raised")
	}
	ahs := make([]AH, eventMax+10)
	for round := range 3 {
		for i := range ahs {
			c.raise(AsyncEvent{Type: EventPeerLost, AH: &ahs[i]})
		}
		for i := range eventMax {
			if e, got := c.GetAsyncEvent(); !got || e.AH != &ahs[i] {
				t.Fatalf("round %d: event %d is %+v, %v", round, i, e, got)
			}
		}
		if e, got := c.GetAsyncEvent(); got || c.LostAsyncEvents() != uint64(10*(round+1)) {
			t.Fatalf("round %d: %+v too many; %d were lost", round, e, c.LostAsyncEvents())
		}
	}
	if a := &c.events; a.waiting[:1][0].AH != nil {
		t.Error("what was taken is kept")
	}
}

// The descriptor is readable while an event waits, those of before it was
// asked for included.
func TestAsyncFD(t *testing.T) {
	c := newContext()
	c.raise(AsyncEvent{})
	fd, err := c.AsyncFD()
	ok(t, err)
	readable := func() bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ok(t, err)
		return n == 1
	}
	c.raise(AsyncEvent{})
	for left := 2; left > 0; left-- {
		if !readable() {
			t.Fatalf("%d events wait, but the descriptor is not readable", left)
		}
		c.GetAsyncEvent()
	}
	if readable() {
		t.Error("readable without an event")
	}
	if c.raise(AsyncEvent{}); !readable() {
		t.Error("not readable with an event")
	}
	if again, err := c.AsyncFD(); err != nil || again != fd {
		t.Errorf("another descriptor: %d, %v", again, err)
	}
	ok(t, c.closeDescriptors())
	c.closed = true
	if _, err := c.AsyncFD(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestEventType_String(t *testing.T) {
	seen := map[string]bool{}
	for e := range eventTypeCount {
		if s := e.String(); s == "" || seen[s] {
			t.Errorf("event %d is called %q", uint8(e), s)
		} else {
			seen[s] = true
		}
	}
	if got := EventType(200).String(); got != "EventType(200)" {
		t.Errorf("an unknown event is called %q", got)
	}
}

func TestAllocs_raise(t *testing.T) {
	c := newContext()
	c.raise(AsyncEvent{})
	if n := testing.AllocsPerRun(100, func() {
		c.raise(AsyncEvent{Type: EventPeerLost})
		c.GetAsyncEvent()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Package trace is a flight recorder: each engine has a ring of the last few
// thousand events, cheap enough to be always on, which [WritePerfetto] turns
// into a file for ui.perfetto.dev.
package trace

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/mono"
)

// Event is one record, 32 bytes long. What the arguments mean depends on the
// ID: see the table in events.go.
type Event struct {
	At   mono.Time
	ID   ID
	Args [4]uint32
}

// Ring holds the last events of one engine. Recording costs less than 15 ns,
// takes no lock and does not allocate. A nil Ring records nothing.
//
// Owner: engine. Read it when the engine stands still.
type Ring struct {
	events []Event
	mask   uint64
	next   uint64 // events recorded so far
}

// New makes a ring for the last capacity events, a power of two. Another
// capacity is a mistake in the program and panics.
func New(capacity int) *Ring {
	if capacity <= 0 || capacity&(capacity-1) != 0 {
		panic(fmt.Sprintf("trace: capacity %d is not a power of two", capacity))
	}
	return &Ring{events: make([]Event, capacity), mask: uint64(capacity - 1)}
}

// Record adds an event. Unused arguments are 0.
func (r *Ring) Record(at mono.Time, id ID, a, b, c, d uint32) {
	if r == nil {
		return
	}
	e := &r.events[r.next&r.mask]
	e.At, e.ID, e.Args = at, id, [4]uint32{a, b, c, d}
	r.next++
}

// Append appends the events that the ring holds to dst, the oldest first.
func (r *Ring) Append(dst []Event) []Event {
	if r == nil {
		return dst
	}
	first := uint64(0)
	if r.next > uint64(len(r.events)) {
		first = r.next - uint64(len(r.events))
	}
	for i := first; i < r.next; i++ {
		dst = append(dst, r.events[i&r.mask])
	}
	return dst
}

// Lost returns how many events newer ones have replaced.
func (r *Ring) Lost() uint64 {
	if r == nil || r.next <= uint64(len(r.events)) {
		return 0
	}
	return r.next - uint64(len(r.events))
}

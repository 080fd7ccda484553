package ring

import (
	"fmt"
	"sync/atomic"
)

// MPSC is a bounded queue from any number of goroutines to one: D. Vyukov's
// bounded queue with one consumer. Each slot carries the number of the lap for
// which it is ready, so that a producer that was preempted in the middle of a
// push holds up the consumer there, but never lets it read half a value.
type MPSC[T any] struct {
	slots []slot[T]
	mask  uint64
	_     [64]byte
	tail  atomic.Uint64 // next number to push; producers compete for it
	_     [64]byte
	head  uint64 // next number to pop; the consumer's own
}

type slot[T any] struct {
	// turn is n when the slot waits for the push of number n, and n+1 when it
	// holds that value.
	turn  atomic.Uint64
	value T
}

// NewMPSC makes a queue for capacity values, a power of two of at least 2: with
// one slot a full lap and an empty one would look alike. Another capacity is a
// mistake in the program and panics.
func NewMPSC[T any](capacity int) *MPSC[T] {
	if capacity < 2 || capacity&(capacity-1) != 0 {
		panic(fmt.Sprintf("ring: capacity %d is not a power of two of at least 2", capacity))
	}
	q := &MPSC[T]{slots: make([]slot[T], capacity), mask: uint64(capacity - 1)}
	for i := range q.slots {
		q.slots[i].turn.Store(uint64(i))
	}
	return q
}

// Push adds v and reports whether there was room. Any goroutine may call it.
func (q *MPSC[T]) Push(v T) bool {
	for {
		n := q.tail.Load()
		s := &q.slots[n&q.mask]
		switch turn := s.turn.Load(); {
		case turn == n:
			if q.tail.CompareAndSwap(n, n+1) {
				s.value = v
				s.turn.Store(n + 1)
				return true
			}
		case turn < n: // the value pushed one lap ago is still there
			return false
		} // else another producer was faster: look again
	}
}

// Pop takes the oldest value. It reports false when there is none, or when the
// producer whose turn it is has not finished. For one goroutine at a time.
func (q *MPSC[T]) Pop() (v T, ok bool) {
	s := &q.slots[q.head&q.mask]
	if s.turn.Load() != q.head+1 {
		return v, false
	}
	v = s.value
	var zero T
	s.value = zero // keeps no garbage alive
	s.turn.Store(q.head + uint64(len(q.slots)))
	q.head++
	return v, true
}

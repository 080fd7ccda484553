package coll

import (
	"errors"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// ErrLengths is part of the error of a message that has another length than expected.
var ErrLengths = errors.New("the ranks call it with different lengths")

// Handle is a message under way.
type Handle interface {
	// Done reports whether Transport.Take may be called.
	Done() bool
}

// Transport moves the messages of a communicator's collectives. They match by
// tag and, among messages of one tag, in order between two ranks.
type Transport interface {
	// Isend begins to send b. It returns nil when b may be changed already.
	Isend(b []byte, to, tag int32) Handle
	// Irecv begins to receive into b.
	Irecv(b []byte, from, tag int32) Handle
	// IsendOver is Isend of the bytes before a cursor, IrecvOver Irecv into them.
	IsendOver(cur dtype.Cursor, to, tag int32) Handle
	IrecvOver(cur dtype.Cursor, from, tag int32) Handle
	// Take ends a message that is done. A length that is not want is an
	// error, of which ErrLengths is part: the ranks disagree about what they are doing.
	// A want below 0 lets a message that need not be done end by itself, whatever it is.
	Take(h Handle, want int, peer int32) error
	// Wait moves messages until h is done, and sleeps when there are none to
	// move. gives says that this rank has begun to send data since the round began, for which
	// others may need the processor.
	Wait(h Handle, gives bool)
	// Step moves messages, and does not wait for any.
	Step()
	// Flush lets go what waits to share a frame with other messages.
	Flush()
}

// pending is a message of the present round.
type pending struct {
	h    Handle
	want int
	peer int32
}

// Run runs the schedule to its end. It allocates nothing once it has run a
// schedule of the same kind.
func (s *Schedule) Run(t Transport) error {
	s.advance(t, true)
	t.Flush()
	return s.err
}

// Advance goes on as far as it can without waiting, and reports whether that is
// the end.
func (s *Schedule) Advance(t Transport) (done bool) { return s.advance(t, false) }

// advance goes on to the end, or to where it would have to wait and may not.
// After an error it ends with the round, or is abandoned.
func (s *Schedule) advance(t Transport, wait bool) (done bool) {
	if s.abandoned {
		return abandon(s, t, wait)
	}
	for ; s.at < len(s.steps); s.at++ {
		st := &s.steps[s.at]
		switch st.what {
		case send:
			s.gives = s.gives || len(st.a) > 0
			if h := t.Isend(st.a, st.peer, s.Tag); h != nil {
				s.begin(h, len(st.a), st.peer)
			}
			continue
		case recv:
			s.begin(t.Irecv(st.a, st.peer, s.Tag), len(st.a), st.peer)
			continue
		case sendOver, recvOver:
			s.beginOver(t, st)
			continue
		case slotBundle:
			beginBundle(s, t, st)
			continue
		case reduce:
			s.op.Reduce(st.a, st.b)
			continue
		case move:
			copyOver(s, t, st, wait)
			continue
		case copyTyped:
			src, dst := s.cursors[st.peer], s.cursors[st.other]
			dtype.Copy(&dst, &src)
			continue
		case await:
			if !s.settle(t, int(st.peer), wait) {
				return false
			}
			continue // even after an error: what is under way has to end
		case slotGive, slotLast, slotPut, slotNote, slotAwait, slotReduce, slotPick, slotPickOr, slotFar, slotCopy:
			if !s.slots.do(s, st, wait) {
				return false
			}
			if s.err != nil { // other members may never send what this one waits for
				s.at = len(s.steps)
				if s.settled < len(s.pending) {
					s.scratch.leave()
				}
				return true
			}
			continue
		case swap:
			if !s.begun {
				beginSwap(s, t, st)
			}
		case fence:
		}
		if !s.round(t, wait) {
			return false
		}
		s.begun = false
		if s.err != nil {
			s.at++
			return abandon(s, t, wait)
		}
	}
	if s.slots != nil && s.err == nil {
		s.err = s.slots.err
	}
	return s.round(t, wait)
}

// abandon goes through the rest of a schedule that has failed. Where lengths differ, others wait
// for messages of this rank, and to be rid of theirs: it sends messages of no bytes, so that they
// find out, too, takes what they send, and waits for none of that, as they may have come to
// an end that is another one.
func abandon(s *Schedule, t Transport, wait bool) (done bool) {
	if !errors.Is(s.err, ErrLengths) {
		s.at = len(s.steps)
		return true
	}
	s.abandoned = true
	for ; s.at < len(s.steps); s.at++ {
		st := &s.steps[s.at]
		switch st.what {
		case recv, recvOver:
			_ = t.Take(t.Irecv(nil, st.peer, s.Tag), -1, st.peer)
		case swap:
			_ = t.Take(t.Irecv(nil, st.other, s.Tag), -1, st.other)
			fallthrough
		case send, sendOver, slotBundle:
			if h := t.Isend(nil, st.peer, s.Tag); h != nil {
				s.begin(h, 0, st.peer)
			}
		case slotGive:
			if !s.slots.spoil(s, st, wait) {
				return false
			}
		}
	}
	return s.round(t, wait)
}

// copyPiece is how many bytes are copied at a time while messages are under way. The copy takes two microseconds, a step
// less.
const copyPiece = 32 << 10

// copyOver copies a of st to b. The messages of the round go on meanwhile: a peer may wait to be told where to write.
func copyOver(s *Schedule, t Transport, st *step, wait bool) {
	src, dst := st.a, st.b
	for wait && len(src) > copyPiece && s.settled < len(s.pending) {
		copy(dst, src[:copyPiece])
		src, dst = src[copyPiece:], dst[copyPiece:]
		t.Step()
	}
	copy(dst, src)
}

// begin adds a message of so many bytes to the round.
func (s *Schedule) begin(h Handle, want int, peer int32) {
	s.pending = append(s.pending, pending{h, want, peer})
}

// beginSwap begins both messages of a swap.
func beginSwap(s *Schedule, t Transport, st *step) {
	s.begun, s.gives = true, len(st.a) > 0
	s.begin(t.Irecv(st.b, st.other, s.Tag), len(st.b), st.other)
	if h := t.Isend(st.a, st.peer, s.Tag); h != nil {
		s.begin(h, len(st.a), st.peer)
	}
}

// beginOver begins a message of what a cursor moves over.
func (s *Schedule) beginOver(t Transport, st *step) {
	cur := s.cursors[st.other]
	var h Handle
	if st.what == sendOver {
		s.gives = true
		h = t.IsendOver(cur, st.peer, s.Tag)
	} else {
		h = t.IrecvOver(cur, st.peer, s.Tag)
	}
	if h != nil {
		s.begin(h, cur.Rest(), st.peer)
	}
}

// round takes all messages of the round, which it ends, and reports whether that
// could be done. It may wait for them.
func (s *Schedule) round(t Transport, wait bool) bool {
	if !s.settle(t, len(s.pending), wait) {
		return false
	}
	s.pending, s.settled, s.gives = s.pending[:0], 0, false
	return true
}

// settle takes the first n messages of the round, and reports whether that could
// be done. It may wait for them.
func (s *Schedule) settle(t Transport, n int, wait bool) bool {
	for ; s.settled < n; s.settled++ {
		p := &s.pending[s.settled]
		if !p.h.Done() {
			if !wait {
				return false
			}
			t.Wait(p.h, s.gives)
		}
		if err := t.Take(p.h, p.want, p.peer); err != nil && s.err == nil {
			s.err = err
		}
	}
	return true
}

// Position returns how far the schedule has come. It rises.
func (s *Schedule) Position() int { return s.at }

// Err returns the first error, after the end.
func (s *Schedule) Err() error { return s.err }

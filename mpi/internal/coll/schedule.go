package coll

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Op is a reduction of bytes that are elements of some type: it sets inout to
// in op inout. It is associative.
type Op interface {
	Reduce(in, inout []byte)
}

// what is the kind of a step.
type what uint8

const (
	fence     what = iota // wait for all messages begun before: the end of a round
	await                 // wait for the first peer messages of the round
	send                  // begin to send a to peer
	recv                  // begin to receive a from peer; another length is an error
	sendOver              // begin to send what cursor other moves over to peer
	recvOver              // begin to receive into cursor other from peer, as recv
	swap                  // a round of its own: send a to peer, receive b from other
	reduce                // b = a op b
	move                  // copy a to b
	copyTyped             // copy cursor peer to cursor other

	slotGive   // begin a collective through slots of up to peer bytes: when this member's is free, make a it
	slotLast   // say that it is there: of the member on which the barrier ends first, or behind slotPut
	slotPut    // copy a to other of this member's, between slotGive and slotLast
	slotNote   // it is a collective of data of member peer
	slotAwait  // wait for the slot of member peer of the host, or for all
	slotReduce // b = the reduction of all slots; a is what this member's has, or nothing
	slotPick   // see pick
	slotPickOr // pick, or the steps behind it if that is a message
	slotFar    // an error unless part other of member peer is a message
	slotBundle // begin to send part other of all members to peer: a of this one, and b has room for all
	slotCopy   // copy the slot of member peer to b
)

// step is one thing that a rank does.
type step struct {
	what  what
	sole  bool  // no other member reads that of the slots
	peer  int32 // in the communicator, as other is
	other int32
	a, b  []byte
}

// Schedule is what one rank does in a collective: messages that are begun one
// after the other, fences that wait for them, and work on its own memory. The
// buffers are not copied: they belong to the schedule until it has come to its
// end.
//
// Messages between two ranks match in the order in which each of them has
// written them down.
//
// The zero value is an empty schedule. Reset makes it empty again and keeps its
// memory for the next one.
type Schedule struct {
	// Tag tells the messages of this schedule from those of others that are
	// under way in the communicator at the same time.
	Tag int32

	// Memory is where Temp may have long memory from; or nil.
	Memory *Memory

	steps     []step
	at        int       // step that is next
	begun     bool      // it is a swap that was begun
	abandoned bool      // see abandon
	pending   []pending // messages of the present round
	settled   int       // of these, how many are done
	gives     bool      // this rank has begun to send data in the present round
	err       error

	op       Op
	elem     int // bytes of an element
	commutes bool

	scratch scratch
	members []int32
	lists   [][]byte
	parts   []Block
	cursors []dtype.Cursor
	slots   *Slots
}

// Reset makes the schedule empty.
func (s *Schedule) Reset() {
	clear(s.steps) // whatever they name may be garbage now
	clear(s.lists)
	clear(s.parts)
	clear(s.cursors)
	s.scratch.reset()
	s.steps, s.lists, s.parts, s.members, s.cursors = s.steps[:0], s.lists[:0], s.parts[:0], s.members[:0], s.cursors[:0]
	s.op, s.slots = nil, nil
	s.Rewind()
}

// Rewind goes back to the beginning, to do the same again.
func (s *Schedule) Rewind() {
	clear(s.pending)
	s.at, s.begun, s.abandoned, s.pending, s.settled, s.gives, s.err = 0, false, false, s.pending[:0], 0, false, nil
}

// Reduction says what the algorithms that follow reduce with: an operation, the
// bytes of an element, and whether the order of operands is of no matter.
func (s *Schedule) Reduction(op Op, elem int, commutes bool) {
	s.op, s.elem, s.commutes = op, elem, commutes
}

// Sends returns how many bytes the messages and slots have that this rank gives to others.
func (s *Schedule) Sends() (bytes int) {
	for i := range s.steps {
		switch st := &s.steps[i]; st.what {
		case send, swap, slotGive, slotPut, slotLast, slotBundle:
			bytes += len(st.a)
		case sendOver:
			bytes += s.cursors[st.other].Rest()
		}
	}
	return bytes
}

func (s *Schedule) send(t Team, to int, b []byte) {
	s.steps = append(s.steps, step{what: send, peer: t.rank(to), a: b})
}

func (s *Schedule) recv(t Team, from int, b []byte) {
	s.steps = append(s.steps, step{what: recv, peer: t.rank(from), a: b})
}

// fence ends a round. What was received is there afterwards, and what was sent
// may be changed.
func (s *Schedule) fence() { s.steps = append(s.steps, step{}) }

// await waits for the first n messages of the round, which are receives: what
// they have brought may be sent on while the others are on their way.
func (s *Schedule) await(n int) { s.steps = append(s.steps, step{what: await, peer: int32(n)}) }

// swap is a round: it receives one message and sends another.
func (s *Schedule) swap(t Team, to int, out []byte, from int, in []byte) {
	s.steps = append(s.steps, step{what: swap, peer: t.rank(to), other: t.rank(from), a: out, b: in})
}

// Copy copies src to dst, unless they are the same.
func (s *Schedule) Copy(dst, src []byte) {
	if len(src) > 0 && &dst[0] != &src[0] {
		s.steps = append(s.steps, step{what: move, a: src, b: dst})
	}
}

// CopyTyped copies src to dst, which do not overlap and are of the same length. It
// is for memory that does not lie side by side: algorithms want bytes that do.
func (s *Schedule) CopyTyped(dst, src dtype.Cursor) {
	if src.Len() == 0 {
		return
	}
	n := int32(len(s.cursors))
	s.cursors = append(s.cursors, src, dst)
	s.steps = append(s.steps, step{what: copyTyped, peer: n, other: n + 1})
}

// combine sets v to other op v when other comes first in the order of ranks,
// else to v op other. other may be changed.
func (s *Schedule) combine(v, other []byte, otherFirst bool) {
	switch {
	case len(other) == 0:
	case otherFirst || s.commutes:
		s.steps = append(s.steps, step{what: reduce, a: other, b: v})
	default:
		s.steps = append(s.steps, step{what: reduce, a: v, b: other})
		s.Copy(v, other)
	}
}

// Combine sets inout to in op inout.
func Combine(s *Schedule, in, inout []byte) { s.combine(inout, in, true) }

// count returns how many elements v has.
func (s *Schedule) count(v []byte) int { return len(v) / s.elem }

// cut returns the parts from..to-1 of v, which is cut into p parts between
// elements.
func (s *Schedule) cut(v []byte, p, from, to int) []byte {
	n := s.count(v)
	return v[split(n, p, from)*s.elem : split(n, p, to)*s.elem]
}

// Temp returns n bytes of memory, from a cache line on, that are the schedule's.
func (s *Schedule) Temp(n int) []byte {
	return mem.BytesOf(s.scratch.take(s.Memory, (n+scratchAlign-1)/scratchAlign*scratchAlign/8))[:n:n]
}

// scratchAlign is a cache line.
const scratchAlign = 64

// ranks returns room for n ranks that is the schedule's.
func (s *Schedule) ranks(n int) []int32 {
	at := len(s.members)
	s.members = slices.Grow(s.members, n)[:at+n]
	fresh := s.members[at : at+n : at+n]
	clear(fresh)
	return fresh
}

// Blocks returns room for a list of n blocks that is the schedule's.
func (s *Schedule) Blocks(n int) [][]byte {
	at := len(s.lists)
	s.lists = slices.Grow(s.lists, n)[:at+n]
	fresh := s.lists[at : at+n : at+n]
	clear(fresh)
	return fresh
}

// Even returns the n equal blocks that b consists of.
func (s *Schedule) Even(b []byte, n int) [][]byte {
	list, each := s.Blocks(n), len(b)/n
	for i := range list {
		list[i] = b[i*each : (i+1)*each]
	}
	return list
}

package coll

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Slots is memory that the members of a team on one host have in common, for collectives
// with short vectors in place of messages. Each member has some that it alone changes, see read:
//
//	0      sequence: of the latest collective that it has begun
//	8      asleep: a bit for each member that sleeps until it has done something
//	64     lines: a cache line for each of the latest collectives in turn
//	       0   stamp: of the collective for which its vector is there, and of how long that is
//	       8   the vector, if it is very short: one miss of the cache then brings all
//	4160   ring: other vectors of the latest collectives, one behind the other
//
// A member that has begun a collective has done all with the ones before. So a line or a part of
// the ring is free for other vectors as soon as all members have begun a later collective than
// the one that it was for.
//
// All members do the same collectives through it, in the same order, so that the vectors of
// a collective are at the same place for all. If they do not, because lengths differ, that is an
// error from then on.
type Slots struct {
	memory   []byte
	sequence []*atomic.Uint64 // by member
	me       int
	ring     int // bytes of a ring: a power of two
	waiter   Waiter
	scratch  []byte // reductions of some members, for each bit of their number
	at       uint64 // the present collective
	seen     uint64 // one that all members are known to have begun
	stamp    uint64 // its stamp: the same for all members that have vectors of the same lengths so far
	inLine   bool   // its vectors are in lines

	// Bytes of all vectors in a ring since the beginning: start is before the present one, end behind
	// it. Those of oldest and later collectives have not been written over.
	start, end uint64
	oldest     uint64
	starts     [slotsAhead]uint64 // by collective
	differs    int                // a member whose stamp is another one; -1: there is none
	err        error              // members do not do the same

	// The members but this one, with those first that may run on its processor, and those below it; and
	// which have a processor to themselves, seen from here, and which run on this one's, by their bits.
	others, below []int
	apart, beside uint64
	processors    []int64 // that members are tied to, from 1 on; 0: to none
	twoCaches     bool    // those are two

	ends
	awaited
}

// ends says where barriers end, and in which order. One ends on member first before it does on others, if the collective behind the
// barrier before was of data of that member; else first is -1. So it is where members take turns on processors, for
// others then wait for that member's turn, or where there are two, of which the other one always comes last to the
// barrier, and leaves it before the root has seen that.
type ends struct {
	turns bool
	later bool // a member below this one runs on its processor
	order bool // members are then to end in their order
	first int
	met   bool  // a barrier was, and no collective of one member's data since
	owes  bool  // this member has not said yet, in a barrier or of parts, that it has given
	turn  []int // for members
}

// awaited is what Ready is about: the members have come to want, with their sequences (free) or the stamps of
// their lines. all: all members are looked at, or have been.
type awaited struct {
	want      uint64 // a collective
	members   []int  // that have not been seen there
	one       [1]int // for members
	free, all bool
	meeting   bool   // in a barrier
	least     uint64 // of the sequences that have been looked at
}

const (
	slotsMost  = 1 << 20             // bytes of all rings,
	ringMost   = 256 << 10           // and of one
	slotMost   = 64 << 10            // bytes of a vector in a ring, or of a piece of one;
	tableMost  = slotMost - slotLine // of blocks with a table of where they end, which has 16 bits
	ringShort  = 16 << 10            // bytes of a ring that short vectors use in turn: caches are small
	ringSlots  = 4                   // vectors of the longest kind that are in a ring at a time, at least, or one after the other
	slotsAhead = 16                  // collectives that a member may be ahead of another one: lines
	slotLine   = 64
	asleepAt   = 8
	linesAt    = slotLine
	ringAt     = linesAt + slotsAhead*slotLine
	vectorAt   = 8
	lineMost   = slotLine - vectorAt // bytes of a vector in a line

	// extentBits are the low bits of a stamp: where the vectors in rings end, and the length of one in a
	// line. Where lengths differ for the first time these ends are less than two rings apart.
	extentBits = 19

	// sleepLooks take 1 us or more: a store comes to the other cores in a fraction of that.
	sleepLooks = 500

	// SlotMembers is how many members may have slots at most.
	SlotMembers = slotsMost / ringShort
)

// ringOf returns how many bytes the rings of so many members have.
func ringOf(members int) int { return min(1<<bits.Len(uint(slotsMost/members))>>1, ringMost) }

// longestOf returns the bytes of the longest vector for which a ring of so many members has room.
func longestOf(members int) int { return ringOf(members) / ringSlots }

// slotOf returns the bytes of the longest vector, or piece of one, that most collectives have in a ring of so many members.
func slotOf(members int) int { return min(longestOf(members), slotMost) }

// tableOf is slotOf for blocks with a table, in one piece.
func tableOf(members int) int { return min(longestOf(members), tableMost) }

// SlotsUsed returns which bytes of the slots of a member, of so many, most collectives use.
func SlotsUsed(member, members int) (off, n int) {
	return member * (ringAt + ringOf(members)), ringAt + ringSlots*slotOf(members)
}

// SlotsSize returns how many bytes the slots of so many members take.
func SlotsSize(members int) int { return members * (ringAt + ringOf(members)) }

// Waiter waits for other members.
type Waiter interface {
	// Begin comes before each collective, of which many may follow one another without a wait.
	// It returns why the collective cannot come to its end.
	Begin() error
	// Await moves messages until the slots are Ready, and sleeps when there are none to
	// move. It returns why they never will be.
	Await(sl *Slots) error
	// Rouse tells members, by their bits, to look at the slots again.
	Rouse(members uint64)
	// Disagrees is the error of a collective in which a member's vectors, or those of an earlier
	// one, have another length than here.
	Disagrees(member int) error
}

// NewSlots returns slots in memory of SlotsSize bytes, which is zero at first, as member me
// of so many sees them.
func NewSlots(memory []byte, me, members int, waiter Waiter) *Slots {
	sl := &Slots{memory: memory, me: me, ring: ringOf(members), waiter: waiter, differs: -1, ends: ends{first: -1}}
	sl.scratch = make([]byte, bits.Len(uint(members))*slotOf(members))
	for i := range members {
		sl.sequence = append(sl.sequence, mem.Word64(memory[i*sl.stride():]))
		if i < me {
			sl.below = append(sl.below, i)
		}
	}
	sl.Part(make([]int64, members), false)
	return sl
}

// Sound reports whether the members have done the same so far, as far as this one knows.
func (sl *Slots) Sound() bool { return sl.err == nil && sl.differs < 0 }

// Serve makes the slots those of another communicator of the same members, which no collective is under way of.
func (sl *Slots) Serve(waiter Waiter) { sl.waiter = waiter }

// Part says which processors members are tied to, from 1 on, or 0 for none, and, as all members say it, whether one
// of them may be the first to leave a barrier.
func (sl *Slots) Part(processors []int64, turns bool) {
	sl.processors, sl.turns, sl.others, sl.apart, sl.beside, sl.later = processors, turns, nil, 0, 0, false
	for i, on := range processors {
		switch mine := processors[sl.me]; {
		case on > 0 && mine > 0 && on != mine:
			sl.apart |= 1 << i
		case i < sl.me:
			sl.later = true
		}
		if on > 0 && on == processors[sl.me] {
			sl.beside |= 1 << i
		}
	}
	all := slices.Compact(slices.Sorted(slices.Values(processors)))
	sl.twoCaches = len(all) == 2 && all[0] > 0
	for _, far := range []uint64{0, 1} {
		for i := range sl.sequence {
			if i != sl.me && sl.apart>>i&1 == far {
				sl.others = append(sl.others, i)
			}
		}
	}
}

// stride returns the bytes from one member's memory to the next one's.
func (sl *Slots) stride() int { return ringAt + sl.ring }

// most returns the length of the longest vector.
func (sl *Slots) most() int { return slotOf(len(sl.sequence)) }

// line returns where the line of a member for the present collective begins.
func (sl *Slots) line(member int) int {
	return member*sl.stride() + linesAt + int(sl.at%slotsAhead)*slotLine
}

// stampOf says for which collective a member's vector is there, if it has come to this one.
func (sl *Slots) stampOf(member int) *atomic.Uint64 { return mem.Word64(sl.memory[sl.line(member):]) }

// slot returns n bytes of the vector of a member for the present collective, from an offset on.
func (sl *Slots) slot(member, off, n int) []byte {
	at := off
	if sl.inLine {
		at += sl.line(member) + vectorAt
	} else {
		at += member*sl.stride() + ringAt + int(sl.start)&(sl.ring-1)
	}
	return sl.memory[at : at+n : at+n]
}

func (sl *Slots) asleep(member int) *atomic.Uint64 {
	return mem.Word64(sl.memory[member*sl.stride()+asleepAt:])
}

// begin begins the next collective, whose vectors have n bytes at most, and are pieces of longer ones if they are in a row. Ready is about
// whether there is room for that of this member.
func (sl *Slots) begin(n int, row bool) {
	sl.at++
	sl.oldest = max(sl.oldest, sl.at-min(sl.at, slotsAhead-1))
	extent := sl.end + uint64(n)
	if sl.inLine = n <= lineMost; !sl.inLine {
		sl.inRing(n, row)
		extent = sl.end + lineMost + 1 // ends are multiples of slotLine
	}
	sl.stamp = sl.at<<extentBits | extent&(1<<extentBits-1)
	if sl.err != nil {
		sl.stamp ^= 1<<extentBits - 1 // for others a vector of another length than theirs
	}
	sl.starts[sl.at%slotsAhead] = sl.start
	if sl.inLine {
		sl.starts[sl.at%slotsAhead] = sl.end // it has nothing in the rings
	}
	for sl.starts[sl.oldest%slotsAhead]+uint64(sl.ring) < sl.end {
		sl.oldest++
	}
	sl.want, sl.members, sl.all, sl.free, sl.least = sl.oldest, sl.others, true, true, sl.at
	if sl.want <= sl.seen {
		sl.members, sl.least = nil, sl.seen // none has to be looked at
	}
}

// inRing places the vectors of n bytes of the present collective in the rings, of which all but rows use the first part, which
// stays in the caches next to the cores.
func (sl *Slots) inRing(n int, row bool) {
	ring := uint64(sl.ring)
	before, at := sl.start&(ring-1), sl.end&(ring-1)
	most := max(ringShort, ringSlots*n)
	if row {
		most = sl.ring
	}
	if end := int(at) + n; end > sl.ring || end > most && before >= uint64(n) {
		sl.end += ring - at // from the beginning of the ring; the vector before is never written over
	}
	sl.start = sl.end
	sl.end += uint64(n+slotLine-1) &^ (slotLine - 1)
}

// give makes v this member's vector, and returns which members sleep until it is there. Its stores do not wait
// until other cores have let go of the line, which takes as long as the collective: Sleep is the
// side that waits.
func (sl *Slots) give(v []byte) (waiters uint64) {
	mem.CopyAcross(sl.slot(sl.me, 0, len(v)), v)
	mem.StoreRelease(sl.stampOf(sl.me), sl.stamp)
	mem.StoreRelease(sl.sequence[sl.me], sl.at)
	if asleep := sl.asleep(sl.me); asleep.Load() != 0 {
		waiters = asleep.Swap(0)
	}
	return waiters
}

// await makes Ready be about the vector of a member, about those of all if it is everyMember, or
// about those of the members below this one.
func (sl *Slots) await(member int32) {
	sl.want, sl.all, sl.free, sl.least = sl.at, member == everyMember || member == membersMet, false, sl.at
	sl.meeting = member == membersMet
	switch member {
	case everyMember:
		sl.members = sl.others
	case membersBelow:
		sl.members = sl.below
	case membersMet:
		sl.members = sl.meets()
	default:
		sl.one[0] = int(member)
		sl.members = sl.one[:]
	}
}

// What slotAwait has in place of a member.
const (
	everyMember  = -1 - iota
	membersBelow // this one
	membersMet   // in a barrier
)

// inBarrier is what slotGive has in place of another member in a barrier, inOrder what slotNote has where each member
// waits for those before it.
const (
	inBarrier = -1
	inOrder   = -2
	inRow     = -3 // slotGive, of a vector in more pieces than short ones have room for: the whole ring is used
	inParts   = -4 // slotGive, of what slotPut puts there until slotLast
)

// meet begins a barrier, and reports whether it ends on this member first.
func (sl *Slots) meet() bool {
	if sl.met {
		sl.first = -1
	}
	sl.met = true
	return sl.first == sl.me && sl.err == nil
}

// meets returns the members that this one waits for in a barrier: all, or, where one of them does that and says
// so, this one, and before it those that have to run on this processor.
func (sl *Slots) meets() []int {
	if sl.first < 0 || sl.first == sl.me {
		return sl.others
	}
	sl.turn = sl.turn[:0]
	for _, i := range sl.others {
		if i != sl.first && sl.apart>>i&1 == 0 {
			sl.turn = append(sl.turn, i)
		}
	}
	sl.turn = append(sl.turn, sl.first)
	return sl.turn
}

// Ready reports whether what is waited for is there. It does not look at what this member has written
// itself: a core that reads a line takes it from the core that wrote it last, so that this one would
// wait for it as for the lines of others.
func (sl *Slots) Ready() bool {
	for ; len(sl.members) > 0; sl.members = sl.members[1:] {
		member := sl.members[0]
		if sl.free {
			have := sl.sequence[member].Load()
			if have < sl.want {
				return false
			}
			sl.least = min(sl.least, have)
			continue
		}
		have := sl.stampOf(member).Load()
		if have>>extentBits < sl.want {
			return false
		}
		if have != sl.stamp && sl.differs < 0 {
			sl.differs = member
		}
	}
	if sl.all {
		sl.seen = max(sl.seen, sl.least)
	}
	return true
}

// Apart reports whether what is not Ready comes from members that have other processors than this one.
// In a barrier that ends in the order of members that is of no use to one that is to leave behind another one.
func (sl *Slots) Apart() bool {
	return len(sl.members) > 0 && sl.apart>>sl.members[0]&1 != 0 && !(sl.later && sl.meeting && sl.order && sl.first >= 0)
}

// Sleep asks to be told when Ready may be true, and reports whether it is not by now. A member may have
// looked at which members sleep just before, while its stamp was on its way, which takes less time than these
// looks. A caller sleeps for a limited time even so.
func (sl *Slots) Sleep() bool {
	if sl.Ready() {
		return false
	}
	sl.asleep(sl.members[0]).Or(1 << sl.me)
	for range sleepLooks {
		if sl.Ready() {
			return false
		}
	}
	return true
}

// do does a step of a schedule, and reports whether that could be done. It may wait.
func (sl *Slots) do(s *Schedule, st *step, wait bool) bool {
	switch st.what {
	case slotGive:
		if !s.begun {
			if s.err = sl.waiter.Begin(); s.err != nil {
				return true
			}
			sl.begin(int(st.peer), st.other == inRow)
		}
		if !sl.reached(s, wait) {
			return false
		}
		switch st.other {
		case inBarrier:
			sl.owes = sl.meet()
		case inParts:
			sl.owes = sl.err == nil // else others are to see now that this one gives up
		default:
			sl.owes = false
		}
		if s.err == nil && !sl.owes {
			sl.tell(st.a)
		}
	case slotPut:
		mem.CopyAcross(sl.parted(sl.me, int(st.other), len(st.a)), st.a)
	case slotLast:
		if sl.owes {
			copy(sl.parted(sl.me, int(st.other), len(st.a)), st.a)
			sl.tell(nil)
		}
	case slotNote:
		if sl.met {
			sl.met, sl.first, sl.order = false, int(st.peer), st.other == inOrder
		}
	case slotReduce:
		if s.op != nil && len(st.b) > 0 {
			sl.reduce(s.op, st.b, st.a, int(st.other), int(st.peer))
			sl.reduced(st)
		}
	case slotPick:
		if sl.pick(st) {
			sl.disagrees(int(st.peer))
		}
	case slotPickOr:
		if !sl.pick(st) {
			s.at += pickInstead
		}
	case slotFar:
		if _, _, message := sl.part(int(st.peer), st.other); !message {
			sl.disagrees(int(st.peer))
			s.err = sl.err // nothing else comes from there
		}
	case slotCopy:
		sl.copy(st)
	case slotAwait:
		if !s.begun {
			sl.await(st.peer)
		}
		if !sl.reached(s, wait) {
			return false
		}
		if sl.differs >= 0 && sl.err == nil {
			sl.err = sl.waiter.Disagrees(sl.differs)
		}
	}
	return true
}

// tell gives v, and rouses the members that wait for it.
func (sl *Slots) tell(v []byte) {
	if waiters := sl.give(v); waiters != 0 {
		sl.waiter.Rouse(waiters)
	}
}

// spoil does a step of a schedule that is abandoned, in which others are to see a vector of
// another length than theirs: all of them have an error from then on.
func (sl *Slots) spoil(s *Schedule, st *step, wait bool) bool {
	err := s.err
	sl.err, s.err = err, nil
	if !sl.do(s, st, wait) {
		s.err = err
		return false
	}
	if s.err != nil {
		s.at = len(s.steps) - 1 // others are no longer there
	}
	s.err = err
	return true
}

// reached reports whether the slots are Ready, for a step that has begun, or that this will never be.
// It may wait.
func (sl *Slots) reached(s *Schedule, wait bool) bool {
	s.begun = !sl.Ready()
	if s.begun && wait {
		s.err = sl.waiter.Await(sl)
		s.begun = false
	}
	return !s.begun
}

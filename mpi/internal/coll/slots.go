package coll

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Slots is memory that the members of a team on one host have in common, for collectives
// with short vectors in place of messages. Each member has some that it alone writes:
//
//	0      sequence: of the latest collective that it has begun
//	8      asleep: a bit for each member that sleeps until it has done something
//	64     lines: a cache line for each of the latest collectives in turn
//	       0   stamp: of the collective for which its vector is there
//	       8   extent of the vector, which is the same for all members: see begin
//	       16  the vector, if it is very short: one miss of the cache then brings all
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
	extent   uint64 // of its vectors: where those in rings end, and the length of one in a line
	inLine   bool   // they are in lines

	// Bytes of all vectors in a ring since the beginning: start is before the present one, end behind
	// it. Those of oldest and later collectives have not been written over.
	start, end uint64
	oldest     uint64
	starts     [slotsAhead]uint64 // by collective
	err        error              // members do not do the same

	// What Ready is about: the members from member up to before have come to want, with their
	// sequences (free) or the stamps of their lines. all: all members are looked at, or have been.
	want           uint64
	member, before int
	free, all      bool
	least          uint64 // of the sequences that have been looked at
}

const (
	slotsMost  = 1 << 20   // bytes of all rings,
	ringMost   = 128 << 10 // and of one
	ringShort  = 16 << 10  // bytes of a ring that short vectors use in turn: caches are small
	ringSlots  = 4         // vectors of the longest kind that are in a ring at a time
	slotsAhead = 64        // collectives that a member may be ahead of another one: lines
	slotLine   = 64
	asleepAt   = 8
	linesAt    = slotLine
	ringAt     = linesAt + slotsAhead*slotLine
	extentAt   = 8
	vectorAt   = 16
	lineMost   = slotLine - vectorAt // bytes of a vector in a line

	// SlotMembers is how many members may have slots at most.
	SlotMembers = slotsMost / ringShort
)

// ringOf returns how many bytes the rings of so many members have.
func ringOf(members int) int { return min(1<<bits.Len(uint(slotsMost/members))>>1, ringMost) }

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
	sl := &Slots{memory: memory, me: me, ring: ringOf(members), waiter: waiter}
	sl.scratch = make([]byte, bits.Len(uint(members))*sl.most())
	for i := range members {
		sl.sequence = append(sl.sequence, mem.Word64(memory[i*sl.stride():]))
	}
	return sl
}

// stride returns the bytes from one member's memory to the next one's.
func (sl *Slots) stride() int { return ringAt + sl.ring }

// most returns the length of the longest vector.
func (sl *Slots) most() int { return sl.ring / ringSlots }

// line returns where the line of a member for the present collective begins.
func (sl *Slots) line(member int) int {
	return member*sl.stride() + linesAt + int(sl.at%slotsAhead)*slotLine
}

// stamp is the collective for which a member's vector is there, if it has come to this one.
func (sl *Slots) stamp(member int) *atomic.Uint64 { return mem.Word64(sl.memory[sl.line(member):]) }

// extentOf is the extent of a member's vector, 8 bytes that are written before the stamp.
func (sl *Slots) extentOf(member int) []byte {
	at := sl.line(member) + extentAt
	return sl.memory[at : at+8]
}

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

// compare notes that a member that was waited for, or one of all, has a vector of another
// length.
func (sl *Slots) compare(member int32) {
	first, before := sl.those(member)
	for m := first; m < before && sl.err == nil; m++ {
		if binary.NativeEndian.Uint64(sl.extentOf(m)) != sl.extent {
			sl.err = sl.waiter.Disagrees(m)
		}
	}
}

// begin begins the next collective, whose vectors have n bytes at most. Ready is about
// whether there is room for that of this member.
func (sl *Slots) begin(n int) {
	sl.at++
	sl.oldest = max(sl.oldest, sl.at-min(sl.at, slotsAhead-1))
	if sl.inLine = n <= lineMost; sl.inLine {
		sl.extent = sl.end + uint64(n)
	} else {
		sl.inRing(n)
		sl.extent = sl.end + lineMost + 1 // ends are multiples of slotLine
	}
	sl.starts[sl.at%slotsAhead] = sl.start
	for sl.starts[sl.oldest%slotsAhead]+uint64(sl.ring) < sl.end {
		sl.oldest++
	}
	sl.want, sl.member, sl.before, sl.all, sl.free, sl.least = sl.oldest, 0, len(sl.sequence), true, true, sl.at
	if sl.want <= sl.seen {
		sl.member, sl.least = sl.before, sl.seen // nobody has to be looked at
	}
}

// inRing places the vectors of n bytes of the present collective in the rings.
func (sl *Slots) inRing(n int) {
	ring := uint64(sl.ring)
	before, at := sl.start&(ring-1), sl.end&(ring-1)
	if end := int(at) + n; end > sl.ring || end > max(ringShort, ringSlots*n) && before >= uint64(n) {
		sl.end += ring - at // from the beginning of the ring; the vector before is never written over
	}
	sl.start = sl.end
	sl.end += uint64(n+slotLine-1) &^ (slotLine - 1)
}

// give makes v this member's vector, and returns who sleeps until it is there.
func (sl *Slots) give(v []byte) (sleepers uint64) {
	mem.CopyAcross(sl.slot(sl.me, 0, len(v)), v)
	binary.NativeEndian.PutUint64(sl.extentOf(sl.me), sl.extent)
	sl.stamp(sl.me).Store(sl.at)
	sl.sequence[sl.me].Store(sl.at)
	if asleep := sl.asleep(sl.me); asleep.Load() != 0 {
		sleepers = asleep.Swap(0)
	}
	return sleepers
}

// await makes Ready be about the vector of a member, about those of all if it is everyMember, or
// about those of the members below this one.
func (sl *Slots) await(member int32) {
	sl.want, sl.all, sl.free, sl.least = sl.at, member == everyMember, false, sl.at
	sl.member, sl.before = sl.those(member)
}

// those returns the first of those that await is about, and who is behind the last.
func (sl *Slots) those(member int32) (first, before int) {
	switch member {
	case everyMember:
		return 0, len(sl.sequence)
	case membersBelow:
		return 0, sl.me
	}
	return int(member), int(member) + 1
}

// What slotAwait has in place of a member.
const (
	everyMember = -1 - iota
	membersBelow
)

// Ready reports whether what is waited for is there.
func (sl *Slots) Ready() bool {
	for ; sl.member < sl.before; sl.member++ {
		word := sl.sequence[sl.member]
		if !sl.free {
			word = sl.stamp(sl.member)
		}
		have := word.Load()
		if have < sl.want {
			return false
		}
		sl.least = min(sl.least, have)
	}
	if sl.all {
		sl.seen = max(sl.seen, sl.least)
	}
	return true
}

// Sleep asks to be told when Ready may be true, and reports whether it is not by now.
func (sl *Slots) Sleep() bool {
	if sl.Ready() {
		return false
	}
	sl.asleep(sl.member).Or(1 << sl.me)
	return !sl.Ready()
}

// reduce sets v to the reduction of what the slots of all members have from an offset on, in
// the order in which messages do it, so that a call rounds as it did before there were slots:
// that of AllreduceDoubling, ReduceScatterHalving, ScanDoubling or, with the member at its top,
// ReduceBinomial.
func (sl *Slots) reduce(op Op, v []byte, off, top int) {
	p := len(sl.sequence)
	n, folded, mirror := p, 0, 0 // mirror: bits of a number that are in reverse
	switch top {
	case inHalving:
		mirror = bits.Len(uint(powerBelow(p))) - 1
		fallthrough
	case inDoubling:
		top, n = 0, powerBelow(p)
		folded = p - n
	case inScan:
		top, n = 0, sl.me+1
	case inExscan:
		top, n = 0, sl.me
	}
	var done [slotLevels][]byte // of 1, 2, 4, ... numbers before i, by the bits of i
	for i := range n {
		level, acc, member := bits.TrailingZeros(^uint(i)), v, i
		if i < n-1 {
			acc = sl.scratch[level*sl.most():][:len(v)]
		}
		if mirror != 0 {
			member = int(bits.Reverse(uint(i)) >> (bits.UintSize - mirror))
		}
		switch {
		case member < folded:
			copy(acc, sl.slot(2*member+1, off, len(v)))
			op.Reduce(sl.slot(2*member, off, len(v)), acc)
		case level == 0 && i < n-1: // it is only read
			acc = sl.slot((member+folded+top)%p, off, len(v))
		default:
			copy(acc, sl.slot((member+folded+top)%p, off, len(v)))
		}
		for k := 0; i>>k != 0; k++ {
			if i>>k&1 != 0 {
				op.Reduce(done[k], acc)
			} else if i < n-1 {
				break
			}
		}
		done[level] = acc
	}
}

// What stands for no member at the top.
const (
	inDoubling = -1 - iota
	inHalving
	inScan   // of the members up to this one
	inExscan // of those before it
)

// slotLevels is how many bits the number of a member has at most.
const slotLevels = 7

// do does a step of a schedule, and reports whether that could be done. It may wait.
func (sl *Slots) do(s *Schedule, st *step, wait bool) bool {
	switch st.what {
	case slotBegin:
		if s.err = sl.waiter.Begin(); s.err == nil {
			sl.begin(int(st.peer))
		}
	case slotGive:
		if sleepers := sl.give(st.a); sleepers != 0 {
			sl.waiter.Rouse(sleepers)
		}
	case slotReduce:
		if s.op != nil && len(st.b) > 0 {
			sl.reduce(s.op, st.b, int(st.other), int(st.peer))
		}
	case slotCopy:
		mem.CopyAcross(st.b, sl.slot(int(st.peer), int(st.other), len(st.b)))
	case slotAwait, slotFree:
		if !s.begun && st.what == slotAwait {
			sl.await(st.peer)
		}
		s.begun = true
		if !sl.Ready() {
			if !wait {
				return false
			}
			if s.err = sl.waiter.Await(sl); s.err != nil {
				return true
			}
		}
		if s.begun = false; st.what == slotAwait {
			sl.compare(st.peer)
		}
	}
	return true
}

// spoil does a step of a schedule that is abandoned, in which others are to see a vector of
// another length than theirs: all of them have an error from then on.
func (sl *Slots) spoil(s *Schedule, st *step, wait bool) bool {
	err := s.err
	if sl.err, s.err = err, nil; st.what == slotGive {
		sl.extent = ^sl.extent
	}
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

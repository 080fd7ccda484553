package coll

import (
	"math/bits"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Slots is memory that the members of a team on one host have in common, for collectives
// with short vectors in place of messages: each member has a line of control and a ring
// of slots, which it alone writes:
//
//	0     sequence: of the latest collective for which its slot is there
//	8     asleep: a bit for each member that sleeps until it rises
//	16    ends: where its slots end, of the latest collectives in turn
//	64    ring: a slot for each of the latest collectives, one behind the other
//
// A member that has begun a collective has done all with the ones before. So a slot is
// free for other vectors as soon as all members have begun a later collective than
// the one that it was for.
//
// All members do the same collectives through it, in the same order, so that the slots of
// a collective are at the same place in the rings of all. If they do not, because lengths
// differ, that is an error from then on.
type Slots struct {
	// Crowded says that members share cores. All members must say the same.
	Crowded bool

	memory   []byte
	sequence []*atomic.Uint64 // by member
	me       int
	ring     int // bytes of a ring: a power of two
	waiter   Waiter
	scratch  []byte // reductions of some members, for each bit of their number
	at       uint64 // the present collective
	seen     uint64 // one that all members are known to have begun

	// Bytes of all slots since the beginning: start is before the present one, end behind
	// it. Those of oldest and later collectives have not been written over.
	start, end uint64
	oldest     uint64
	starts     [slotsAhead]uint64 // by collective
	err        error              // members do not do the same

	// What Ready is about: the members from member up to before have come to want. all: and
	// those below it, too, so that all have.
	want           uint64
	member, before int
	all            bool
}

const (
	slotsMost  = 1 << 20   // bytes of all rings,
	ringMost   = 128 << 10 // and of one
	ringShort  = 16 << 10  // bytes of a ring that short vectors use in turn: caches are small
	ringSlots  = 4         // vectors of the longest kind that are in a ring at a time
	slotsAhead = 256       // collectives that a member may be ahead of another one
	slotLine   = 64
	asleepAt   = 8
	endsAt     = 16
	endsKept   = (slotLine - endsAt) / 8

	// SlotMembers is how many members may have slots at most.
	SlotMembers = slotsMost / ringShort
)

// ringOf returns how many bytes the rings of so many members have.
func ringOf(members int) int { return min(1<<bits.Len(uint(slotsMost/members))>>1, ringMost) }

// SlotsSize returns how many bytes the slots of so many members take.
func SlotsSize(members int) int { return members * (slotLine + ringOf(members)) }

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

// stride returns the bytes from one member's control to the next one's.
func (sl *Slots) stride() int { return slotLine + sl.ring }

// most returns the length of the longest vector.
func (sl *Slots) most() int { return sl.ring / ringSlots }

// slot returns n bytes of the slot of a member for the present collective, from an offset on.
func (sl *Slots) slot(member, off, n int) []byte {
	at := member*sl.stride() + slotLine + int(sl.start)&(sl.ring-1) + off
	return sl.memory[at : at+n : at+n]
}

func (sl *Slots) asleep(member int) *atomic.Uint64 {
	return mem.Word64(sl.memory[member*sl.stride()+asleepAt:])
}

// ended is where a member's slot for the present collective ends.
func (sl *Slots) ended(member int) *atomic.Uint64 {
	return mem.Word64(sl.memory[member*sl.stride()+endsAt+8*int(sl.at%endsKept):])
}

// compare notes that a member whose slot was waited for, or all, had vectors of other lengths
// since the beginning, as far as that can be seen: it may be ahead by now.
func (sl *Slots) compare(member int32) {
	first, before := sl.those(member)
	for m := first; m < before && sl.err == nil; m++ {
		if sl.ended(m).Load() != sl.end && sl.sequence[m].Load() < sl.at+endsKept-1 {
			sl.err = sl.waiter.Disagrees(m)
		}
	}
}

// begin begins the next collective, whose vectors have n bytes at most. Ready is about
// whether its slot is free.
func (sl *Slots) begin(n int) {
	ring := uint64(sl.ring)
	before, at := sl.start&(ring-1), sl.end&(ring-1)
	if end := int(at) + n; end > sl.ring || end > max(ringShort, ringSlots*n) && before >= uint64(n) {
		sl.end += ring - at // from the beginning of the ring; the slot before is never written over
	}
	sl.at++
	sl.start = sl.end
	sl.end += uint64(n+slotLine-1) &^ (slotLine - 1)
	sl.starts[sl.at%slotsAhead] = sl.start
	sl.oldest = max(sl.oldest, sl.at-min(sl.at, slotsAhead-1))
	for sl.starts[sl.oldest%slotsAhead]+ring < sl.end {
		sl.oldest++
	}
	sl.want, sl.member, sl.before, sl.all = sl.oldest, 0, len(sl.sequence), true
	if sl.want <= sl.seen {
		sl.member = sl.before // nobody has to be looked at
	}
}

// give makes v this member's slot, and returns who sleeps until it is there.
func (sl *Slots) give(v []byte) (sleepers uint64) {
	copy(sl.slot(sl.me, 0, len(v)), v)
	sl.ended(sl.me).Store(sl.end)
	sl.sequence[sl.me].Store(sl.at)
	if asleep := sl.asleep(sl.me); asleep.Load() != 0 {
		sleepers = asleep.Swap(0)
	}
	return sleepers
}

// await makes Ready be about the slot of a member, about all slots if it is everyMember, or
// about those of the members below this one.
func (sl *Slots) await(member int32) {
	sl.want, sl.all = sl.at, member == everyMember
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
		if sl.sequence[sl.member].Load() < sl.want {
			return false
		}
	}
	if sl.all {
		sl.seen = max(sl.seen, sl.want)
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

// slotted reports whether all of the team have slots.
func (t Team) slotted() bool { return t.Slots != nil && len(t.Slots.sequence) == t.Size }

// near reports whether a vector of n bytes goes through a slot of the team.
func (t Team) near(n int) bool { return t.slotted() && n <= t.Slots.most() }

// within is the team, without slots if a vector of n bytes does not go through one.
func (t Team) within(n int) Team {
	if !t.near(n) {
		t.Slots = nil
	}
	return t
}

// slotOf returns the first part of a vector that goes through a slot, of whole elements, and
// the rest.
func (t Team) slotOf(v []byte, elem int) (part, rest []byte) {
	n := min(len(v), t.Slots.most()/elem*elem)
	return v[:n], v[n:]
}

func slotStep(s *Schedule, what what, member int, a, b []byte) {
	s.steps = append(s.steps, step{what: what, peer: int32(member), a: a, b: b})
}

// take copies what the slot of a member has from an offset on to b.
func take(s *Schedule, member, off int, b []byte) {
	s.steps = append(s.steps, step{what: slotCopy, peer: int32(member), other: int32(off), b: b})
}

// give begins a collective through the slots of the team, in which this member gives v and
// none more than n bytes, which all of them say alike.
func give(s *Schedule, t Team, v []byte, n int) {
	s.slots = t.Slots
	slotStep(s, slotBegin, n, nil, nil)
	slotStep(s, slotFree, 0, nil, nil)
	slotStep(s, slotGive, 0, v, nil)
}

// BarrierSlots lets each member look at the lines of all others.
//
// Where they share cores, it lets the first look at the lines of all, and the others at its own.
//
// Why: no messages. With more ranks than cores each has to run once, and not once a round; what
// the first does next for all, as the root of a Bcast, is done when the others come to run.
// Cost: p cache lines.
func BarrierSlots(s *Schedule, t Team) {
	if t.Slots.Crowded {
		ReduceSlots(s, t, nil, nil, 0)
		BcastSlots(s, t, nil, 0)
		return
	}
	give(s, t, nil, 0)
	slotStep(s, slotAwait, everyMember, nil, nil)
}

// AllreduceSlots lets each member reduce the slots of all, as AllreduceDoubling does; of many
// bytes each reduces a part, which the others copy.
//
// Why: no messages. Nobody waits for the result of another one where that takes longer than
// to compute it.
// Cost: p n (b + g), or 2 a + n (3 b + g).
func AllreduceSlots(s *Schedule, t Team, in, v []byte) {
	for len(v) > 0 {
		var part []byte
		part, v = t.slotOf(v, s.elem)
		give(s, t, in[:len(part)], len(part))
		in = in[len(part):]
		slotStep(s, slotAwait, everyMember, nil, nil)
		if t.Size == 2 || t.Size*len(part) <= slotsReduced {
			reduceSlots(s, 0, part, inDoubling)
		} else {
			shareReduction(s, t, part)
		}
	}
}

// slotsReduced is how many bytes each member of many reduces rather than to wait for others.
const slotsReduced = 32 << 10

// shareReduction is the rest of AllreduceSlots, where each member reduces a part.
func shareReduction(s *Schedule, t Team, v []byte) {
	mine := s.cut(v, t.Size, t.Me, t.Me+1)
	reduceSlots(s, len(s.cut(v, t.Size, 0, t.Me)), mine, inDoubling)
	give(s, t, mine, len(v)/t.Size+s.elem)
	slotStep(s, slotAwait, everyMember, nil, nil)
	for i := range t.Size {
		if i != t.Me {
			take(s, i, 0, s.cut(v, t.Size, i, i+1))
		}
	}
}

// reduceSlots reduces what the slots of all members have from an offset on to b.
func reduceSlots(s *Schedule, off int, b []byte, top int) {
	s.steps = append(s.steps, step{what: slotReduce, peer: int32(top), other: int32(off), b: b})
}

// ReduceSlots lets the root reduce the slots of all, as ReduceBinomial does. in and out may
// be the same.
//
// Why: as AllreduceSlots; the others wait for nobody.
// Cost: p n (b + g).
func ReduceSlots(s *Schedule, t Team, in, out []byte, root int) {
	for more := true; more; more = len(in) > 0 { // once for nothing at all, too
		var part []byte
		part, in = t.slotOf(in, max(s.elem, 1))
		give(s, t, part, len(part))
		if t.Me == root {
			slotStep(s, slotAwait, everyMember, nil, nil)
			reduceSlots(s, 0, out[:len(part)], topFor(s, root))
			out = out[len(part):]
		}
	}
}

// ReduceScatterSlots lets each member reduce its part of the slots of all, as
// ReduceScatterHalving does.
//
// Why: as AllreduceSlots.
// Cost: n (2 b + g).
func ReduceScatterSlots(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte) {
	off := 0
	for _, b := range blocks[:t.Me] {
		off += len(b)
	}
	give(s, t, in, len(in))
	slotStep(s, slotAwait, everyMember, nil, nil)
	reduceSlots(s, off, out, inHalving)
}

// ScanSlots lets each member reduce the slots of those below it, as ScanDoubling does.
//
// Why: as AllreduceSlots; nobody waits for members above.
// Cost: p n (b + g).
func ScanSlots(s *Schedule, t Team, v []byte, exclusive bool) {
	give(s, t, v, len(v))
	slotStep(s, slotAwait, membersBelow, nil, nil)
	switch {
	case !exclusive:
		reduceSlots(s, 0, v, inScan)
	case t.Me > 0:
		reduceSlots(s, 0, v, inExscan)
	}
}

// BcastSlots lets all members copy from the slot of the root.
//
// Why: one copy, however many read it; the root waits for nobody.
// Cost: n b.
func BcastSlots(s *Schedule, t Team, buf []byte, root int) {
	for more := true; more; more = len(buf) > 0 { // once for nothing at all, too
		var part []byte
		part, buf = t.slotOf(buf, 1)
		if t.Me == root {
			give(s, t, part, len(part))
			continue
		}
		give(s, t, nil, len(part))
		slotStep(s, slotAwait, root, nil, nil)
		take(s, root, 0, part)
	}
}

// AllgatherSlots lets each member copy the slots of all others.
//
// Why: as AllreduceSlots; each block is written once, however many read it.
// Cost: p n b.
func AllgatherSlots(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	longest := 0
	for _, b := range blocks {
		longest = max(longest, len(b))
	}
	give(s, t, mine, longest)
	slotStep(s, slotAwait, everyMember, nil, nil)
	for i, b := range blocks {
		take(s, i, 0, b)
	}
}

// GatherSlots lets the root copy the slots of all others.
//
// Why: as ReduceSlots.
// Cost: p n b, with n bytes of a block.
func GatherSlots(s *Schedule, t Team, mine, all []byte, root int) {
	n := len(mine)
	if t.Me != root {
		give(s, t, mine, n)
		return
	}
	give(s, t, nil, n)
	slotStep(s, slotAwait, everyMember, nil, nil)
	for i := range t.Size {
		if i != root {
			take(s, i, 0, all[i*n:(i+1)*n])
		}
	}
	s.Copy(all[root*n:(root+1)*n], mine)
}

// ScatterSlots lets all members copy their block from the slot of the root.
//
// Why: as BcastSlots.
// Cost: 2 n b, with n bytes in all.
func ScatterSlots(s *Schedule, t Team, all, mine []byte, root int) {
	n := len(mine)
	if t.Me == root {
		give(s, t, all, t.Size*n)
		s.Copy(mine, all[root*n:(root+1)*n])
		return
	}
	give(s, t, nil, t.Size*n)
	slotStep(s, slotAwait, root, nil, nil)
	take(s, root, t.Me*n, mine)
}

// AlltoallSlots lets each member copy its blocks from the slots of all.
//
// Why: as AllgatherSlots.
// Cost: p a + 2 n b, with n bytes in all.
func AlltoallSlots(s *Schedule, t Team, out, in []byte) {
	each := len(out) / t.Size
	give(s, t, out, len(out))
	slotStep(s, slotAwait, everyMember, nil, nil)
	for i := range t.Size {
		take(s, i, t.Me*each, in[i*each:(i+1)*each])
	}
}

// reduceNearMost is how many bytes one rank of a host reduces for all: 8 ranks on two hosts took
// 54 us by slots and 108 by messages for 64 KiB, 1.06 and 0.88 ms for 1 MiB.
const reduceNearMost = 256 << 10

// reduceNear reduces among the ranks of a host.
func reduceNear(s *Schedule, t Team, in, out []byte, root int) {
	if t.slotted() && len(in) <= reduceNearMost && (len(in) == 0 || t.near(s.elem)) {
		ReduceSlots(s, t, in, out, root)
		return
	}
	ReduceBinomial(s, t, in, out, root)
}

// bcastNear sends to the ranks of a host.
func bcastNear(s *Schedule, t Team, buf []byte, root int) {
	if t.slotted() {
		BcastSlots(s, t, buf, root)
		return
	}
	BcastBinomial(s, t, buf, root)
}

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
		copy(st.b, sl.slot(int(st.peer), int(st.other), len(st.b)))
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

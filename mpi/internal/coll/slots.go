package coll

import (
	"math/bits"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Slots is memory that the members of a team on one host have in common, for collectives
// with short vectors in place of messages: each member has a line of control and a few
// slots, which it alone writes:
//
//	0     sequence: of the latest collective for which its slot is there
//	8     asleep: a bit for each member that sleeps until it rises
//	64    slots, one for each of so many collectives in turn
//
// A member that has begun a collective has done all with the ones before. So a slot is
// free for the next vector as soon as all members have begun a later collective than
// the one that it was for.
//
// All members do the same collectives through it, in the same order.
type Slots struct {
	memory   []byte
	sequence []*atomic.Uint64 // by member
	me       int
	waiter   Waiter
	scratch  []byte // reductions of some members, for each bit of their number
	at       uint64 // the present collective
	seen     uint64 // one that all members are known to have begun

	// What Ready is about: member, or all from it on, have come to want.
	want   uint64
	member int
	all    bool
}

// SlotBytes is the longest vector that fits into a slot.
const SlotBytes = 4096

const (
	slotDepth  = 4 // slots of a member
	slotLine   = 64
	asleepAt   = 8
	slotStride = slotLine + slotDepth*SlotBytes

	// SlotMembers is how many members may have slots at most.
	SlotMembers = 64
)

// SlotsSize returns how many bytes the slots of so many members take.
func SlotsSize(members int) int { return members * slotStride }

// Waiter waits for other members.
type Waiter interface {
	// Await moves messages until the slots are Ready, and sleeps when there are none to
	// move. It returns why they never will be.
	Await(sl *Slots) error
	// Rouse tells members, by their bits, to look at the slots again.
	Rouse(members uint64)
}

// NewSlots returns slots in memory of SlotsSize bytes, which is zero at first, as member me
// of so many sees them.
func NewSlots(memory []byte, me, members int, waiter Waiter) *Slots {
	sl := &Slots{memory: memory, me: me, waiter: waiter, scratch: make([]byte, bits.Len(uint(members))*SlotBytes)}
	for i := range members {
		sl.sequence = append(sl.sequence, mem.Word64(memory[i*slotStride:]))
	}
	return sl
}

// slot returns the slot of a member for the present collective.
func (sl *Slots) slot(member, n int) []byte {
	at := member*slotStride + slotLine + int(sl.at%slotDepth)*SlotBytes
	return sl.memory[at : at+n : at+n]
}

func (sl *Slots) asleep(member int) *atomic.Uint64 {
	return mem.Word64(sl.memory[member*slotStride+asleepAt:])
}

// begin begins the next collective. Ready is about whether the slot is free.
func (sl *Slots) begin() {
	sl.at++
	sl.want, sl.member, sl.all = 0, 0, true
	if sl.at >= slotDepth {
		sl.want = sl.at - slotDepth + 1
	}
	if sl.want <= sl.seen {
		sl.member = len(sl.sequence) // nobody has to be looked at
	}
}

// give makes v this member's slot, and returns who sleeps until it is there.
func (sl *Slots) give(v []byte) (sleepers uint64) {
	copy(sl.slot(sl.me, len(v)), v)
	sl.sequence[sl.me].Store(sl.at)
	if asleep := sl.asleep(sl.me); asleep.Load() != 0 {
		sleepers = asleep.Swap(0)
	}
	return sleepers
}

// await makes Ready be about the slot of a member, or about all slots if it is everyMember.
func (sl *Slots) await(member int32) {
	sl.want, sl.member, sl.all = sl.at, int(member), false
	if member == everyMember {
		sl.member, sl.all = 0, true
	}
}

const everyMember = -1

// Ready reports whether what is waited for is there.
func (sl *Slots) Ready() bool {
	if !sl.all {
		return sl.sequence[sl.member].Load() >= sl.want
	}
	for ; sl.member < len(sl.sequence); sl.member++ {
		if sl.sequence[sl.member].Load() < sl.want {
			return false
		}
	}
	sl.seen = max(sl.seen, sl.want)
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

// reduce sets v to the reduction of the slots of all members in the order in which messages
// do it, so that a call rounds as it did before there were slots: that of AllreduceDoubling
// or, with the member at its top, of ReduceBinomial.
func (sl *Slots) reduce(op Op, v []byte, top int) {
	p := len(sl.sequence)
	n, folded := p, 0
	if top == inDoubling {
		top, n = 0, powerBelow(p)
		folded = p - n
	}
	var done [slotLevels][]byte // of 1, 2, 4, ... numbers before i, by the bits of i
	for i := range n {
		level, acc := bits.TrailingZeros(^uint(i)), v
		if i < n-1 {
			acc = sl.scratch[level*SlotBytes:][:len(v)]
		}
		switch {
		case i < folded:
			copy(acc, sl.slot(2*i+1, len(v)))
			op.Reduce(sl.slot(2*i, len(v)), acc)
		case level == 0 && i < n-1: // it is only read
			acc = sl.slot((i+folded+top)%p, len(v))
		default:
			copy(acc, sl.slot((i+folded+top)%p, len(v)))
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

// inDoubling stands for no member at the top.
const inDoubling = -1

// slotLevels is how many bits the number of a member has at most.
const slotLevels = 7

// near reports whether a vector of n bytes goes through the slots of the team.
func (t Team) near(n int) bool {
	return t.Slots != nil && n <= SlotBytes && len(t.Slots.sequence) == t.Size
}

func slotStep(s *Schedule, t Team, what what, member int, a, b []byte) {
	s.slots = t.Slots
	s.steps = append(s.steps, step{what: what, peer: int32(member), a: a, b: b})
}

// give begins a collective through the slots of the team, in which this member gives v.
func give(s *Schedule, t Team, v []byte) {
	slotStep(s, t, slotBegin, 0, nil, nil)
	slotStep(s, t, slotFree, 0, nil, nil)
	slotStep(s, t, slotGive, 0, v, nil)
}

// BarrierSlots lets each member look at the lines of all others.
//
// Why: no messages. With more ranks than cores each has to run once, and not once a round.
// Cost: p cache lines.
func BarrierSlots(s *Schedule, t Team) {
	give(s, t, nil)
	slotStep(s, t, slotAwait, everyMember, nil, nil)
}

// AllreduceSlots lets each member reduce the slots of all, as AllreduceDoubling does.
//
// Why: no messages, and nobody waits for the result of another one.
// Cost: p n (b + g).
func AllreduceSlots(s *Schedule, t Team, in, v []byte) {
	give(s, t, in)
	slotStep(s, t, slotAwait, everyMember, nil, nil)
	slotStep(s, t, slotReduce, inDoubling, nil, v)
}

// ReduceSlots lets the root reduce the slots of all, as ReduceBinomial does. in and out may
// be the same.
//
// Why: as AllreduceSlots; the others wait for nobody.
// Cost: p n (b + g).
func ReduceSlots(s *Schedule, t Team, in, out []byte, root int) {
	give(s, t, in)
	if t.Me == root {
		slotStep(s, t, slotAwait, everyMember, nil, nil)
		slotStep(s, t, slotReduce, topFor(s, root), nil, out)
	}
}

// BcastSlots lets all members copy from the slot of the root.
//
// Why: one copy, however many read it; the root waits for nobody.
// Cost: n b.
func BcastSlots(s *Schedule, t Team, buf []byte, root int) {
	if t.Me == root {
		give(s, t, buf)
		return
	}
	give(s, t, nil)
	slotStep(s, t, slotAwait, root, nil, nil)
	slotStep(s, t, slotCopy, root, nil, buf)
}

// AllgatherSlots lets each member copy the slots of all others.
//
// Why: as AllreduceSlots; each block is written once, however many read it.
// Cost: p n b.
func AllgatherSlots(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	give(s, t, mine)
	slotStep(s, t, slotAwait, everyMember, nil, nil)
	for i, b := range blocks {
		slotStep(s, t, slotCopy, i, nil, b)
	}
}

// reduceNear reduces among the ranks of a host.
func reduceNear(s *Schedule, t Team, in, out []byte, root int) {
	if t.near(len(in)) {
		ReduceSlots(s, t, in, out, root)
		return
	}
	ReduceBinomial(s, t, in, out, root)
}

// bcastNear sends to the ranks of a host.
func bcastNear(s *Schedule, t Team, buf []byte, root int) {
	if t.near(len(buf)) {
		BcastSlots(s, t, buf, root)
		return
	}
	BcastBinomial(s, t, buf, root)
}

// do does a step of a schedule, and reports whether that could be done. It may wait.
func (sl *Slots) do(s *Schedule, st *step, wait bool) bool {
	switch st.what {
	case slotBegin:
		sl.begin()
	case slotGive:
		if sleepers := sl.give(st.a); sleepers != 0 {
			sl.waiter.Rouse(sleepers)
		}
	case slotReduce:
		if s.op != nil && len(st.b) > 0 {
			sl.reduce(s.op, st.b, int(st.peer))
		}
	case slotCopy:
		copy(st.b, sl.slot(int(st.peer), len(st.b)))
	case slotAwait, slotFree:
		if !s.begun && st.what == slotAwait {
			sl.await(st.peer)
		}
		s.begun = true
		if !sl.Ready() {
			if !wait {
				return false
			}
			if err := sl.waiter.Await(sl); err != nil && s.err == nil {
				s.err = err
			}
		}
		s.begun = false
	}
	return true
}

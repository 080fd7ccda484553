package mpi

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/mpi/internal/coll"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// slots is what the ranks of a communicator that share a host have in common for short
// blocking collectives. All ranks make them at the same time, before the same collective,
// and have them or not alike. Nonblocking collectives, persistent ones, and those of
// processes whose goroutines may call at the same time are done with messages.
type slots struct {
	c       *Comm
	call    *call // that is under way
	calls   int   // blocking collectives before there were any
	segment *p2p.Segment
	near    *coll.Slots // nil: there are none, or this rank is alone on its host
	members []int32     // ranks of the communicator that have them
	begun   int         // collectives
}

// slotsAfter is how many blocking collectives a communicator has before it gets slots: those
// that are used for less are better off without.
const slotsAfter = 8

// count counts a blocking collective that has been run, and makes slots when it is time.
func (t *collective) count(op string) {
	if t.slots.calls > slotsAfter || t.part != 0 || t.c.Inter() {
		return
	}
	if t.slots.calls++; t.slots.calls > slotsAfter && t.together() {
		for _, k := range t.blocking {
			if k != nil {
				k.clear() // it is planned anew, with slots
			}
		}
		t.share(op)
	}
}

// together reports whether some of the ranks share a host. They all say the same.
func (t *collective) together() bool {
	seen := map[int]bool{}
	for r := range t.c.size {
		seen[t.c.p.hosts[t.c.at(r)]] = true
	}
	return len(seen) < t.c.size
}

// What ranks that want slots tell of themselves, besides 1: that they share processors, and the only one that they
// run on.
const (
	takesTurns  = 2
	processorAt = 2
)

// share makes the slots. An error is that of a communicator on which no collective works any
// more.
func (t *collective) share(op string) {
	c, sl := t.c, &t.slots
	members := c.neighbours()
	here := 0 // algorithms go by which ranks are on this host: all of those have slots, or none has
	for r := range c.size {
		if c.p.hosts[c.at(r)] == c.p.hosts[c.p.rank] {
			here++
		}
	}
	alone := here == 1
	willing := !c.ep.Threads() && len(members) == here && here <= coll.SlotMembers && (alone || c.ep.Inside().Segments().Awaitable())
	sl.c, sl.members = c, members
	if willing && !alone {
		sl.again()
	}
	err := sl.meet(op, willing && !alone)
	var all []int64
	if err == nil {
		yes := int64(0)
		if willing && (alone || sl.segment != nil) {
			yes = 1 | progress.OnlyProcessor()<<processorAt
			if c.ep.Engine().Crowded() {
				yes |= takesTurns
			}
		}
		all, err = c.gatherInts(op, yes)
	}
	if err != nil || slices.Contains(all, 0) {
		sl.close()
		return
	}
	if sl.segment == nil {
		return
	}
	sl.segment.Withdraw()
	c.p.slots[sl] = struct{}{}
	if sl.near == nil {
		sl.near = coll.NewSlots(sl.segment.Bytes(), slices.Index(members, int32(c.rank)), len(members), sl)
	}
	sl.near.Serve(sl)
	processors, turns := make([]int64, len(members)), true
	for i, r := range members {
		processors[i] = all[r] >> processorAt
		turns = turns && all[r]&takesTurns != 0
	}
	sl.near.Part(processors, turns || len(members) == 2)
}

// meet gives the members a segment: that of a communicator that was freed, or one that the first of them
// makes. Where there is none, segment stays nil. Without wants this rank gets none.
func (sl *slots) meet(op string, wants bool) error {
	c, size := sl.c, coll.SlotsSize(len(sl.members))
	leader := int(sl.members[0])
	var id int64
	if wants && leader == c.rank {
		if sl.segment == nil {
			c.ep.Enter()
			if s, err := c.ep.Inside().Segments().New(size); err == nil {
				sl.segment = s
			}
			c.ep.Leave()
		}
		if sl.segment != nil {
			id = int64(sl.segment.ID())
		}
	}
	ids, err := c.gatherInts(op, id)
	if err != nil || !wants {
		return err
	}
	if sl.segment != nil && int64(sl.segment.ID()) != ids[leader] {
		sl.close() // the leader has not kept it
	}
	if sl.segment == nil && ids[leader] != 0 {
		c.ep.Enter()
		if s, err := c.ep.Inside().Segments().Open(int32(c.at(leader)), uint64(ids[leader]), size); err == nil {
			sl.segment = s
		}
		c.ep.Leave()
	}
	for i := range sl.members {
		at, n := coll.SlotsUsed(i, len(sl.members))
		if sl.segment != nil && sl.near == nil && sl.segment.Populate(at, n) != nil {
			sl.close()
		}
	}
	return nil
}

// keptSlots are those of a communicator that was freed, for the next one that the same ranks want slots for: to
// make new ones takes as long as hundreds of collectives.
type keptSlots struct {
	segment *p2p.Segment
	near    *coll.Slots
	ranks   []int32 // of the world
}

// slotsKept is of how many communicators the slots are kept.
const slotsKept = 4

// keep gives the memory back, or keeps it for the next communicator of these ranks. It is called inside.
func (sl *slots) keep() {
	if sl.near == nil || !sl.near.Sound() || sl.c.IsRevoked() {
		sl.close()
		return
	}
	p := sl.c.p
	if len(p.kept) == slotsKept {
		_ = p.kept[0].segment.Close() // of memory that is mapped: it cannot fail
		p.kept = slices.Delete(p.kept, 0, 1)
	}
	p.kept = append(p.kept, keptSlots{sl.segment, sl.near, sl.ranks()})
	sl.segment = nil
	sl.close()
}

// ranks returns the members' ranks in the world.
func (sl *slots) ranks() (all []int32) {
	for _, r := range sl.members {
		all = append(all, int32(sl.c.at(int(r))))
	}
	return all
}

// again takes slots that were kept.
func (sl *slots) again() {
	p, ranks := sl.c.p, sl.ranks()
	for i, k := range p.kept {
		if slices.Equal(k.ranks, ranks) {
			sl.segment, sl.near = k.segment, k.near
			p.kept = slices.Delete(p.kept, i, i+1)
			return
		}
	}
}

// close gives the memory back.
func (sl *slots) close() {
	if sl.segment != nil {
		_ = sl.segment.Close() // of memory that is mapped: it cannot fail
	}
	if sl.near != nil {
		delete(sl.c.p.slots, sl)
	}
	sl.segment, sl.near = nil, nil
}

// slotsPace is after how many collectives a rank makes progress that comes last to each of
// them, and so never waits: others may wait for something else of it.
const slotsPace = 16

// Begin implements coll.Waiter.
func (sl *slots) Begin() error {
	in, k := sl.c.ep.Inside(), sl.call
	if sl.begun++; sl.begun%slotsPace == 0 {
		in.Pace()
	}
	if err := in.Segments().Hopeless(k.in(int32(sl.c.rank), k.s.Tag)); err != nil {
		return sl.c.wrap(k.op, err)
	}
	return nil
}

// Disagrees implements coll.Waiter.
func (sl *slots) Disagrees(member int) error {
	rank := int(sl.members[member])
	return &Error{Class: ErrTruncate, Op: sl.call.op, Rank: rank, Detail: fmt.Sprintf(
		"rank %d calls it with another length than this rank, or did so with a collective before", rank)}
}

// Await implements coll.Waiter.
func (sl *slots) Await(near *coll.Slots) error {
	k := sl.call
	shared := sl.c.ep.Inside().Segments()
	env := k.in(int32(sl.c.rank), k.s.Tag)
	for tries := 0; !near.Ready(); tries++ {
		if err := shared.Hopeless(env); err != nil {
			return sl.c.wrap(k.op, err)
		}
		shared.Progress(near, tries)
	}
	return nil
}

// Rouse implements coll.Waiter.
func (sl *slots) Rouse(members uint64) {
	for ; members != 0; members &= members - 1 {
		if i := bits.TrailingZeros64(members); i < len(sl.members) {
			sl.c.ep.Inside().Segments().Rouse(int32(sl.c.at(int(sl.members[i]))))
		}
	}
}

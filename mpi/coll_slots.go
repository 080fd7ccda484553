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
	size := coll.SlotsSize(len(members))
	alone := here == 1
	willing := !c.ep.Threads() && len(members) == here && here <= coll.SlotMembers && (alone || c.ep.Inside().Segments().Awaitable())
	var id int64
	if willing && !alone && int(members[0]) == c.rank {
		c.ep.Enter()
		if s, err := c.ep.Inside().Segments().New(size); err == nil {
			sl.segment, id = s, int64(s.ID())
		}
		c.ep.Leave()
	}
	ids, err := c.gatherInts(op, id)
	if err == nil && willing && !alone {
		if leader := members[0]; int(leader) != c.rank && ids[leader] != 0 {
			c.ep.Enter()
			if s, err := c.ep.Inside().Segments().Open(int32(c.at(int(leader))), uint64(ids[leader]), size); err == nil {
				sl.segment = s
			}
			c.ep.Leave()
		}
		willing = sl.segment != nil
		for i := range members {
			at, n := coll.SlotsUsed(i, len(members))
			willing = willing && sl.segment.Populate(at, n) == nil
		}
	}
	var all []int64
	if err == nil {
		yes := int64(0)
		if willing {
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
	if sl.segment != nil {
		sl.segment.Withdraw()
		sl.c, sl.members = c, members
		c.p.slots[sl] = struct{}{}
		sl.near = coll.NewSlots(sl.segment.Bytes(), slices.Index(members, int32(c.rank)), len(members), sl)
		processors, turns := make([]int64, len(members)), true
		for i, r := range members {
			processors[i] = all[r] >> processorAt
			turns = turns && all[r]&takesTurns != 0
		}
		sl.near.Part(processors, turns || len(members) == 2)
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

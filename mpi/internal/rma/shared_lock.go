package rma

import (
	"slices"
	"sync/atomic"
)

// sharedLock is the lock of a target in memory that the ranks of its host have in common.
// Each of them has a number there, its member; the last one is that of the target for
// ranks of other hosts, for which it takes the lock as they ask (locks.go). Which one has the
// lock, or waits to have it for itself alone, follows from words that no other one writes as
// long as that one lives; so what a dead rank had can be taken from it.
type sharedLock struct {
	owner   *atomic.Uint32  // 1 + the member that has it Exclusive, or will when the readers are gone
	far     *atomic.Uint32  // 1: the target waits for it, and is to be told when something is given back
	readers []atomic.Uint32 // of each member: 1 has it Shared
}

// lockWords is how many words there are before the readers.
const lockWords = 2

// try takes the lock for a member, or reports that it cannot now. One that wants it Exclusive
// and cannot keeps later readers out from then on, and tries again, or calls release.
func (l *sharedLock) try(member int, m Mode) bool {
	if m == Shared {
		if l.owner.Load() != 0 {
			return false
		}
		l.readers[member].Store(1)
		if l.owner.Load() == 0 { // the other order than that of a member that becomes the owner
			return true
		}
		l.readers[member].Store(0)
		return false
	}
	me := uint32(member + 1)
	if l.owner.Load() != me && !l.owner.CompareAndSwap(0, me) {
		return false
	}
	for i := range l.readers {
		if l.readers[i].Load() != 0 {
			return false
		}
	}
	return true
}

// release gives back what a member has or waits for.
func (l *sharedLock) release(member int) {
	if l.readers[member].Load() != 0 {
		l.readers[member].Store(0)
	}
	l.owner.CompareAndSwap(uint32(member+1), 0)
}

// lock takes the lock of a neighbour. It waits.
func (nb *neighbours) lock(rank int32, t *target, m Mode) error {
	if nb.try(rank, t, m) {
		return nil
	}
	since := nb.w.counts.waiting()
	for tries := 0; !nb.try(rank, t, m); tries++ {
		if err := nb.w.in.Trouble(nb.w.context, t.world); err != nil {
			nb.unlock(rank, t)
			return err
		}
		nb.w.in.Pause(t.world, tries)
	}
	nb.w.counts.waited(t, since)
	return nil
}

// try takes the lock of a neighbour if it is free.
func (nb *neighbours) try(rank int32, t *target, m Mode) bool {
	if t.near.lock.try(nb.member, m) {
		return true
	}
	if m == Shared { // the target may have seen this rank among the readers
		nb.tellWaiting(rank, t)
	}
	return false
}

// unlock gives the lock of a neighbour back.
func (nb *neighbours) unlock(rank int32, t *target) {
	t.near.lock.release(nb.member)
	nb.tellWaiting(rank, t)
}

// tellWaiting lets a target try again that waits for its own lock.
func (nb *neighbours) tellWaiting(rank int32, t *target) {
	nb.w.in.Pace()
	if t.near.lock.far.Load() != 0 {
		_ = nb.w.word(rank, sayRetry, 0) // a target that is lost waits for nothing
	}
}

// bury takes from a lost rank of this host the locks that it has. Each of the others does
// the same.
func (nb *neighbours) bury(rank int32) {
	if len(nb.members) == 0 || nb.w.targets[rank].near == nil || nb.w.targets[rank].near.lock == nil {
		return
	}
	lost := slices.Index(nb.members, rank)
	for _, member := range nb.members {
		nb.w.targets[member].near.lock.release(lost)
	}
}

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
	readers []atomic.Uint32 // of each member, stride words behind that of the one before: mark has it Shared
	stride  int
	mark    uint32
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
		l.readers[member*l.stride].Store(l.mark)
		if l.owner.Load() == 0 { // the other order than that of a member that becomes the owner
			return true
		}
		l.readers[member*l.stride].Store(0)
		return false
	}
	me := uint32(member + 1)
	if l.owner.Load() != me && !l.owner.CompareAndSwap(0, me) {
		return false
	}
	for i := 0; i < len(l.readers); i += l.stride {
		if l.readers[i].Load() == l.mark {
			return false
		}
	}
	return true
}

// release gives back what a member has or waits for.
func (l *sharedLock) release(member int) {
	if r := &l.readers[member*l.stride]; r.Load() == l.mark {
		r.Store(0)
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

// turn waits until this rank may change elements of a neighbour: some, beside others (Shared), or
// all that there are, Exclusive. A rank that has a turn waits for nothing, and does not go on with anything else.
func (nb *neighbours) turn(rank int32, t *target, m Mode) error {
	l := t.near.turn
	for tries := 0; l != nil && !l.try(nb.member, m); tries++ {
		if err := nb.w.in.Trouble(nb.w.context, t.world); err != nil {
			l.release(nb.member)
			return err
		}
		nb.w.in.Pause(t.world, tries)
	}
	return nil
}

// leave ends a turn beside others.
func (nb *neighbours) leave(t *target) {
	if l := t.near.turn; l != nil {
		l.readers[nb.member*l.stride].Store(0)
	}
}

// bury takes from a lost rank of this host the locks and the turn that it has. Each of the others
// does the same.
func (nb *neighbours) bury(rank int32) {
	if len(nb.members) == 0 || nb.w.targets[rank].near == nil {
		return
	}
	lost := slices.Index(nb.members, rank)
	for _, member := range nb.members {
		near := nb.w.targets[member].near
		if near.lock != nil {
			near.lock.release(lost)
		}
		if near.turn != nil {
			near.turn.release(lost)
		}
	}
}

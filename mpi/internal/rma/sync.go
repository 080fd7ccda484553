package rma

import (
	"errors"
	"fmt"
)

// Epochs, as MPI 4.1, section 12.5 has them. Locks are there when Lock and LockAll
// return, so that what a program may do under one it may do at once.

func wrong(rank int32, format string, args ...any) error {
	return &Error{Code: Sync, Target: rank, Detail: fmt.Sprintf(format, args...)}
}

// where says in which epoch a rank is.
var where = [...]string{"no access epoch", "the epoch of a fence", "the epoch of Start", "the epoch of Lock", "the epoch of LockAll"}

// may reports whether operations on a target may be started.
func (w *Window) may(rank int32) error {
	switch t := w.target(rank); {
	case w.access == some && t.asked:
		return w.locked(rank)
	case w.access == fenced, w.access >= some && t.held != Unlocked, w.access == starts && t.begun:
		return nil
	case w.access == all: // the ghost that keeps the lock is lost, whichever process does the operations
		return w.in.Trouble(w.context, w.keptBy(t))
	}
	return wrong(rank, "there is no epoch for operations on rank %d, but %s: call Lock, LockAll, Start or Fence before", rank, where[w.access])
}

// Passive says whether there is a passive epoch for operations on a target (-1: on all
// that it has), which flushes and operations with requests need.
func (w *Window) Passive(rank int32) error {
	if w.access == all || w.access == some && (rank < 0 || w.target(rank).held != Unlocked) {
		return nil
	}
	return wrong(rank, "it is for the epochs of Lock and LockAll, and this is %s", where[w.access])
}

// enter begins an access epoch where there is none: that of a fence without operations is
// none.
func (w *Window) enter(a access) error {
	switch {
	case w.access == none, w.access == fenced && !w.busy, w.access == some && a == some:
		w.access = a
		return nil
	}
	return wrong(-1, "%s has not ended", where[w.access])
}

// Fence ends the epoch before a fence, as far as this rank alone can: operations are
// complete here and at their targets. The caller meets the others then, and calls Fenced.
func (w *Window) Fence(precede bool) error {
	if w.access != none && w.access != fenced || w.posted {
		if w.posted {
			return wrong(-1, "an exposure epoch of Post has not ended")
		}
		return wrong(-1, "%s has not ended", where[w.access])
	}
	if !precede && w.busy {
		return wrong(-1, "ModeNoPrecede, after operations")
	}
	return w.FlushAll()
}

// Fenced ends a fence: another epoch begins, if one is to succeed.
func (w *Window) Fenced(succeed bool) {
	w.counts.epochs.Fences++
	if w.busy = false; succeed {
		w.access = fenced
	} else {
		w.access = none
	}
}

// Lock locks a target, and returns when it has the lock, or, if that is for later, lets the first
// operation wait for it. free says that no rank has, or will ask for, one that conflicts
// (MPI_MODE_NOCHECK).
func (w *Window) Lock(rank int32, m Mode, free, later bool) error {
	t := w.target(rank)
	if t.held != Unlocked {
		return wrong(rank, "rank %d is locked already", rank)
	}
	if err := w.gone(rank); err != nil {
		return err
	}
	if err := w.enter(some); err != nil {
		return err
	}
	var err error
	if w.target(w.me).asked { // a rank that waits for two at a time may get the second one first
		err = w.locked(w.me)
	}
	w.opened++
	w.counts.epochs.Locks++
	if err == nil {
		err = w.ask(rank, sayLock, m, free)
	}
	if err == nil && !later {
		err = w.locked(rank)
	}
	if err != nil {
		if t.near != nil && !free {
			w.near.unlock(rank, t)
		}
		w.close(rank)
	}
	return err
}

// ask asks for a lock.
func (w *Window) ask(rank, what int32, m Mode, free bool) error {
	t := w.target(rank)
	t.held, t.free, t.asked, t.refused = m, free, !free && t.near == nil, false
	switch {
	case free:
		return nil
	case t.near == nil:
		return w.guard(rank, what, uint32(m))
	case what == sayTry:
		t.refused = !w.near.try(rank, t, m)
		return nil
	}
	return w.near.lock(rank, t, m)
}

// locked waits for a lock.
func (w *Window) locked(rank int32) error {
	t := w.target(rank)
	keeper, _ := w.keeper(t)
	if t.asked {
		since := w.counts.waiting()
		for t.asked {
			if err := w.in.Trouble(w.context, keeper); err != nil {
				w.abandon(rank, err)
				return t.take()
			}
			w.in.Progress()
		}
		w.counts.waited(t, since)
	}
	return w.in.Trouble(w.context, keeper) // or another goroutine has abandoned it
}

// close ends the epoch of a lock.
func (w *Window) close(rank int32) {
	w.target(rank).held = Unlocked
	if w.opened--; w.opened == 0 && w.access == some {
		w.access, w.busy = none, false
	}
}

// LockAll locks all targets, shared. Ranks that are lost are passed over: operations on
// them fail.
//
// It first tries all at a time. Where that fails, it gives back the locks behind the first
// target that has none for it now, and waits for the rest one by one, in the order of
// ranks: one that waits holds lower ones only, so that no two wait for each other.
func (w *Window) LockAll(free bool) error {
	if err := w.enter(all); err != nil {
		return err
	}
	w.counts.epochs.LockAlls++
	free = free || !w.locks
	for i := range w.ranks {
		if err := w.ask(int32(i), sayTry, Shared, free); err != nil {
			w.abandon(int32(i), err)
		}
	}
	first := w.ranks
	for i := range w.ranks {
		if err := w.locked(int32(i)); err != nil && w.over() {
			w.access = none
			return err
		}
		if w.targets[i].refused {
			first = min(first, i)
		} else if i > first {
			w.giveBack(int32(i))
		}
	}
	for i := first; i < w.ranks; i++ {
		err := w.ask(int32(i), sayLock, Shared, false)
		if err == nil {
			err = w.locked(int32(i))
		} else {
			w.abandon(int32(i), err)
		}
		if err != nil && w.over() {
			w.access = none
			return err
		}
	}
	for i := range w.ranks {
		if t := &w.targets[i]; t.Client != 0 && w.in.Lost(w.keptBy(t)) {
			t.held = Unlocked // no rank has its lock any more
		}
	}
	return nil
}

// keptBy returns the process that keeps the lock of a rank.
func (w *flow) keptBy(t *target) int32 {
	world, _ := w.keeper(t)
	return world
}

// giveBack gives back a lock behind which nothing was done. It fails for a rank that is lost,
// which has given none.
func (w *Window) giveBack(rank int32) {
	if t := w.target(rank); t.near != nil {
		w.near.unlock(rank, t)
		return
	}
	_ = w.guard(rank, sayUnlock, 0)
}

// over reports whether nothing works any more, whichever rank is at the other end.
func (w *flow) over() bool { return w.in.Trouble(w.context, w.targets[w.me].home) != nil }

// Unlock ends the epoch of a lock: operations are complete, here and there.
func (w *Window) Unlock(rank int32) error {
	if w.access != some || w.target(rank).held == Unlocked {
		return wrong(rank, "rank %d is not locked: this is %s", rank, where[w.access])
	}
	w.in.Pace()
	err := quiet(&w.flow, rank)
	if w.target(rank).asked {
		err = join(err, w.locked(rank))
	}
	err = join(err, join(w.unlock(rank), w.settle(rank)))
	w.close(rank)
	return join(err, w.gone(rank))
}

// unlock gives a lock back behind the operations, and asks to be told of it where there
// were some. What is to be read is read before.
func (w *Window) unlock(rank int32) error {
	t := w.target(rank)
	before := w.await(rank, t, gets) // whatever became of operations, the lock is given back
	if t.free {
		return join(before, w.ping(rank, t))
	}
	if t.near != nil {
		before = join(before, join(w.ping(rank, t), w.settle(rank)))
		w.near.unlock(rank, t)
		return before
	}
	if keeper, _ := w.keeper(t); keeper != t.world { // to which the unlock does not say that operations are done
		before = join(before, join(w.ping(rank, t), w.settle(rank)))
	}
	told := uint32(0)
	if t.dirty {
		told = 1
		t.acks++
		t.dirty = false
	}
	if err := w.guard(rank, sayUnlock, told); err != nil {
		w.abandon(rank, err)
		return join(before, t.take())
	}
	return before
}

// UnlockAll ends the epoch of LockAll.
func (w *Window) UnlockAll() error {
	if w.access != all {
		return wrong(-1, "this is %s", where[w.access])
	}
	w.in.Pace()
	all := quietAll(&w.flow)
	for i := range w.ranks {
		wanted := w.targets[i].dirty || w.targets[i].left(whole)
		if err := w.unlock(int32(i)); wanted { // of the others nothing is lost
			all = join(all, err)
		}
	}
	all = join(all, w.settleAll())
	for i := range w.ranks {
		w.targets[i].held = Unlocked
	}
	w.access, w.busy = none, false
	return all
}

// ping asks a target to tell when all before is done.
func (w *flow) ping(rank int32, t *target) error {
	if !t.dirty {
		return nil
	}
	t.dirty = false
	t.acks++
	if err := w.word(rank, sayFlush, 0); err != nil {
		w.abandon(rank, err)
		return t.take()
	}
	return nil
}

// Flush completes all operations on a target, here and there.
func (w *flow) Flush(rank int32) error {
	w.in.Pace()
	if !w.target(rank).alone() {
		return flushOthers(w, rank)
	}
	if err := w.ping(rank, w.target(rank)); err != nil {
		return err
	}
	return join(w.settle(rank), w.gone(rank))
}

// gone reports that a target is lost of which no message tells: its memory is mapped here, or a
// ghost serves it, which goes on.
func (w *flow) gone(rank int32) error {
	t := w.target(rank)
	if t.near == nil && t.client == 0 && t.alone() {
		return nil
	}
	return w.in.Trouble(w.context, t.home)
}

// FlushAll is Flush of all targets.
func (w *flow) FlushAll() error {
	w.sweeps++
	w.in.Pace()
	clear(w.spread.loads)
	var all error
	for i := 0; i < len(w.touched); i++ { // other goroutines may add to it meanwhile
		rank := w.touched[i]
		all = join(all, w.ping(rank, w.target(rank)))
	}
	all = join(all, w.settleAll())
	w.sweeps--
	w.sweep()
	return all
}

// settleAll is settle of all targets that something was sent to.
func (w *flow) settleAll() (all error) {
	w.sweeps++
	for i := 0; i < len(w.touched); i++ {
		rank := w.touched[i]
		all = join(all, join(w.settle(rank), w.gone(rank)))
	}
	w.sweeps--
	w.sweep()
	return all
}

// sweep takes the targets out of touched with which nothing is under way, if no goroutine
// goes over them.
func (w *flow) sweep() {
	if w.sweeps > 0 {
		return
	}
	kept := w.touched[:0]
	for _, rank := range w.touched {
		t := w.target(rank)
		if t.listed = t.dirty || t.left(whole); t.listed {
			kept = append(kept, rank)
		}
	}
	w.touched = kept
}

// join is errors.Join where there mostly are none.
func join(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// FlushLocal completes all operations on a target here: their memory is the program's.
func (w *flow) FlushLocal(rank int32) error {
	w.in.Pace()
	t := w.target(rank)
	err := w.await(rank, t, local)
	for i := range t.beside() {
		err = join(err, w.await(i, w.target(i), local))
	}
	return err
}

// FlushLocalAll is FlushLocal of all targets.
func (w *flow) FlushLocalAll() (all error) {
	w.sweeps++
	w.in.Pace()
	for i := 0; i < len(w.touched); i++ {
		all = join(all, w.FlushLocal(w.touched[i]))
	}
	w.sweeps--
	w.sweep()
	return all
}

// settle waits for all that is under way to a target, and tells what became of it.
func (w *flow) settle(rank int32) error { return w.await(rank, w.target(rank), whole) }

// extent is how much of what is under way is waited for.
type extent uint8

const (
	gets  extent = iota // what brings data, and what no message to the target comes behind
	local               // and what uses memory of this rank
	whole               // and what is not done at the target
)

// left reports whether something is under way.
func (t *target) left(e extent) bool {
	return t.fetches > 0 || t.apart > 0 || e >= local && t.writes > 0 || e == whole && t.acks > 0
}

// await waits for what is under way to a target.
func (w *flow) await(rank int32, t *target, e extent) error {
	if !t.left(e) {
		return t.take()
	}
	since := w.counts.waiting()
	for t.left(e) {
		if w.reap(); !t.left(e) {
			break
		}
		if err := w.in.Trouble(w.context, t.world); err != nil && (t.fetches > 0 || t.acks > 0) {
			w.abandon(rank, err) // Writes and Reads end by themselves
			continue
		}
		w.in.Progress()
	}
	w.counts.waited(t, since)
	return t.take()
}

// Ended reports whether an operation has come to its end; if not, the caller makes
// progress and asks again.
func (w *flow) Ended(rank int32, tally *Tally) bool {
	if tally.Left > 0 && len(w.pending) > 0 {
		w.reap()
	}
	if tally.Left > 0 {
		if err := w.in.Trouble(w.context, w.target(rank).world); err != nil && w.target(rank).fetches > 0 {
			w.abandon(rank, err)
		}
		for i := range w.target(rank).beside() {
			if err := w.in.Trouble(w.context, w.target(i).world); err != nil && w.target(i).fetches > 0 {
				w.abandon(i, err)
			}
		}
	}
	return tally.Left <= 0
}

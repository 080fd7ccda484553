package mpi

import (
	"errors"

	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// LockType says which ranks may have a lock at the same time.
type LockType int

// The kinds of locks.
const (
	LockShared    LockType = iota + 1 // with others that are shared (MPI_LOCK_SHARED)
	LockExclusive                     // with no other (MPI_LOCK_EXCLUSIVE)
)

// WinMode are assertions about the calls of a window, to be joined by or (MPI 4.1, section
// 12.5.5).
type WinMode uint

// The assertions.
const (
	ModeNoCheck   WinMode = 1 << iota // Lock: no rank has or asks for a lock that conflicts. Start: all have posted. Post: no rank has started (MPI_MODE_NOCHECK)
	ModeNoStore                       // the program has not written its memory since the last synchronization (MPI_MODE_NOSTORE)
	ModeNoPut                         // no rank will write it until the next one (MPI_MODE_NOPUT)
	ModeNoPrecede                     // Fence: no rank has started operations since the last one (MPI_MODE_NOPRECEDE)
	ModeNoSucceed                     // Fence: no rank will until the next one (MPI_MODE_NOSUCCEED)
)

// begin checks what all calls have in common that begin an epoch of some kind.
func (w *Win) begin(op string, kind epochSet, mode, legal WinMode) error {
	if err := w.live(op); err != nil {
		return err
	}
	if w.used&kind == 0 {
		return fail(ErrRMASync, op, "epochs_used, or no_locks, has said that the window has no epochs of this kind")
	}
	if mode&^legal != 0 {
		return fail(ErrAssert, op, "assertion %#x is not for this call", uint(mode&^legal))
	}
	return nil
}

// Fence ends the epoch before it, and begins another one, of all ranks (MPI_Win_fence).
// All of them call it. Operations that were started before are complete, here and at
// their targets; what other ranks have done with the memory of this one is there.
// ModeNoSucceed says that no epoch begins.
//
// If a ghost has ended (xrun --ghost-failure fallback), the operations that it may or may not
// have done make the Fence fail, with an error of class [ErrGhostFailed], on the ranks that
// have started them. In any case the ranks that it has served serve themselves from then on.
func (w *Win) Fence(mode WinMode) error {
	const op = "Win.Fence"
	if err := w.begin(op, epochFence, mode, ModeNoStore|ModeNoPut|ModeNoPrecede|ModeNoSucceed); err != nil {
		return w.report(err)
	}
	t := w.c.watch().begin(op, w.c, Undefined, Undefined, 0)
	w.c.ep.Enter()
	err := w.w.Fence(mode&ModeNoPrecede == 0)
	w.c.ep.Leave()
	if wrong, ok := errors.AsType[*rma.Error](err); !ok || wrong.Code != rma.Sync {
		w.c.coll.op = op
		if met := w.meet(op); err == nil {
			err = met
		}
		w.c.ep.Enter()
		w.w.Fenced(mode&ModeNoSucceed == 0)
		w.c.ep.Leave()
	}
	err = w.failed(op, err)
	t.end(err)
	return err
}

// ranks returns the ranks of a group in the group of the window.
func (w *Win) ranks(op string, g *Group) ([]int32, error) {
	if g == nil {
		return nil, noGroup(op)
	}
	ranks := make([]int32, len(g.world))
	for i, world := range g.world {
		if ranks[i] = int32(w.c.from(world)); ranks[i] < 0 || int(ranks[i]) >= w.c.size {
			return nil, fail(ErrGroup, op, "rank %d of the group is not in that of the window", i)
		}
	}
	return ranks, nil
}

// Post begins an exposure epoch: the ranks of g may operate on the memory of this one
// after their Start (MPI_Win_post). ModeNoCheck says that theirs say so too.
func (w *Win) Post(g *Group, mode WinMode) error {
	return w.grouped("Win.Post", g, mode, ModeNoCheck|ModeNoStore|ModeNoPut, w.post)
}

// Start begins an access epoch for operations on the ranks of g (MPI_Win_start). It waits
// until each has called Post.
func (w *Win) Start(g *Group, mode WinMode) error {
	return w.grouped("Win.Start", g, mode, ModeNoCheck, w.start)
}

func (w *Win) post(ranks []int32, free bool) error  { return w.w.Post(ranks, free) }
func (w *Win) start(ranks []int32, free bool) error { return w.w.Start(ranks, free) }

// grouped is a call with a group.
func (w *Win) grouped(op string, g *Group, mode, legal WinMode, f func([]int32, bool) error) error {
	err := w.begin(op, epochPSCW, mode, legal)
	if err != nil {
		return w.report(err)
	}
	ranks, err := w.ranks(op, g)
	if err != nil {
		return w.report(err)
	}
	t := w.beginSync(op, Undefined)
	err = f(ranks, mode&ModeNoCheck != 0)
	w.c.ep.Inside().Flush()
	return w.endSync(op, t, err)
}

// beginSync begins a call on a target, or on several, and endSync ends it.
func (w *Win) beginSync(op string, target int) *Call {
	t := w.c.watch().begin(op, w.c, target, Undefined, 0)
	w.c.ep.Enter()
	return t
}

func (w *Win) endSync(op string, t *Call, err error) error {
	w.c.ep.Leave()
	err = w.failed(op, err)
	t.end(err)
	return err
}

// Complete ends the access epoch of Start (MPI_Win_complete). Operations are complete
// here; at their targets they are when these return from Wait.
func (w *Win) Complete() error { return w.closes("Win.Complete", (*rma.Window).Complete) }

// Wait ends the exposure epoch of Post when all its ranks have called Complete
// (MPI_Win_wait).
func (w *Win) Wait() error { return w.closes("Win.Wait", (*rma.Window).Wait) }

// Test is Wait that does not wait, and reports whether the epoch has ended
// (MPI_Win_test).
func (w *Win) Test() (bool, error) {
	const op = "Win.Test"
	if err := w.live(op); err != nil {
		return false, w.report(err)
	}
	w.c.ep.Enter()
	done, err := w.w.Test()
	w.c.ep.Leave()
	return done, w.failed(op, err)
}

// closes is a call that waits for what was started.
func (w *Win) closes(op string, f func(*rma.Window) error) error {
	if err := w.live(op); err != nil {
		return w.report(err)
	}
	t := w.beginSync(op, Undefined)
	err := f(w.w)
	w.c.ep.Inside().Flush()
	return w.endSync(op, t, err)
}

// Lock begins an access epoch for operations on one rank, which need not call anything
// (MPI_Win_lock). It returns when this rank has the lock; but with the hint no_local_load_store
// one of the rank itself does not wait, and the first operation does. Several ranks may be locked at a
// time, in the same order on all ranks lest two wait for each other.
func (w *Win) Lock(kind LockType, target int, mode WinMode) error {
	const op = "Win.Lock"
	err := w.begin(op, epochLock, mode, ModeNoCheck)
	if err == nil && kind != LockShared && kind != LockExclusive {
		err = fail(ErrLockType, op, "%d is no kind of lock", int(kind))
	}
	if err == nil {
		err = w.rank(op, target)
	}
	if err != nil || target == ProcNull {
		return w.report(err)
	}
	t := w.beginSync(op, target)
	err = w.w.Lock(int32(target), rma.Mode(kind), mode&ModeNoCheck != 0, w.lazy && target == w.c.rank)
	return w.endSync(op, t, err)
}

// rank checks a target.
func (w *Win) rank(op string, target int) error {
	if target != ProcNull && uint(target) >= uint(w.c.size) {
		return fail(ErrRank, op, "target %d is no rank of the window, which has ranks 0 to %d", target, w.c.size-1)
	}
	return nil
}

// LockAll begins an access epoch for operations on all ranks, with a shared lock of each
// (MPI_Win_lock_all). It returns when this rank has all of them, at once if epochs_used has
// said on all ranks that no rank calls Lock. Unlike Lock it does not
// fail because of ranks that are lost: the operations on these do.
func (w *Win) LockAll(mode WinMode) error {
	const op = "Win.LockAll"
	err := w.begin(op, epochLockAll, mode, ModeNoCheck)
	if err != nil {
		return w.report(err)
	}
	t := w.beginSync(op, Undefined)
	return w.endSync(op, t, w.w.LockAll(mode&ModeNoCheck != 0))
}

// UnlockAll ends the epoch of LockAll: all operations are complete, here and at their
// targets (MPI_Win_unlock_all).
func (w *Win) UnlockAll() error {
	return w.closes("Win.UnlockAll", (*rma.Window).UnlockAll)
}

// Unlock ends the epoch of Lock: all operations are complete, here and at the target
// (MPI_Win_unlock).
func (w *Win) Unlock(target int) error {
	return w.atTarget("Win.Unlock", target, false, (*rma.Window).Unlock)
}

// Flush completes all operations on a target that were started, here and there
// (MPI_Win_flush). It is for the epochs of Lock and LockAll.
func (w *Win) Flush(target int) error {
	return w.atTarget("Win.Flush", target, true, (*rma.Window).Flush)
}

// FlushLocal completes them here: their memory is the program's again, and what they read
// is there (MPI_Win_flush_local).
func (w *Win) FlushLocal(target int) error {
	return w.atTarget("Win.FlushLocal", target, true, (*rma.Window).FlushLocal)
}

// atTarget is a call that waits for operations on a target.
func (w *Win) atTarget(op string, target int, passive bool, f func(*rma.Window, int32) error) error {
	err := w.live(op)
	if err == nil {
		err = w.rank(op, target)
	}
	if err != nil || target == ProcNull {
		return w.report(err)
	}
	t := w.beginSync(op, target)
	if passive {
		err = w.w.Passive(int32(target))
	}
	if err == nil {
		err = f(w.w, int32(target))
	}
	w.c.ep.Inside().Flush()
	return w.endSync(op, t, err)
}

// FlushAll is Flush of all targets (MPI_Win_flush_all).
func (w *Win) FlushAll() error {
	return w.flushes("Win.FlushAll", (*rma.Window).FlushAll)
}

// FlushLocalAll is FlushLocal of all targets (MPI_Win_flush_local_all).
func (w *Win) FlushLocalAll() error {
	return w.flushes("Win.FlushLocalAll", (*rma.Window).FlushLocalAll)
}

func (w *Win) flushes(op string, f func(*rma.Window) error) error {
	return w.closes(op, func(x *rma.Window) error {
		if err := x.Passive(-1); err != nil {
			return err
		}
		return f(x)
	})
}

// Sync makes what other ranks have written, and what the program has, visible to each
// other (MPI_Win_sync). Windows have one copy of their memory, so it is a memory barrier, and
// makes progress.
func (w *Win) Sync() error {
	if err := w.live("Win.Sync"); err != nil {
		return w.report(err)
	}
	w.barrier.Add(1)
	w.c.ep.Step()
	return nil
}

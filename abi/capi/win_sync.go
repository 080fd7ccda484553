package capi

import "github.com/xwarp/xwarp/mpi"

// asserts are the assertions of calls of windows.
var asserts = [...]struct {
	bit  int
	mode mpi.WinMode
}{
	{MPI_MODE_NOCHECK, mpi.ModeNoCheck}, {MPI_MODE_NOSTORE, mpi.ModeNoStore}, {MPI_MODE_NOPUT, mpi.ModeNoPut},
	{MPI_MODE_NOPRECEDE, mpi.ModeNoPrecede}, {MPI_MODE_NOSUCCEED, mpi.ModeNoSucceed},
}

// modeFrom is an assertion as package mpi has it.
func modeFrom(assert int) (mode mpi.WinMode, err error) {
	for _, a := range asserts {
		if assert&a.bit != 0 {
			mode |= a.mode
			assert &^= a.bit
		}
	}
	if assert != 0 {
		return 0, fail(mpi.ErrAssert, "there is no assertion %#x", assert)
	}
	return mode, nil
}

// epoch looks up what calls with assertions have.
func (l *Lib) epoch(win Handle, assert int) (*win, mpi.WinMode, error) {
	w, err := l.win(win)
	if err != nil {
		return nil, 0, err
	}
	mode, err := modeFrom(assert)
	return w, mode, err
}

// WinFence is MPI_Win_fence.
func WinFence(l *Lib, assert int, win Handle) error {
	w, mode, err := l.epoch(win, assert)
	if err != nil {
		return err
	}
	return w.Fence(mode)
}

// WinPost is MPI_Win_post.
func WinPost(l *Lib, group Handle, assert int, win Handle) error {
	return l.groupEpoch(group, assert, win, (*mpi.Win).Post)
}

// WinStart is MPI_Win_start.
func WinStart(l *Lib, group Handle, assert int, win Handle) error {
	return l.groupEpoch(group, assert, win, (*mpi.Win).Start)
}

func (l *Lib) groupEpoch(group Handle, assert int, win Handle, f func(*mpi.Win, *mpi.Group, mpi.WinMode) error) error {
	w, mode, err := l.epoch(win, assert)
	if err != nil {
		return err
	}
	g, err := l.group(group)
	if err != nil {
		return err
	}
	return f(w.Win, g, mode)
}

// onWin calls a method of a window.
func (l *Lib) onWin(win Handle, f func(*mpi.Win) error) error {
	w, err := l.win(win)
	if err != nil {
		return err
	}
	return f(w.Win)
}

// onTarget calls a method of a window with a rank.
func (l *Lib) onTarget(win Handle, rank int, f func(*mpi.Win, int) error) error {
	w, err := l.win(win)
	if err != nil {
		return err
	}
	return f(w.Win, rankFrom(rank))
}

// WinComplete is MPI_Win_complete.
func WinComplete(l *Lib, win Handle) error { return l.onWin(win, (*mpi.Win).Complete) }

// WinWait is MPI_Win_wait.
func WinWait(l *Lib, win Handle) error { return l.onWin(win, (*mpi.Win).Wait) }

// WinTest is MPI_Win_test.
func WinTest(l *Lib, win Handle, flag Ints) error {
	w, err := l.win(win)
	if err != nil {
		return err
	}
	done, err := w.Test()
	if err == nil {
		flag.setFlag(done)
	}
	return err
}

// WinLock is MPI_Win_lock.
func WinLock(l *Lib, lockType, rank, assert int, win Handle) error {
	w, mode, err := l.epoch(win, assert)
	if err != nil {
		return err
	}
	var kind mpi.LockType
	switch lockType {
	case MPI_LOCK_SHARED:
		kind = mpi.LockShared
	case MPI_LOCK_EXCLUSIVE:
		kind = mpi.LockExclusive
	}
	return w.Lock(kind, rankFrom(rank), mode)
}

// WinUnlock is MPI_Win_unlock.
func WinUnlock(l *Lib, rank int, win Handle) error { return l.onTarget(win, rank, (*mpi.Win).Unlock) }

// WinLockAll is MPI_Win_lock_all.
func WinLockAll(l *Lib, assert int, win Handle) error {
	w, mode, err := l.epoch(win, assert)
	if err != nil {
		return err
	}
	return w.LockAll(mode)
}

// WinUnlockAll is MPI_Win_unlock_all.
func WinUnlockAll(l *Lib, win Handle) error { return l.onWin(win, (*mpi.Win).UnlockAll) }

// WinFlush is MPI_Win_flush.
func WinFlush(l *Lib, rank int, win Handle) error { return l.onTarget(win, rank, (*mpi.Win).Flush) }

// WinFlushAll is MPI_Win_flush_all.
func WinFlushAll(l *Lib, win Handle) error { return l.onWin(win, (*mpi.Win).FlushAll) }

// WinFlushLocal is MPI_Win_flush_local.
func WinFlushLocal(l *Lib, rank int, win Handle) error {
	return l.onTarget(win, rank, (*mpi.Win).FlushLocal)
}

// WinFlushLocalAll is MPI_Win_flush_local_all.
func WinFlushLocalAll(l *Lib, win Handle) error { return l.onWin(win, (*mpi.Win).FlushLocalAll) }

// WinSync is MPI_Win_sync.
func WinSync(l *Lib, win Handle) error { return l.onWin(win, (*mpi.Win).Sync) }

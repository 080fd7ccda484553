package mpi

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// waits returns the clock by which waits for others are measured, where they are.
func (w *watch) waits() mono.Clock {
	if w == nil || w.record == nil {
		return nil
	}
	return w.p.ep.Engine().Clock()
}

// noteWin gives a window a place in the record, while there are any.
func (w *watch) noteWin(win *Win) {
	if w == nil || w.record == nil {
		return
	}
	w.mu.Lock()
	if len(w.wins) < trace.MaxWindows {
		w.wins = append(w.wins, win)
	}
	w.mu.Unlock()
}

// leftWin takes the last counters of a window that is about to be freed.
func (w *watch) leftWin(win *Win) {
	if w == nil || w.record == nil {
		return
	}
	w.total()
	w.mu.Lock()
	if i := slices.Index(w.wins, win); i >= 0 {
		w.wins[i] = nil
	}
	w.mu.Unlock()
}

// totals gives the record the counters of now. The caller is inside the endpoint.
func (w *Win) totals(record *trace.Record, place int) {
	n := w.w.Account().Counts()
	record.SetWindow(place, trace.WindowCount{
		Name: w.name, Context: w.c.context, Ranks: w.c.size,
		Fences: n.Epochs.Fences, Starts: n.Epochs.Starts, Posts: n.Epochs.Posts, Locks: n.Epochs.Locks, LockAlls: n.Epochs.LockAlls,
		WaitedNanoseconds: uint64(n.Waited), WaitedMost: uint64(n.Most), WaitedFor: n.For,
	})
	for i, s := range n.Served {
		record.SetDone(place, i, s.By, s.Puts, s.Gets, s.Accumulates)
	}
}

// beginOn begins an operation on a target: see watch.begin. o is nil of what is no accumulate.
func (w *Win) beginOn(name string, target, bytes int, o *rma.Op) *Call {
	if w.c.p.watch == nil {
		return nil
	}
	return w.c.p.watch.open(name, w.c, target, Undefined, bytes, 1+uint64(w.w.Account().Server(int32(target), o)))
}

package rma

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// What ranks of one host do to each other's memory they do themselves, where a window has
// its memory in a segment that all of them have mapped: Puts and Gets are copies,
// accumulates are atomic instructions of the processor (atomic.go), and locks are words
// there (shared_lock.go). The target takes no part, and when a call returns, what it was
// for is done.
//
// What the processor has no instruction for remains a message to the target: accumulates on
// elements that are wider than 8 bytes, that have gaps, or that are not aligned. Which way
// it is follows from the datatype and the address alone, whoever is at the other end, and
// accumulates are atomic and ordered for elements of one datatype only (MPI 4.1, section
// 12.7.1). So what messages bring from other hosts is done with the same instructions.

// Common is the memory that ranks of one host have in common in a window.
type Common struct {
	Members []int32  // the ranks, in ascending order, this one among them
	Memory  [][]byte // of each
	Control []byte   // ControlSize bytes from the start of a page on, zero at first
}

// ControlSize returns how many bytes beside their memory that many ranks need.
func ControlSize(members int) int { return members * controlStride(members) }

// controlStride is what there is of it for each target: whole cache lines.
func controlStride(members int) int { return (4*(lockWords+members+1) + 63) &^ 63 }

// neighbour is a target whose memory is mapped here, perhaps this rank itself.
type neighbour struct {
	mem  []byte
	lock sharedLock
}

// share takes what this rank has in common with others. It is called once, before anything
// else.
func (w *Window) share(s *Common) {
	if s == nil {
		return
	}
	n := len(s.Members)
	w.members = s.Members
	w.member = slices.Index(s.Members, w.me)
	for i, rank := range s.Members {
		words := mem.Words32(s.Control[i*controlStride(n):][:controlStride(n)])
		w.targets[rank].near = &neighbour{
			mem:  s.Memory[i],
			lock: sharedLock{owner: &words[0], far: &words[1], readers: words[lockWords : lockWords+n+1]},
		}
	}
	w.locks.shared, w.locks.member = &w.targets[w.me].near.lock, n
}

// Memory returns the memory of a rank, if it is mapped here.
func (w *Window) Memory(rank int) []byte {
	if near := w.targets[rank].near; near != nil {
		return near.mem
	}
	return nil
}

// paceMost is after how many calls that end something a step is made at the latest.
const paceMost = 16

// pace makes progress now and then in calls that need none for themselves: others may wait
// for what this rank does in a step, and it learns there who is lost.
func (w *flow) pace() {
	if w.unpaced++; w.unpaced == paceMost {
		w.unpaced = 0
		w.in.Step()
	}
}

// within returns n bytes of a neighbour's memory, which may be used now.
func (w *Window) within(rank int32, t *target, off uint64, n int) ([]byte, error) {
	b, ok := slice(t.near.mem, off, n)
	if !ok {
		return nil, &Error{Code: Range, Target: rank, Detail: fmt.Sprintf("rank %d has no such memory in the window", rank)}
	}
	w.busy = true
	return b, w.in.Trouble(w.context, t.world)
}

// ranges calls do with each range of a neighbour's memory that o is about.
func (w *Window) ranges(o *Op, t *target, do func(there []byte)) error {
	for o.Layout.Rest() > 0 {
		at, n := o.Layout.Next(o.Layout.Rest())
		there, err := w.within(o.Target, t, uint64(o.At+int64(at)), n)
		if err != nil {
			return err
		}
		do(there)
	}
	return nil
}

// stageLen is how many bytes of elements are taken at a time, a multiple of each of them.
const stageLen = 256

// stage is where elements lie side by side before and after.
type stage struct {
	data, old [stageLen]byte
}

// combine does an accumulate on memory of a neighbour. What it fetches goes to dst, if that
// is not nil. Elements that are not aligned go to the target.
func (w *Window) combine(say int32, o *Op, t *target, src, dst *dtype.Cursor) error {
	c := combination{w: w, what: say}
	f := front{kind: o.Kind, n: 1}
	var ok bool
	if f.op, ok = number(o.Op); !ok {
		return notPredefined(o)
	}
	if !c.of(&front{kind: o.Kind, op: f.op}) {
		return &Error{Code: Type, Target: o.Target, Detail: fmt.Sprintf("%v is not for %v", o.Op, o.Kind.Type())}
	}
	for o.Layout.Rest() > 0 {
		at, n := o.Layout.Next(stageLen)
		off := uint64(o.At + int64(at))
		there, err := w.within(o.Target, t, off, n)
		if err != nil {
			return err
		}
		data := n
		if src == nil {
			data = 0
		}
		if !c.atomic(there) {
			f.runs[0] = run{off, uint32(n)}
			if err := w.post(say, o, &f, src, data, dst); err != nil {
				return err
			}
			continue
		}
		if src != nil {
			src.Pack(w.stage.data[:n])
		}
		c.applyAll(there, w.stage.data[:data], w.stage.old[:n])
		if dst != nil {
			dst.Unpack(w.stage.old[:n])
		}
	}
	return nil
}

// swap is Swap in memory of a neighbour. false: the element is not aligned.
func (w *Window) swap(o *Op, t *target, compare, value, dst []byte) (done bool, err error) {
	there, err := w.within(o.Target, t, uint64(o.At), len(value))
	if err != nil {
		return true, err
	}
	c := combination{w: w, what: saySwap, size: len(value)}
	if !c.atomic(there) {
		return false, nil
	}
	n := copy(w.stage.data[:], compare)
	copy(w.stage.data[n:], value)
	c.apply(there, w.stage.data[:2*n], w.stage.old[:n])
	copy(dst, w.stage.old[:n])
	return true, nil
}

// sharedLock is the lock of a target in memory that the ranks of its host have in common.
// Each of them has a number there, its member; the last one is that of the target for
// ranks of other hosts, for which it takes the lock as they ask (locks.go). Who has the
// lock, or waits to have it for itself alone, follows from words that nobody else writes as
// long as that one lives; so what a dead rank had can be taken from it.
type sharedLock struct {
	owner   *atomic.Uint32  // 1 + the member that has it Exclusive, or will when the readers are gone
	far     *atomic.Uint32  // 1: the target waits for it, and is to be told when something is given back
	readers []atomic.Uint32 // of each member: 1 has it Shared
}

// lockWords is how many words there are before the readers.
const lockWords = 2

// try takes the lock for a member, or reports that it cannot now. Who wants it Exclusive and
// cannot keeps later readers out from then on, and tries again, or calls release.
func (l *sharedLock) try(member int, m Mode) bool {
	if m == Shared {
		if l.owner.Load() != 0 {
			return false
		}
		l.readers[member].Store(1)
		if l.owner.Load() == 0 { // the other order than that of who becomes the owner
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

// lockShared takes the lock of a neighbour. It waits.
func (w *Window) lockShared(rank int32, t *target, m Mode) error {
	for tries := 0; !w.tryShared(rank, t, m); tries++ {
		if err := w.in.Trouble(w.context, t.world); err != nil {
			w.unlockShared(rank, t)
			return err
		}
		w.in.Pause(tries)
	}
	return nil
}

// tryShared takes the lock of a neighbour if it is free.
func (w *Window) tryShared(rank int32, t *target, m Mode) bool {
	if t.near.lock.try(w.member, m) {
		return true
	}
	if m == Shared { // the target may have seen this rank among the readers
		w.tellWaiting(rank, t)
	}
	return false
}

// unlockShared gives the lock of a neighbour back.
func (w *Window) unlockShared(rank int32, t *target) {
	t.near.lock.release(w.member)
	w.tellWaiting(rank, t)
}

// tellWaiting lets a target try again that waits for its own lock.
func (w *Window) tellWaiting(rank int32, t *target) {
	w.pace()
	if t.near.lock.far.Load() != 0 {
		_ = w.word(rank, sayRetry, 0) // a target that is lost waits for nothing
	}
}

// bury takes from a lost rank of this host the locks that it has. Each of the others does
// the same.
func (w *Window) bury(rank int32) {
	if w.targets[rank].near == nil {
		return
	}
	lost := slices.Index(w.members, rank)
	for _, member := range w.members {
		w.targets[member].near.lock.release(lost)
	}
}

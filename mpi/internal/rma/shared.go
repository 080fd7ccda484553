package rma

import (
	"fmt"
	"slices"

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
// it is follows from the datatype and the address alone, whichever rank is at the other end, and
// accumulates are atomic and ordered for elements of one datatype only (MPI 4.1, section
// 12.7.1). So what messages bring from other hosts is done with the same instructions.
//
// An instruction for each element is slow for many. Where all ranks of a window are on one host,
// and so none comes from elsewhere, what is longer than a stage has a turn for itself alone,
// without them, and what is shorter has a turn beside others. Between hosts there are no turns:
// a target would have to wait for one in the midst of taking a message, and its engine, which
// does atomics of verbs, knows of no window.

// Common is the memory that ranks of one host have in common in a window.
type Common struct {
	Members []int32  // the ranks, in ascending order, this one among them
	Memory  [][]byte // of each
	Control []byte   // ControlSize bytes from the start of a page on, zero at first
	Locks   bool     // ranks may be locked one by one
}

// ControlSize returns how many bytes beside their memory that many ranks need. With all they are
// all ranks of the window.
func ControlSize(members int, all, locks bool) (n int) {
	if all {
		n = members * turnStride
	}
	if locks {
		n += members * lockStride(members)
	}
	return n
}

// lockStride is what there is of it for the lock of each target: whole cache lines.
func lockStride(members int) int { return (4*(lockWords+members+1) + 63) &^ 63 }

// turnStride is what there is for turns: of each target a cache line for the member that has one for
// itself alone, and of each member one that no other writes, for the target at which it is beside others.
const turnStride = 2 * 64

// neighbour is a target whose memory is mapped here, perhaps this rank itself.
type neighbour struct {
	mem  []byte
	lock *sharedLock // or nil: there are none
	turn *sharedLock // of accumulates that are under way, or nil: all are by elements
}

// neighbours are the ranks of this host, with whose memory this one does everything itself.
type neighbours struct {
	w       *Window
	members []int32 // nil: there is no memory in common
	member  int     // which of them this rank is
	stage   stage
}

// take takes what this rank has in common with others. It is called once, before anything
// else.
func (nb *neighbours) take(w *Window, c *Common) {
	if c == nil {
		return
	}
	n := len(c.Members)
	nb.w, nb.members, nb.member = w, c.Members, slices.Index(c.Members, w.me)
	all, locks := n == w.ranks, c.Control
	if all {
		locks = c.Control[n*turnStride:]
	}
	for i, rank := range c.Members {
		near := &neighbour{mem: c.Memory[i]}
		if all {
			const line = turnStride / 2 / 4
			words := mem.Words32(c.Control[:n*turnStride])
			near.turn = &sharedLock{owner: &words[2*line*i], readers: words[line:], stride: 2 * line, mark: uint32(i + 1)}
		}
		if c.Locks {
			words := mem.Words32(locks[i*lockStride(n):][:lockStride(n)])
			near.lock = &sharedLock{owner: &words[0], far: &words[1], readers: words[lockWords : lockWords+n+1], stride: 1, mark: 1}
		}
		w.targets[rank].near = near
	}
	w.here.atomic, w.here.locks.shared, w.here.locks.member = true, w.targets[w.me].near.lock, n
}

// Memory returns the memory of a rank, if it is mapped here.
func (w *Window) Memory(rank int) []byte {
	if near := w.targets[rank].near; near != nil {
		return near.mem
	}
	return nil
}

// within returns n bytes of a neighbour's memory, which may be used now.
func (nb *neighbours) within(rank int32, t *target, off uint64, n int) ([]byte, error) {
	b, ok := slice(t.near.mem, off, n)
	if !ok {
		return nil, &Error{Code: Range, Target: rank, Detail: fmt.Sprintf("rank %d has no such memory in the window", rank)}
	}
	nb.w.busy = true
	return b, nb.w.in.Trouble(nb.w.context, t.world)
}

// transfer copies what is before src to the ranges of a neighbour's memory that o is about,
// or, if src is nil, these to what is before dst.
func (nb *neighbours) transfer(o *Op, t *target, src, dst *dtype.Cursor) error {
	for o.Layout.Rest() > 0 {
		at, n := o.Layout.Next(o.Layout.Rest())
		there, err := nb.within(o.Target, t, uint64(o.At+int64(at)), n)
		if err != nil {
			return err
		}
		if src != nil {
			src.Pack(there)
		} else {
			dst.Unpack(there)
		}
	}
	return nil
}

// stageLen is how many bytes of elements are taken at a time, a multiple of each of them.
const stageLen = 256

// stage is where elements lie side by side before and after.
type stage struct {
	data, old [stageLen]byte
}

// turnMost is the longest turn in bytes, a multiple of each element: some 1 us.
const turnMost = 16 << 10

// combine does an accumulate on memory of a neighbour. What it fetches goes to dst, if that
// is not nil. Elements that are not aligned go to the target.
func (nb *neighbours) combine(say int32, o *Op, t *target, src, dst *dtype.Cursor) error {
	c := combination{s: &nb.w.here, what: say}
	if err := c.named(o); err != nil {
		return err
	}
	most := stageLen
	if t.near.turn != nil {
		most = turnMost
	}
	for o.Layout.Rest() > 0 {
		at, n := o.Layout.Next(most)
		part := Op{Target: o.Target, At: o.At + int64(at), Kind: o.Kind, Op: o.Op, Tally: o.Tally}
		there, err := nb.within(o.Target, t, uint64(part.At), n)
		switch {
		case err != nil:
		case !c.atomic(there):
			_, part.Layout = plain(there)
			err = nb.w.move(say, &part, src, dst)
		case n > stageLen:
			err = nb.long(&c, o.Target, t, there, src, dst)
		default:
			err = nb.short(&c, o.Target, t, there, src, dst)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// short does an accumulate on elements of a neighbour that fit a stage.
func (nb *neighbours) short(c *combination, rank int32, t *target, there []byte, src, dst *dtype.Cursor) error {
	if err := nb.turn(rank, t, Shared); err != nil {
		return err
	}
	data, old := 0, nb.stage.old[:len(there)]
	if src != nil {
		data = src.Pack(nb.stage.data[:len(there)])
	}
	c.applyAll(there, nb.stage.data[:data], old)
	nb.leave(t)
	if dst != nil {
		dst.Unpack(old)
	}
	return nil
}

// long does an accumulate on more elements of a neighbour, alone.
func (nb *neighbours) long(c *combination, rank int32, t *target, there []byte, src, dst *dtype.Cursor) error {
	if err := nb.turn(rank, t, Exclusive); err != nil {
		return err
	}
	if dst != nil {
		dst.Unpack(there)
	}
	if src != nil {
		nb.reduce(c, there, src)
	}
	t.near.turn.release(nb.member)
	return nil
}

// reduce combines the elements before src with those there, which no other one changes.
func (nb *neighbours) reduce(c *combination, there []byte, src *dtype.Cursor) {
	if b, ok := src.Contiguous(); ok && mem.AddressOf(b)%8 == 0 {
		c.reduce.Apply(b, there, len(there)/c.size)
		src.Seek(src.Pos() + len(there))
		return
	}
	for len(there) > 0 {
		n := src.Pack(nb.stage.data[:min(stageLen, len(there))])
		c.reduce.Apply(nb.stage.data[:n], there, n/c.size)
		there = there[n:]
	}
}

// one does a fetching operation on one element of a neighbour. false: it is not aligned.
func (nb *neighbours) one(say int32, o *Op, t *target, size int, data, dst []byte) (done bool, err error) {
	there, err := nb.within(o.Target, t, uint64(o.At), size)
	if err != nil {
		return true, err
	}
	c := combination{s: &nb.w.here, what: say, size: size}
	if say == sayFetch {
		if err := c.named(o); err != nil {
			return true, err
		}
	}
	if !c.atomic(there) {
		return false, nil
	}
	if o.Op == dtype.NoOp {
		data = nil
	}
	if err := nb.turn(o.Target, t, Shared); err != nil {
		return true, err
	}
	n := copy(nb.stage.data[:], data)
	c.apply(there, nb.stage.data[:n], nb.stage.old[:size])
	nb.leave(t)
	copy(dst, nb.stage.old[:size])
	return true, nil
}

// named makes c that of the operation of o.
func (c *combination) named(o *Op) error {
	op, ok := number(o.Op)
	if !ok {
		return notPredefined(o)
	}
	if err := c.reduces(o.Kind, op); err != nil {
		return &Error{Code: Type, Target: o.Target, Detail: err.Error()}
	}
	return nil
}

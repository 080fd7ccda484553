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

// Common is the memory that ranks of one host have in common in a window.
type Common struct {
	Members []int32  // the ranks, in ascending order, this one among them
	Memory  [][]byte // of each
	Control []byte   // ControlSize bytes from the start of a page on, zero at first, or none: there are no locks
}

// ControlSize returns how many bytes beside their memory that many ranks need.
func ControlSize(members int) int { return members * controlStride(members) }

// controlStride is what there is of it for each target: whole cache lines.
func controlStride(members int) int { return (4*(lockWords+members+1) + 63) &^ 63 }

// neighbour is a target whose memory is mapped here, perhaps this rank itself.
type neighbour struct {
	mem  []byte
	lock *sharedLock // or nil: there are none
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
	for i, rank := range c.Members {
		near := &neighbour{mem: c.Memory[i]}
		if len(c.Control) > 0 {
			words := mem.Words32(c.Control[i*controlStride(n):][:controlStride(n)])
			near.lock = &sharedLock{owner: &words[0], far: &words[1], readers: words[lockWords : lockWords+n+1]}
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

// combine does an accumulate on memory of a neighbour. What it fetches goes to dst, if that
// is not nil. Elements that are not aligned go to the target.
func (nb *neighbours) combine(say int32, o *Op, t *target, src, dst *dtype.Cursor) error {
	c := combination{s: &nb.w.here, what: say}
	f := front{kind: o.Kind, n: 1}
	if err := c.named(o, &f); err != nil {
		return err
	}
	for o.Layout.Rest() > 0 {
		at, n := o.Layout.Next(stageLen)
		off := uint64(o.At + int64(at))
		there, err := nb.within(o.Target, t, off, n)
		if err != nil {
			return err
		}
		data := n
		if src == nil {
			data = 0
		}
		if !c.atomic(there) {
			f.blocks[0] = block{off, uint32(n)}
			if err := nb.w.post(say, o, &f, src, data, dst); err != nil {
				return err
			}
			continue
		}
		if src != nil {
			src.Pack(nb.stage.data[:n])
		}
		c.applyAll(there, nb.stage.data[:data], nb.stage.old[:n])
		if dst != nil {
			dst.Unpack(nb.stage.old[:n])
		}
	}
	return nil
}

// one does a fetching operation on one element of a neighbour. false: it is not aligned.
func (nb *neighbours) one(say int32, o *Op, t *target, size int, data, dst []byte) (done bool, err error) {
	there, err := nb.within(o.Target, t, uint64(o.At), size)
	if err != nil {
		return true, err
	}
	c := combination{s: &nb.w.here, what: say, size: size}
	if say == sayFetch {
		var f front
		if err := c.named(o, &f); err != nil {
			return true, err
		}
	}
	if !c.atomic(there) {
		return false, nil
	}
	if o.Op == dtype.NoOp {
		data = nil
	}
	n := copy(nb.stage.data[:], data)
	c.apply(there, nb.stage.data[:n], nb.stage.old[:size])
	copy(dst, nb.stage.old[:size])
	return true, nil
}

// named makes c and f those of the operation of o.
func (c *combination) named(o *Op, f *front) error {
	var ok bool
	if f.op, ok = number(o.Op); !ok {
		return notPredefined(o)
	}
	f.kind = o.Kind
	if err := c.reduces(f.kind, f.op); err != nil {
		return &Error{Code: Type, Target: o.Target, Detail: err.Error()}
	}
	return nil
}

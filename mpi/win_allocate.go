package mpi

import (
	"errors"
	"fmt"
	"math"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// Windows with memory of their own. Ranks of one host have theirs in one segment, a memfd
// that all of them map, unless shared memory is turned off: first what they have in common
// to keep locks, then the memory of each in the order of ranks.

// noncontiguous is the hint by which ranks have their parts of a shared window where that is
// best for each.
const noncontiguous = "alloc_shared_noncontig"

// WinAllocate makes a window of n zeroed elements and returns them (MPI_Win_allocate).
// Free takes them back. Between ranks of one host operations on it are loads and stores,
// but with ghosts all ask these.
func WinAllocate[T Scalar](c *Comm, n int, info *Info) (*Win, []T, error) {
	w, b, err := winAllocate[T](c, "WinAllocate", FlavorAllocate, n, info)
	return w, mem.ScalarsOf[T](b), err
}

// WinAllocate is [WinAllocate] of size bytes, with displacements that count units of so many
// bytes.
func (c *Comm) WinAllocate(size, unit int, info *Info) (*Win, []byte, error) {
	return c.winAllocate("Comm.WinAllocate", FlavorAllocate, size, unit, 1, info)
}

// WinAllocateShared is [WinAllocate] of memory that all ranks of c may touch as their own
// (MPI_Win_allocate_shared): see [SharedQuery]. They are on one host, as those of
// [Comm.SplitType] with TypeShared; else the error is of class ErrRMAShared. The memory of
// each rank begins where that of the rank before ends, unless the info says "true" to
// alloc_shared_noncontig.
func WinAllocateShared[T Scalar](c *Comm, n int, info *Info) (*Win, []T, error) {
	w, b, err := winAllocate[T](c, "WinAllocateShared", FlavorShared, n, info)
	return w, mem.ScalarsOf[T](b), err
}

// WinAllocateShared is [WinAllocateShared] of size bytes, with displacements that count units
// of so many bytes.
func (c *Comm) WinAllocateShared(size, unit int, info *Info) (*Win, []byte, error) {
	return c.winAllocate("Comm.WinAllocateShared", FlavorShared, size, unit, 1, info)
}

// SharedQuery returns the memory of a rank of the window, as far as this one can touch it
// (MPI_Win_shared_query): all of WinAllocateShared, of WinAllocate that of ranks on this
// host (in a job with ghosts its own only), or nil. It is there until Free. ProcNull means the lowest rank that has some. When
// others see what is written is said in MPI 4.1, section 12.4: after [Win.Sync] and a
// message, for example.
func SharedQuery[T Scalar](w *Win, rank int) ([]T, error) {
	const op = "SharedQuery"
	b, _, err := w.shared(op, rank)
	if err == nil && (len(b)%sizeOf[T]() != 0 || mem.AddressOf(b)%uint64(mem.AlignOf[T]()) != 0) {
		err = fail(ErrType, op, "%d bytes at %#x are not memory of such elements: take those of Win.SharedQuery", len(b), mem.AddressOf(b))
	}
	if err != nil {
		return nil, w.report(err)
	}
	return mem.ScalarsOf[T](b), nil
}

// SharedQuery is [SharedQuery] of bytes, with the displacement unit of the rank.
func (w *Win) SharedQuery(rank int) (memory []byte, unit int, err error) {
	memory, unit, err = w.shared("Win.SharedQuery", rank)
	return memory, unit, w.report(err)
}

func (w *Win) shared(op string, rank int) (memory []byte, unit int, err error) {
	if err = w.live(op); err == nil {
		err = w.rank(op, rank)
	}
	if err == nil && w.flavor == FlavorDynamic {
		err = fail(ErrRMAFlavor, op, "a window of flavor %v has no memory that is known here", w.flavor)
	}
	if err != nil {
		return nil, 0, err
	}
	if rank == ProcNull {
		rank = w.c.rank
		for r := w.c.size - 1; r >= 0; r-- {
			if b, _ := w.touchable(r); len(b) > 0 {
				rank = r
			}
		}
	}
	memory, unit = w.touchable(rank)
	return memory, unit, nil
}

// touchable returns what there is here of a rank's memory.
func (w *Win) touchable(rank int) (memory []byte, unit int) {
	if memory = w.w.Memory(rank); rank == w.c.rank {
		memory = w.memory
	}
	return memory, w.w.Unit(rank)
}

// winAllocate makes a window with memory of n elements.
func winAllocate[T Scalar](c *Comm, op string, flavor WinFlavor, n int, info *Info) (*Win, []byte, error) {
	unit := sizeOf[T]()
	if n > math.MaxInt/unit {
		return nil, nil, c.reportf(ErrArg, op, "%d elements of %d bytes", n, unit)
	}
	return c.winAllocate(op, flavor, n*unit, unit, mem.AlignOf[T](), info)
}

// winAllocate makes a window with memory of so many bytes, for elements that lie at multiples
// of align.
func (c *Comm) winAllocate(op string, flavor WinFlavor, size, unit, align int, info *Info) (*Win, []byte, error) {
	err := c.live(op)
	if err == nil && size < 0 {
		err = fail(ErrArg, op, "%d bytes", size)
	}
	var members []int32
	if err == nil {
		if members = c.neighbours(); flavor == FlavorShared && len(members) < c.size {
			err = fail(ErrRMAShared, op, "rank %d can have memory in common with %d of the %d ranks only: others are on other hosts, or shared memory is turned off (XWARP_SHARED)", c.rank, len(members), c.size)
		}
	}
	if err != nil {
		return nil, nil, c.report(err)
	}
	async, err := c.asyncOf(op, info)
	binding := c.p.async.Ghosts.Binding
	if err == nil {
		binding, err = bindingWanted(op, info, binding)
	}
	if err != nil {
		return nil, nil, c.report(err)
	}
	w, err := c.winBegin(op, flavor, unit, info)
	if err != nil {
		return nil, nil, c.report(err)
	}
	w.async.mode, w.binding = async, binding
	var lack error
	served := c.p.ghosts != nil && flavor == FlavorAllocate
	if served {
		lack = w.provideServed(op, size)
	} else {
		lack, err = w.provide(op, members, size, align)
	}
	if err == nil {
		err = w.open(op, lack, served || len(members) < c.size)
	}
	if err != nil {
		return nil, nil, c.report(errors.Join(err, w.discard(op)))
	}
	return w, w.memory, nil
}

// neighbours returns the ranks that can have memory in common with this one, which is among
// them. They all return the same.
func (c *Comm) neighbours() (members []int32) {
	c.ep.Enter()
	for r := range c.size {
		if c.ep.Inside().Segments().With(int32(c.at(r))) {
			members = append(members, int32(r))
		}
	}
	c.ep.Leave()
	return members
}

// provide gives a window memory of n bytes. lack is why there is none.
func (w *Win) provide(op string, members []int32, n, align int) (lack, err error) {
	c := w.c
	if c.size == 1 {
		w.memory, lack = c.p.allocOwn(n, true)
		return lack, nil
	}
	hint, _ := w.hints.Get(noncontiguous)
	flags := w.declares()
	if w.flavor != FlavorShared || hint == "true" {
		flags |= winApart
	}
	all, err := c.gatherInts(op, int64(n), int64(align), flags)
	if err != nil {
		return nil, err
	}
	if len(members) == 1 {
		if _, err = c.gatherInts(op, 0); err == nil {
			w.memory, lack = c.p.allocOwn(n, true)
		}
		return lack, err
	}
	l := layoutOf(members, all)
	id := int64(0)
	if members[0] == int32(c.rank) && l.err == nil && l.odd == nil {
		if w.segment, lack = w.newSegment(l.size); lack == nil {
			id = int64(w.segment.ID())
		}
	}
	ids, err := c.gatherInts(op, id)
	if err != nil {
		return nil, err
	}
	if l.odd != nil { // all see the same
		return nil, fail(ErrRMAShared, op, "%v", l.odd)
	}
	if lack == nil {
		lack = w.enter(members, l, uint64(ids[members[0]]))
	}
	return lack, nil
}

func (w *Win) newSegment(size int) (*p2p.Segment, error) {
	w.c.ep.Enter()
	defer w.c.ep.Leave()
	return w.c.ep.Inside().Segments().New(size)
}

// enter makes the memory of a window that in a segment, which the first member has made.
func (w *Win) enter(members []int32, l layout, id uint64) (err error) {
	c, leader := w.c, int(members[0])
	switch {
	case l.err != nil:
		return l.err
	case id == 0:
		return fmt.Errorf("rank %d has made none", leader)
	case leader != c.rank:
		c.ep.Enter()
		open := c.ep.Inside().Segments().Opener(int32(c.at(leader)))
		c.ep.Leave()
		if w.segment, err = open(id, l.size); err != nil {
			return err
		}
	}
	b := w.segment.Bytes()
	w.common = &rma.Common{Members: members, Control: b[:l.control], Locks: l.locks}
	for i, p := range l.parts {
		part := b[p.at : p.at+p.size : p.at+p.size]
		w.common.Memory = append(w.common.Memory, part)
		if members[i] == int32(c.rank) {
			w.memory = part
			err = w.segment.Populate(p.at, p.size)
		}
	}
	return err
}

// layout is where in a segment the memory of its members is.
type layout struct {
	parts   []part
	control int // bytes for locks and turns, before the parts
	locks   bool
	size    int
	err     error // no host has as much memory
	odd     error // of a shared window: parts that lie side by side are not aligned
}

// part is a range of a segment in bytes.
type part struct{ at, size int }

// layoutLine and layoutPage are what parts begin at multiples of that need not lie side by
// side: those of no page at a cache line. Those of a huge page begin with one, so that all of it
// lies on some: what would lie before the first is no memory until it is touched.
const (
	layoutLine = 64
	layoutPage = 4096
	layoutMost = 1 << 46 // bytes; there is no host with as much
)

// layoutOf lays out the memory of members, whose sizes, alignments, and whether they may lie
// apart, all ranks have told, and whether there are locks.
func layoutOf(members []int32, all []int64) (l layout) {
	for i := 2; i < len(all); i += 3 {
		l.locks = l.locks || all[i]&winLocked != 0
	}
	l.control = rma.ControlSize(len(members), 3*len(members) == len(all), l.locks)
	at := roundUp(l.control, layoutPage)
	for _, rank := range members {
		size, align, apart := int(all[3*rank]), int(all[3*rank+1]), all[3*rank+2]&winApart != 0
		switch {
		case size > layoutMost-at:
			l.err = fmt.Errorf("rank %d wants %d bytes", rank, size)
			return l
		case apart && size >= mem.HugePage:
			at = roundUp(at, mem.HugePage)
		case apart && size >= layoutPage:
			at = roundUp(at, layoutPage)
		case apart:
			at = roundUp(at, layoutLine)
		case at%align != 0 && size > 0:
			l.odd = fmt.Errorf("the memory of rank %d would begin at an odd place for its elements, for what lies before it is no multiple of %d bytes long: set the info %s to true", rank, align, noncontiguous)
		}
		l.parts = append(l.parts, part{at, size})
		at += size
	}
	l.size = max(roundUp(at, layoutPage), layoutPage) // of members without memory and locks, too
	return l
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

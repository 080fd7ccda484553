package mpi

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
	"github.com/xwarp/xwarp/mpi/internal/rma"
	"github.com/xwarp/xwarp/verbs"
)

// Win is a window (MPI_Win): memory of each rank of a communicator that the other ones
// write, read and combine with their own, while the rank takes no part (MPI 4.1, chapter
// 12). What ranks of other hosts do happens at the latest when the rank is in some call of
// this package: there is no thread that would do it meanwhile. With xrun --ghosts other
// processes of its host do it at once, of windows from [WinAllocate].
//
// Displacements count elements of the target's window: of the type of the slice that it
// was made of, or of so many bytes as it has said. Memory of windows is that of the
// program: public and private copy are one (MPI_WIN_UNIFIED).
//
// Between ranks of one host the origin does it itself, in windows of [WinAllocate] (unless
// ghosts serve them) and [WinAllocateShared].
//
// A window takes a communicator of its own, of which there are 2048, and 136 bytes for
// each rank, on each rank, as many again where ghosts serve; on a host whose ranks have memory in common also, once, 4 bytes for
// each pair of them, and a page at least.
type Win struct {
	c       *Comm // of its own
	w       *rma.Window
	flavor  WinFlavor
	memory  []byte
	unit    int
	mr      *verbs.MR
	segment *p2p.Segment // that the memory lies in, or nil
	common  *rma.Common  // what is there of it, or nil
	name    string
	epochs
	layers  []*Comm // of overlapping windows, behind c
	lazy    bool    // no_local_load_store
	async   asyncWin
	binding GhostBinding
	hints   *Info
	attrs   attributes[*Win]
	handler atomic.Pointer[WinErrhandler]
	barrier atomic.Uint32 // to change it orders memory
}

// WinFlavor is how a window was made.
type WinFlavor int

// The flavors.
const (
	FlavorCreate   WinFlavor = iota + 1 // of memory of the program's (MPI_WIN_FLAVOR_CREATE)
	FlavorAllocate                      // with its memory (MPI_WIN_FLAVOR_ALLOCATE)
	FlavorDynamic                       // memory comes and goes (MPI_WIN_FLAVOR_DYNAMIC)
	FlavorShared                        // with memory that all ranks have mapped (MPI_WIN_FLAVOR_SHARED)
)

var flavorNames = [...]string{FlavorCreate: "create", FlavorAllocate: "allocate", FlavorDynamic: "dynamic", FlavorShared: "shared"}

func (f WinFlavor) String() string {
	if f >= FlavorCreate && f <= FlavorShared {
		return flavorNames[f]
	}
	return fmt.Sprintf("WinFlavor(%d)", int(f))
}

// WinCreate makes a window of memory (MPI_Win_create). All ranks of c call it, each with
// memory of its own, which may be empty. The memory belongs to both until Free: what the
// program may do with it when is said in MPI 4.1, section 12.7. Memory from [Alloc] is
// written from and into without a copy.
func WinCreate[T Scalar](c *Comm, memory []T, info *Info) (*Win, error) {
	return c.winCreate("WinCreate", FlavorCreate, mem.BytesOf(memory), sizeOf[T](), info)
}

// WinCreate is [WinCreate] of memory of any type, with displacements that count units of
// so many bytes.
func (c *Comm) WinCreate(memory []byte, unit int, info *Info) (*Win, error) {
	return c.winCreate("Comm.WinCreate", FlavorCreate, memory, unit, info)
}

// WinCreateDynamic makes a window without memory (MPI_Win_create_dynamic), to which each
// rank attaches some. Displacements are addresses: see [Attach].
func (c *Comm) WinCreateDynamic(info *Info) (*Win, error) {
	return c.winCreate("Comm.WinCreateDynamic", FlavorDynamic, nil, 1, info)
}

// winCreate makes a window of memory that is there.
func (c *Comm) winCreate(op string, flavor WinFlavor, memory []byte, unit int, info *Info) (*Win, error) {
	w, err := c.winBegin(op, flavor, unit, info)
	if err != nil {
		return nil, c.report(err)
	}
	w.memory = memory
	if err = w.open(op, nil, true); err != nil {
		return nil, c.report(errors.Join(err, w.discard(op)))
	}
	return w, nil
}

// winBegin makes a window without memory, with a communicator of its own.
func (c *Comm) winBegin(op string, flavor WinFlavor, unit int, info *Info) (*Win, error) {
	if err := c.live(op); err != nil {
		return nil, err
	}
	w := &Win{flavor: flavor, unit: unit}
	switch {
	case c.Inter():
		return nil, fail(ErrComm, op, "it is not for intercommunicators: Merge first")
	case unit < 1:
		return nil, fail(ErrDisp, op, "a displacement unit of %d bytes", unit)
	}
	if err := w.hint(op, info); err != nil {
		return nil, err
	}
	got, err := c.agree(op, w.windows(c), nil)
	if err != nil {
		return nil, err
	}
	w.c = c.p.newComm(2*got[0], c.Group())
	for _, more := range got[1:] {
		w.layers = append(w.layers, c.p.newComm(2*more, c.Group()))
	}
	w.c.SetErrhandler(func(_ *Comm, err error) { _ = w.report(err) })
	return w, nil
}

// open tells the other ranks about this one's memory, and learns about theirs. lack is why
// there is none, of which all are told. The memory is registered if others reach it through
// the network.
func (w *Win) open(op string, lack error, far bool) error {
	c, own := w.c, rma.Remote{Size: uint64(len(w.memory)), Unit: uint64(w.unit)}
	c.ep.Enter()
	config := rma.Config{
		In: c.ep.Inside(), Context: c.context, Rank: int32(c.rank), World: c.Group().world, Ranks: len(c.p.hosts), Index: c.index,
		Memory: w.memory, Dynamic: w.flavor == FlavorDynamic, Common: w.common, Ghosts: c.p.ghosts, Binding: w.binding, Layers: w.contexts(), Clock: c.p.watch.waits(),
	}
	w.w = rma.New(config)
	if lack == nil {
		own, lack = w.askGhost(own)
	}
	if far && len(w.memory) > 0 && lack == nil {
		if w.mr, lack = c.ep.Inside().Expose(w.memory); lack == nil {
			if at := (rma.Access{Key: w.mr.RKey(), Addr: w.mr.Addr()}); own.Client != 0 {
				own.Own = at
			} else {
				own.Key, own.Addr = at.Key, at.Addr
			}
		}
	}
	c.ep.Leave()
	flags := w.declares()
	if lack != nil {
		flags |= winLacks
	}
	if len(w.layers) > 0 {
		flags |= winOverlaps
	}
	if w.binding == GhostBySegment {
		flags |= winSegments
	}
	if mem.AddressOf(w.memory)%8 == 0 {
		flags |= winWords
	}
	words := []int64{int64(own.Size), int64(own.Unit), int64(own.Key), int64(own.Addr), flags, int64(own.Client), int64(own.Own.Key), int64(own.Own.Addr), w.async.says()}
	words = c.p.putOthers(words, own.Others)
	all, err := c.gatherInts(op, words...)
	if err != nil {
		return err
	}
	if w.segment != nil {
		w.segment.Withdraw() // all ranks that need it have it
	}
	odd, remotes := false, make([]rma.Remote, c.size)
	for i := range remotes {
		v := all[len(words)*i:][:len(words)]
		w.async.hear(i, v[8])
		odd = odd || (v[4]^flags)&winOverlaps != 0
		if v[4]&winLacks != 0 && lack == nil {
			lack = fmt.Errorf("rank %d has none", i)
		}
		remotes[i] = rma.Remote{
			Size: uint64(v[0]), Unit: uint64(v[1]), Key: uint32(v[2]), Addr: uint64(v[3]), Client: int32(v[5]), Locked: v[4]&winLocked != 0, Words: v[4]&winWords != 0, Segments: v[4]&winSegments != 0,
			Own: rma.Access{Key: uint32(v[6]), Addr: uint64(v[7])}, Follows: w.async.follow[i], Others: getOthers(v[9:]),
		}
	}
	if odd {
		return fail(ErrInfoValue, op, "%s must be the same on all ranks", windowLayout)
	}
	if lack != nil {
		return &Error{Class: ErrNoMem, Op: op, Rank: -1, Detail: "there is no memory for the window", Err: lack}
	}
	c.ep.Enter()
	w.w.Meet(remotes)
	w.async.served = rma.RoutesOf(w.w).Serves()
	c.ep.Leave()
	c.p.predict(w.async.mode)
	c.p.watch.noteWin(w)
	return nil
}

// discard gives back what a window has that did not come about.
func (w *Win) discard(op string) error {
	if w.w != nil {
		w.c.ep.Enter()
		_ = rma.ServiceOf(w.w).Leave() // which fails where all does
		w.deaf()
		w.c.ep.Leave()
	}
	err := w.c.free(op, true)
	w.endLayers(err == nil)
	return errors.Join(err, w.forget())
}

// deaf ends that messages and losses reach the window, whose memory is to go.
func (w *Win) deaf() {
	w.c.ep.Inside().SetActive(w.c.context, nil)
	for _, l := range w.layers {
		w.c.ep.Inside().SetActive(l.context, nil)
	}
}

// forget ends the registration of the memory, and gives back what is not the program's.
func (w *Win) forget() (err error) {
	w.c.ep.Enter()
	if w.mr != nil {
		err = w.mr.Dereg()
		w.mr = nil
	}
	w.c.ep.Leave()
	switch {
	case w.segment != nil:
		err = errors.Join(err, w.segment.Close())
	case w.flavor == FlavorAllocate || w.flavor == FlavorShared:
		err = errors.Join(err, w.c.p.free(w.memory))
	}
	w.segment, w.memory = nil, nil
	return err
}

// live reports that the window was freed.
func (w *Win) live(op string) error {
	if w == nil || w.c.freed {
		return fail(ErrWin, op, "the window was freed, or is none")
	}
	return nil
}

// Free ends the use of a window (MPI_Win_free). All its ranks call it, outside of epochs,
// and it waits until they do. After the failure of a rank the memory of the window stays
// as it is, for ranks that do not know may still use it.
func (w *Win) Free() error {
	const op = "Win.Free"
	err := w.live(op)
	if err == nil {
		w.c.ep.Enter()
		err = w.wrap(op, w.w.Idle())
		w.c.ep.Leave()
	}
	if err == nil {
		err = w.attrs.removeAll(op, w)
	}
	if err != nil {
		return w.report(err)
	}
	w.c.p.watch.leftWin(w)
	w.c.coll.op = op
	met := w.c.barrier()
	if met == nil {
		w.c.ep.Enter()
		if met = rma.ServiceOf(w.w).Leave(); met == nil {
			w.deaf()
		}
		w.c.ep.Leave()
	}
	err = w.c.free(op, true)
	w.endLayers(err == nil && met == nil)
	if met != nil {
		return w.report(err)
	}
	return w.report(errors.Join(err, w.forget()))
}

// Flavor returns how the window was made (the attribute MPI_WIN_CREATE_FLAVOR).
func (w *Win) Flavor() WinFlavor { return w.flavor }

// Memory returns the memory of this rank (the attributes MPI_WIN_BASE and MPI_WIN_SIZE);
// nil of a dynamic window.
func (w *Win) Memory() []byte { return w.memory }

// Unit returns the displacement unit of a rank's memory in bytes (of the own rank the
// attribute MPI_WIN_DISP_UNIT).
func (w *Win) Unit(rank int) int { return w.w.Unit(rank) }

// Rank returns the number of this rank in the group of the window.
func (w *Win) Rank() int { return w.c.rank }

// Size returns the number of ranks.
func (w *Win) Size() int { return w.c.size }

// Group returns the ranks of the window (MPI_Win_get_group).
func (w *Win) Group() *Group { return w.c.Group() }

// SetName gives the window a name (MPI_Win_set_name).
func (w *Win) SetName(name string) { w.name = name }

// Name returns the name, at first none (MPI_Win_get_name).
func (w *Win) Name() string { return w.name }

// Attach adds memory of this rank to a dynamic window (MPI_Win_attach) and returns where
// it is: the displacement, for other ranks, of its first element. It must not overlap what
// is attached already.
func Attach[T Scalar](w *Win, memory []T) (disp int, err error) {
	const op = "Attach"
	if err := w.live(op); err != nil {
		return 0, w.report(err)
	}
	b := mem.BytesOf(memory)
	switch {
	case w.flavor != FlavorDynamic:
		return 0, w.reportf(ErrRMAFlavor, op, "a window of flavor %v: Comm.WinCreateDynamic makes those that memory is attached to", w.flavor)
	case len(b) == 0:
		return 0, nil
	}
	addr := mem.AddressOf(b)
	w.c.ep.Enter()
	ok := w.w.Attach(addr, b)
	w.c.ep.Leave()
	if !ok {
		return 0, w.reportf(ErrRMAAttach, op, "a part of the memory is attached already")
	}
	return int(addr), nil
}

// Detach takes memory out of a dynamic window (MPI_Win_detach), which no operation of
// others uses any more.
func Detach[T Scalar](w *Win, memory []T) error {
	const op = "Detach"
	if err := w.live(op); err != nil {
		return w.report(err)
	}
	b := mem.BytesOf(memory)
	if len(b) == 0 {
		return nil
	}
	w.c.ep.Enter()
	ok := w.w.Detach(mem.AddressOf(b))
	w.c.ep.Leave()
	if !ok {
		return w.reportf(ErrRMAAttach, op, "the memory was not attached, or it begins elsewhere")
	}
	return nil
}

package capi

import "github.com/xwarp/xwarp/mpi"

// win is a window of the program.
type win struct {
	*mpi.Win
	handler             Handle // its error handler
	base                Addr
	size                int64 // what attributes point to, with those that follow
	unit, flavor, model int32
}

// win returns a window, or says what is wrong.
func (l *Lib) win(h Handle) (*win, error) {
	if w := l.wins.get(h); w != nil {
		return *w, nil
	}
	if err := l.up(); err != nil {
		return nil, err
	}
	if h == MPI_WIN_NULL {
		return nil, fail(mpi.ErrWin, "MPI_WIN_NULL")
	}
	return nil, fail(mpi.ErrWin, "%#x is no window, or was freed", uintptr(h))
}

// flavors are the ways in which windows are made.
var flavors = map[mpi.WinFlavor]int32{
	mpi.FlavorCreate: MPI_WIN_FLAVOR_CREATE, mpi.FlavorAllocate: MPI_WIN_FLAVOR_ALLOCATE,
	mpi.FlavorDynamic: MPI_WIN_FLAVOR_DYNAMIC, mpi.FlavorShared: MPI_WIN_FLAVOR_SHARED,
}

// addWin gives the program a window.
func (l *Lib) addWin(w *mpi.Win, base Addr, size int, err error, to Handles) error {
	if err != nil {
		return err
	}
	unit := int32(MPI_UNDEFINED) // of what an int is too small for
	if u := w.Unit(w.Rank()); int(int32(u)) == u {
		unit = int32(u)
	}
	to.set(0, l.wins.add(&win{
		Win: w, handler: MPI_ERRORS_ARE_FATAL, base: base, size: int64(size),
		unit: unit, flavor: flavors[w.Flavor()], model: MPI_WIN_UNIFIED,
	}))
	return nil
}

// predefinedAttr is an attribute of windows that MPI defines.
func (w *win) predefinedAttr(key int) (at Addr, ok bool) {
	switch key {
	case MPI_WIN_BASE:
		return w.base, true
	case MPI_WIN_SIZE:
		return addressOfValue(&w.size), true
	case MPI_WIN_DISP_UNIT:
		return addressOfValue(&w.unit), true
	case MPI_WIN_CREATE_FLAVOR:
		return addressOfValue(&w.flavor), true
	case MPI_WIN_MODEL:
		return addressOfValue(&w.model), true
	}
	return 0, false
}

// commAndInfo looks both up.
func (l *Lib) commAndInfo(ch, ih Handle) (*comm, *mpi.Info, error) {
	c, err := l.comm(ch)
	if err != nil {
		return nil, nil, err
	}
	i, err := l.infoOrNull(ih)
	return c, i, err
}

// WinCreate is MPI_Win_create.
func WinCreate(l *Lib, base Addr, size, unit int, info, comm Handle, to Handles) error {
	c, i, err := l.commAndInfo(comm, info)
	if err != nil {
		return err
	}
	memory, err := region(base, size)
	if err != nil {
		return err
	}
	w, err := c.WinCreate(memory, unit, i)
	return l.addWin(w, base, size, err, to)
}

// region is memory of the program.
func region(base Addr, size int) ([]byte, error) {
	switch {
	case size < 0:
		return nil, fail(mpi.ErrSize, "%d bytes", size)
	case size == 0:
		return nil, nil
	case !base.memory():
		return nil, fail(mpi.ErrArg, "%d bytes at address %#x", size, uintptr(base))
	}
	return base.bytes(size), nil
}

// WinAllocate is MPI_Win_allocate.
func WinAllocate(l *Lib, size, unit int, info, comm Handle, base Addr, to Handles) error {
	return l.allocateWin(size, unit, info, comm, (*mpi.Comm).WinAllocate, base, to)
}

// WinAllocateShared is MPI_Win_allocate_shared.
func WinAllocateShared(l *Lib, size, unit int, info, comm Handle, base Addr, to Handles) error {
	return l.allocateWin(size, unit, info, comm, (*mpi.Comm).WinAllocateShared, base, to)
}

func (l *Lib) allocateWin(size, unit int, info, comm Handle, f func(*mpi.Comm, int, int, *mpi.Info) (*mpi.Win, []byte, error), base Addr, to Handles) error {
	c, i, err := l.commAndInfo(comm, info)
	if err != nil {
		return err
	}
	if size < 0 {
		return fail(mpi.ErrSize, "%d bytes", size)
	}
	if base == 0 {
		return fail(mpi.ErrArg, "baseptr is NULL")
	}
	w, memory, err := f(c.Comm, size, unit, i)
	if err != nil {
		return err
	}
	at := addressOf(memory)
	*base.word() = uintptr(at)
	return l.addWin(w, at, size, nil, to)
}

// WinCreateDynamic is MPI_Win_create_dynamic.
func WinCreateDynamic(l *Lib, info, comm Handle, to Handles) error {
	c, i, err := l.commAndInfo(comm, info)
	if err != nil {
		return err
	}
	w, err := c.WinCreateDynamic(i)
	return l.addWin(w, MPI_BOTTOM, 0, err, to)
}

// WinAttach is MPI_Win_attach.
func WinAttach(l *Lib, win Handle, base Addr, size int) error {
	w, err := l.win(win)
	if err != nil {
		return err
	}
	memory, err := region(base, size)
	if err != nil {
		return err
	}
	_, err = mpi.Attach(w.Win, memory)
	return err
}

// WinDetach is MPI_Win_detach.
func WinDetach(l *Lib, win Handle, base Addr) error {
	w, err := l.win(win)
	if err != nil {
		return err
	}
	if w.Flavor() != mpi.FlavorDynamic {
		return fail(mpi.ErrRMAFlavor, "memory is attached to dynamic windows only")
	}
	memory, err := region(base, 1)
	if err != nil {
		return err
	}
	return mpi.Detach(w.Win, memory)
}

// WinFree is MPI_Win_free.
func WinFree(l *Lib, win Handles) error {
	h := win.get(0)
	w, err := l.win(h)
	if err != nil {
		return err
	}
	if err = w.Free(); err != nil {
		return &elsewhere{err, Where{kind: kindWin, handle: h}}
	}
	l.release(w.handler)
	l.wins.remove(h)
	win.set(0, MPI_WIN_NULL)
	return nil
}

// WinSharedQuery is MPI_Win_shared_query.
func WinSharedQuery(l *Lib, win Handle, rank int, size, unit Ints, base Addr) error {
	w, err := l.win(win)
	if err != nil {
		return err
	}
	if base == 0 {
		return fail(mpi.ErrArg, "baseptr is NULL")
	}
	memory, u, err := w.SharedQuery(rankFrom(rank))
	if err == nil {
		size.set(0, len(memory))
		unit.setCount(u)
		*base.word() = uintptr(addressOf(memory))
	}
	return err
}

// WinGetGroup is MPI_Win_get_group.
func WinGetGroup(l *Lib, win Handle, to Handles) error {
	w, err := l.win(win)
	if err == nil {
		to.set(0, l.addGroup(w.Group()))
	}
	return err
}

// WinGetName is MPI_Win_get_name. MPI_WIN_NULL has a name since MPI 4.0.
func WinGetName(l *Lib, win Handle, name Text, length Ints) error {
	if win == MPI_WIN_NULL && l.up() == nil {
		length.set(0, name.set("MPI_WIN_NULL", MPI_MAX_OBJECT_NAME))
		return nil
	}
	w, err := l.win(win)
	if err == nil {
		length.set(0, name.set(w.Name(), MPI_MAX_OBJECT_NAME))
	}
	return err
}

// WinSetName is MPI_Win_set_name.
func WinSetName(l *Lib, win Handle, name string) error {
	w, err := l.win(win)
	if err == nil {
		w.SetName(name)
	}
	return err
}

// WinGetInfo is MPI_Win_get_info.
func WinGetInfo(l *Lib, win Handle, to Handles) error {
	w, err := l.win(win)
	if err != nil {
		return err
	}
	i, err := w.Info()
	return l.newInfo(i, err, to)
}

// WinSetInfo is MPI_Win_set_info.
func WinSetInfo(l *Lib, win, info Handle) error {
	w, err := l.win(win)
	if err != nil {
		return err
	}
	i, err := l.info(info)
	if err != nil {
		return err
	}
	return w.SetInfo(i)
}

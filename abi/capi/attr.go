package capi

import (
	"sync/atomic"

	"github.com/xwarp/xwarp/mpi"
)

// keyval is a key of attributes of the program: for objects of one kind.
type keyval struct {
	comm     *mpi.Keyval
	datatype *mpi.TypeKeyval
	win      *mpi.WinKeyval
	f        *attrFunctions
}

// dupFn is MPI_DUP_FN of the ABI of the standard. That of MPICH's is a function.
const dupFn Addr = 1

// predefinedAttrs are what predefined attributes of communicators point to. The library is
// never moved, nor collected.
type predefinedAttrs struct{ tagUB, host, io, global, universe, app, code int32 }

// attrFunctions are the functions of a key.
type attrFunctions struct {
	copy, delete, extra Addr
	key                 int // as the program has it

	// What calls those of Fortran; 0: they are C.
	copyProxy, deleteProxy Addr

	// The key is there until the program has freed it and no attribute has it.
	uses  atomic.Int64
	freed atomic.Bool
}

// releaseKey takes back one use of a key.
func (l *Lib) releaseKey(f *attrFunctions) {
	if f.uses.Add(-1) == 0 {
		l.keyvals.remove(keyHandle(f.key))
	}
}

// used counts the use of a key by an attribute that was set.
func (l *Lib) used(key int, err error) error {
	if k := l.keyvals.get(keyHandle(key)); err == nil && k != nil {
		k.f.uses.Add(1)
	}
	return err
}

// SetProxy says what calls the functions of a key, which are those of a Fortran program.
func (l *Lib) SetProxy(key int, copyProxy, deleteProxy Addr) {
	if k := l.keyvals.get(keyHandle(key)); k != nil {
		k.f.copyProxy, k.f.deleteProxy = copyProxy, deleteProxy
	}
}

// keyvalFor is a key of package mpi that calls the functions. handleOf returns the
// program's handle of an object.
func keyvalFor[O any](l *Lib, f *attrFunctions, handleOf func(O) Handle) *mpi.KeyvalOf[O] {
	k := &mpi.KeyvalOf[O]{}
	switch f.copy {
	case 0:
	case dupFn:
		k.Copy = func(_ O, value any) (any, bool, error) {
			f.uses.Add(1)
			return value, true, nil
		}
	default:
		k.Copy = func(old O, value any) (any, bool, error) {
			to, ok, rc := l.calls.CopyAttr(f.copy, f.copyProxy, handleOf(old), f.key, f.extra, value.(Addr))
			if ok && rc == MPI_SUCCESS {
				f.uses.Add(1)
			}
			return to, ok, attrError("copy", rc)
		}
	}
	k.Delete = func(o O, value any) error {
		if f.delete != 0 {
			if err := attrError("delete", l.calls.DeleteAttr(f.delete, f.deleteProxy, handleOf(o), f.key, value.(Addr), f.extra)); err != nil {
				return err
			}
		}
		l.releaseKey(f)
		return nil
	}
	return k
}

// attrError is what a function of the program has returned.
func attrError(what string, rc int) error {
	if rc == MPI_SUCCESS {
		return nil
	}
	return fail(classFrom(rc), "the %s function of an attribute returned %d", what, rc)
}

// addKeyval gives the program a key that make makes.
func (l *Lib) addKeyval(copyFn, deleteFn, extra Addr, to Ints, build func(*attrFunctions) keyval) error {
	f := &attrFunctions{copy: copyFn, delete: deleteFn, extra: extra}
	f.uses.Store(1)
	h := l.keyvals.add(build(f))
	f.key = int(int32(h))
	to.set(0, f.key)
	return nil
}

// freeKeyval forgets a key. Attributes keep it for as long as they are there, and while they do
// it may be freed again, and be used with these objects.
func (l *Lib) freeKeyval(at Ints, has func(*keyval) bool) error {
	k := l.keyvals.get(keyHandle(at.get(0)))
	if k == nil || !has(k) {
		return noKeyval(at.get(0))
	}
	if f := k.f; !f.freed.Swap(true) {
		l.releaseKey(f)
	}
	at.set(0, MPI_KEYVAL_INVALID)
	return nil
}

func keyHandle(key int) Handle { return Handle(uint32(key)) }

func noKeyval(key int) error {
	if key == MPI_KEYVAL_INVALID {
		return fail(mpi.ErrKeyval, "MPI_KEYVAL_INVALID")
	}
	return fail(mpi.ErrKeyval, "%#x is no attribute key for such objects, or one that MPI defines, or was freed", key)
}

// keyval returns a key, the empty one if there is none.
func (l *Lib) keyval(key int) keyval {
	if k := l.keyvals.get(keyHandle(key)); k != nil {
		return *k
	}
	return keyval{}
}

// tellAttr brings an attribute to the program.
func tellAttr(at Addr, flag Ints, value any, ok bool) error {
	if !at.memory() {
		return fail(mpi.ErrArg, "there is no memory for the attribute at %#x", uintptr(at))
	}
	if ok {
		*at.word() = uintptr(value.(Addr))
	}
	flag.setFlag(ok)
	return nil
}

// handleOfComm returns the program's handle of a communicator.
func (l *Lib) handleOfComm(c *mpi.Comm) Handle {
	switch c {
	case l.world.Comm:
		return MPI_COMM_WORLD
	case l.self.Comm:
		return MPI_COMM_SELF
	}
	return l.comms.find(MPI_COMM_NULL, func(x *comm) bool { return x.Comm == c })
}

// CommCreateKeyval is MPI_Comm_create_keyval.
func CommCreateKeyval(l *Lib, copyFn, deleteFn Addr, key Ints, extra Addr) error {
	return l.addKeyval(copyFn, deleteFn, extra, key, func(f *attrFunctions) keyval {
		return keyval{f: f, comm: keyvalFor(l, f, l.handleOfComm)}
	})
}

// KeyvalCreate is MPI_Keyval_create.
func KeyvalCreate(l *Lib, copyFn, deleteFn Addr, key Ints, extra Addr) error {
	return CommCreateKeyval(l, copyFn, deleteFn, key, extra)
}

// CommFreeKeyval is MPI_Comm_free_keyval.
func CommFreeKeyval(l *Lib, key Ints) error {
	return l.freeKeyval(key, func(k *keyval) bool { return k.comm != nil })
}

// KeyvalFree is MPI_Keyval_free.
func KeyvalFree(l *Lib, key Ints) error { return CommFreeKeyval(l, key) }

// commKey looks a communicator and a key up.
func (l *Lib) commKey(comm Handle, key int) (*comm, *mpi.Keyval, error) {
	c, err := l.comm(comm)
	if err != nil {
		return nil, nil, err
	}
	k := l.keyval(key).comm
	if k == nil {
		return nil, nil, noKeyval(key)
	}
	return c, k, nil
}

// CommSetAttr is MPI_Comm_set_attr.
func CommSetAttr(l *Lib, comm Handle, key int, value Addr) error {
	c, k, err := l.commKey(comm, key)
	if err != nil {
		return err
	}
	return l.used(key, c.SetAttr(k, value))
}

// AttrPut is MPI_Attr_put.
func AttrPut(l *Lib, comm Handle, key int, value Addr) error { return CommSetAttr(l, comm, key, value) }

// CommGetAttr is MPI_Comm_get_attr.
func CommGetAttr(l *Lib, comm Handle, key int, value Addr, flag Ints) error {
	if at := l.predefinedAttr(key); at != nil {
		_, err := l.comm(comm)
		if err == nil {
			l.fixed.code = int32(max(MPI_ERR_LASTCODE, classTo(l.errors.LastUsedCode())))
			err = tellAttr(value, flag, addressOfValue(at), true)
		}
		return err
	}
	c, k, err := l.commKey(comm, key)
	if err != nil {
		return err
	}
	v, ok := c.Attr(k)
	return tellAttr(value, flag, v, ok)
}

// predefinedAttr is where the value of an attribute is that MPI defines, or nil.
func (l *Lib) predefinedAttr(key int) *int32 {
	switch key {
	case MPI_TAG_UB:
		return &l.fixed.tagUB
	case MPI_HOST:
		return &l.fixed.host
	case MPI_IO:
		return &l.fixed.io
	case MPI_WTIME_IS_GLOBAL:
		return &l.fixed.global
	case MPI_UNIVERSE_SIZE:
		return &l.fixed.universe
	case MPI_APPNUM:
		return &l.fixed.app
	case MPI_LASTUSEDCODE:
		return &l.fixed.code
	}
	return nil
}

// fixAttrs sets what predefined attributes point to.
func (l *Lib) fixAttrs() {
	l.fixed = predefinedAttrs{
		tagUB: mpi.MaxTag, host: MPI_PROC_NULL, io: MPI_ANY_SOURCE, code: MPI_ERR_LASTCODE,
		universe: int32(l.proc.World().Size()),
	}
}

// AttrGet is MPI_Attr_get.
func AttrGet(l *Lib, comm Handle, key int, value Addr, flag Ints) error {
	return CommGetAttr(l, comm, key, value, flag)
}

// CommDeleteAttr is MPI_Comm_delete_attr. That there is no such attribute is no error.
func CommDeleteAttr(l *Lib, comm Handle, key int) error {
	c, k, err := l.commKey(comm, key)
	if err != nil {
		return err
	}
	if _, there := c.Attr(k); !there {
		return nil
	}
	return c.DeleteAttr(k)
}

// AttrDelete is MPI_Attr_delete.
func AttrDelete(l *Lib, comm Handle, key int) error { return CommDeleteAttr(l, comm, key) }

// handleOfType returns the program's handle of a datatype.
func (l *Lib) handleOfType(t mpi.Datatype) Handle {
	l.types.mu.Lock()
	defer l.types.mu.Unlock()
	if h, there := l.types.handles[t]; there {
		return h
	}
	return MPI_DATATYPE_NULL
}

// TypeCreateKeyval is MPI_Type_create_keyval.
func TypeCreateKeyval(l *Lib, copyFn, deleteFn Addr, key Ints, extra Addr) error {
	return l.addKeyval(copyFn, deleteFn, extra, key, func(f *attrFunctions) keyval {
		return keyval{f: f, datatype: keyvalFor(l, f, l.handleOfType)}
	})
}

// TypeFreeKeyval is MPI_Type_free_keyval.
func TypeFreeKeyval(l *Lib, key Ints) error {
	return l.freeKeyval(key, func(k *keyval) bool { return k.datatype != nil })
}

// typeKey looks a datatype and a key up.
func (l *Lib) typeKey(datatype Handle, key int) (mpi.Datatype, *mpi.TypeKeyval, error) {
	t, err := l.datatype(datatype)
	if err == nil {
		err = l.up()
	}
	k := l.keyval(key).datatype
	if err == nil && k == nil {
		err = noKeyval(key)
	}
	return t, k, err
}

// TypeSetAttr is MPI_Type_set_attr.
func TypeSetAttr(l *Lib, datatype Handle, key int, value Addr) error {
	t, k, err := l.typeKey(datatype, key)
	if err != nil {
		return err
	}
	return l.used(key, l.proc.TypeSetAttr(t, k, value))
}

// TypeGetAttr is MPI_Type_get_attr.
func TypeGetAttr(l *Lib, datatype Handle, key int, value Addr, flag Ints) error {
	t, k, err := l.typeKey(datatype, key)
	if err != nil {
		return err
	}
	v, ok := l.proc.TypeAttr(t, k)
	return tellAttr(value, flag, v, ok)
}

// TypeDeleteAttr is MPI_Type_delete_attr.
func TypeDeleteAttr(l *Lib, datatype Handle, key int) error {
	t, k, err := l.typeKey(datatype, key)
	if err != nil {
		return err
	}
	if _, there := l.proc.TypeAttr(t, k); !there {
		return nil
	}
	return l.proc.TypeDeleteAttr(t, k)
}

// handleOfWin returns the program's handle of a window.
func (l *Lib) handleOfWin(w *mpi.Win) Handle {
	return l.wins.find(MPI_WIN_NULL, func(x **win) bool { return (*x).Win == w })
}

// WinCreateKeyval is MPI_Win_create_keyval.
func WinCreateKeyval(l *Lib, copyFn, deleteFn Addr, key Ints, extra Addr) error {
	return l.addKeyval(copyFn, deleteFn, extra, key, func(f *attrFunctions) keyval {
		return keyval{f: f, win: keyvalFor(l, f, l.handleOfWin)}
	})
}

// WinFreeKeyval is MPI_Win_free_keyval.
func WinFreeKeyval(l *Lib, key Ints) error {
	return l.freeKeyval(key, func(k *keyval) bool { return k.win != nil })
}

// winKey looks a window and a key up.
func (l *Lib) winKey(h Handle, key int) (*win, *mpi.WinKeyval, error) {
	w, err := l.win(h)
	if err != nil {
		return nil, nil, err
	}
	k := l.keyval(key).win
	if k == nil {
		return nil, nil, noKeyval(key)
	}
	return w, k, nil
}

// WinSetAttr is MPI_Win_set_attr.
func WinSetAttr(l *Lib, win Handle, key int, value Addr) error {
	w, k, err := l.winKey(win, key)
	if err != nil {
		return err
	}
	return l.used(key, w.SetAttr(k, value))
}

// WinGetAttr is MPI_Win_get_attr.
func WinGetAttr(l *Lib, win Handle, key int, value Addr, flag Ints) error {
	w, err := l.win(win)
	if err != nil {
		return err
	}
	if at, ok := w.predefinedAttr(key); ok {
		return tellAttr(value, flag, at, true)
	}
	_, k, err := l.winKey(win, key)
	if err != nil {
		return err
	}
	v, ok := w.Attr(k)
	return tellAttr(value, flag, v, ok)
}

// WinDeleteAttr is MPI_Win_delete_attr.
func WinDeleteAttr(l *Lib, win Handle, key int) error {
	w, k, err := l.winKey(win, key)
	if err != nil {
		return err
	}
	if _, there := w.Attr(k); !there {
		return nil
	}
	return w.DeleteAttr(k)
}

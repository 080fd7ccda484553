package capi

import (
	"errors"

	"github.com/xwarp/xwarp/mpi"
)

// errhandler is an error handler that the program has made. It is there for as long as the
// program has a handle for it or an object has it.
type errhandler struct {
	function Addr
	kind     kind // of the objects that it is for
	users    int
}

// hold notes that one more has an error handler.
func (l *Lib) hold(h Handle) Handle {
	l.errhandlers.mu.Lock()
	defer l.errhandlers.mu.Unlock()
	if e := l.errhandlers.get(h); e != nil {
		e.users++
	}
	return h
}

// release is the end of hold.
func (l *Lib) release(h Handle) {
	e := l.errhandlers.get(h)
	if e == nil {
		return
	}
	l.errhandlers.mu.Lock()
	e.users--
	last := e.users == 0
	l.errhandlers.mu.Unlock()
	if last {
		l.errhandlers.remove(h)
	}
}

// handlerAt is where the error handler of an object is, or nil.
func (l *Lib) handlerAt(w Where) *Handle {
	if w.kind == kindComm {
		if c := l.lookup(w.handle); c != nil {
			return &c.handler
		}
	}
	if w.kind == kindWin {
		if x := l.wins.get(w.handle); x != nil {
			return &(*x).handler
		}
	}
	if w.kind == kindSession {
		if s := l.sessions.get(w.handle); s != nil {
			return &(*s).handler
		}
	}
	return nil
}

// handlerOf returns the error handler for errors of an object. Those of none, or of one that
// is invalid, are for that of MPI_COMM_SELF; programs for MPI-3 have set that of
// MPI_COMM_WORLD.
func (l *Lib) handlerOf(w Where) Handle {
	if w.handler != 0 && l.checkHandler(w.kind, w.handler) == nil {
		return w.handler
	}
	if at := l.handlerAt(w); at != nil && w != OnSelf() {
		return *at
	}
	if l.self.handler == MPI_ERRORS_ARE_FATAL {
		return l.world.handler
	}
	return l.self.handler
}

// handle calls an error handler. why is asked for when the job is to end.
func (l *Lib) handle(handler, object Handle, code int, why func() string) {
	switch handler {
	case MPI_ERRORS_RETURN:
		return
	case MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT:
		l.die(code, why())
		return
	}
	if h := l.errhandlers.get(handler); h != nil {
		l.calls.Errhandler(h.function, object, code)
	}
}

func (l *Lib) createErrhandler(k kind, function Addr, to Handles) error {
	if function == 0 {
		return fail(mpi.ErrArg, "the function is NULL")
	}
	to.set(0, l.errhandlers.add(errhandler{function, k, 1}))
	return nil
}

// CommCreateErrhandler is MPI_Comm_create_errhandler.
func CommCreateErrhandler(l *Lib, function Addr, to Handles) error {
	return l.createErrhandler(kindComm, function, to)
}

// WinCreateErrhandler is MPI_Win_create_errhandler.
func WinCreateErrhandler(l *Lib, function Addr, to Handles) error {
	return l.createErrhandler(kindWin, function, to)
}

// SessionCreateErrhandler is MPI_Session_create_errhandler.
func SessionCreateErrhandler(l *Lib, function Addr, to Handles) error {
	return l.createErrhandler(kindSession, function, to)
}

// FileCreateErrhandler is MPI_File_create_errhandler.
func FileCreateErrhandler(l *Lib, function Addr, to Handles) error {
	return l.createErrhandler(kindFile, function, to)
}

// ErrhandlerFree is MPI_Errhandler_free.
func ErrhandlerFree(l *Lib, handler Handles) error {
	h := handler.get(0)
	if l.errhandlers.get(h) == nil && !predefinedHandler(h) {
		return fail(noHandler, "%#x is no error handler, or was freed", uintptr(h))
	}
	l.release(h)
	handler.set(0, MPI_ERRHANDLER_NULL)
	return nil
}

func predefinedHandler(h Handle) bool {
	return h == MPI_ERRORS_ARE_FATAL || h == MPI_ERRORS_RETURN || h == MPI_ERRORS_ABORT
}

// checkHandler says what is wrong with an error handler for objects of a kind.
func (l *Lib) checkHandler(k kind, h Handle) error {
	if predefinedHandler(h) {
		return nil
	}
	if e := l.errhandlers.get(h); e == nil || e.kind != k {
		return fail(noHandler, "%#x is no error handler for such objects, or was freed", uintptr(h))
	}
	return nil
}

// noObject are the classes of errors with handles of each kind.
var noObject = map[kind]mpi.ErrorClass{kindComm: mpi.ErrComm, kindWin: mpi.ErrWin, kindSession: mpi.ErrSession, kindFile: mpi.ErrFile}

// objectHandler is handlerAt, or an error.
func (l *Lib) objectHandler(w Where) (*Handle, error) {
	if at := l.handlerAt(w); at != nil {
		return at, nil
	}
	return nil, fail(noObject[w.kind], "%#x is none, or was freed", uintptr(w.handle))
}

func (l *Lib) setHandler(w Where, h Handle) error {
	at, err := l.objectHandler(w)
	if err == nil {
		err = l.checkHandler(w.kind, h)
	}
	if err == nil {
		old := *at
		*at = l.hold(h)
		l.release(old)
	}
	return err
}

func (l *Lib) getHandler(w Where, to Handles) error {
	at, err := l.objectHandler(w)
	if err == nil {
		to.set(0, l.hold(*at))
	}
	return err
}

// callHandler calls the error handler of an object with an error of the program's, for the
// function name.
func (l *Lib) callHandler(name string, w Where, number int) error {
	at, err := l.objectHandler(w)
	if err == nil {
		l.handle(*at, w.handle, number, func() string {
			return l.explain(name, errors.New(l.textOf(number)))
		})
	}
	return err
}

// CommSetErrhandler is MPI_Comm_set_errhandler.
func CommSetErrhandler(l *Lib, comm, handler Handle) error {
	return l.setHandler(Where{kind: kindComm, handle: comm}, handler)
}

// CommGetErrhandler is MPI_Comm_get_errhandler.
func CommGetErrhandler(l *Lib, comm Handle, handler Handles) error {
	return l.getHandler(Where{kind: kindComm, handle: comm}, handler)
}

// CommCallErrhandler is MPI_Comm_call_errhandler.
func CommCallErrhandler(l *Lib, comm Handle, number int) error {
	return l.callHandler("MPI_Comm_call_errhandler", Where{kind: kindComm, handle: comm}, number)
}

// WinSetErrhandler is MPI_Win_set_errhandler.
func WinSetErrhandler(l *Lib, win, handler Handle) error {
	return l.setHandler(Where{kind: kindWin, handle: win}, handler)
}

// WinGetErrhandler is MPI_Win_get_errhandler.
func WinGetErrhandler(l *Lib, win Handle, handler Handles) error {
	return l.getHandler(Where{kind: kindWin, handle: win}, handler)
}

// WinCallErrhandler is MPI_Win_call_errhandler.
func WinCallErrhandler(l *Lib, win Handle, number int) error {
	return l.callHandler("MPI_Win_call_errhandler", Where{kind: kindWin, handle: win}, number)
}

// SessionSetErrhandler is MPI_Session_set_errhandler.
func SessionSetErrhandler(l *Lib, session, handler Handle) error {
	return l.setHandler(Where{kind: kindSession, handle: session}, handler)
}

// SessionGetErrhandler is MPI_Session_get_errhandler.
func SessionGetErrhandler(l *Lib, session Handle, handler Handles) error {
	return l.getHandler(Where{kind: kindSession, handle: session}, handler)
}

// SessionCallErrhandler is MPI_Session_call_errhandler.
func SessionCallErrhandler(l *Lib, session Handle, number int) error {
	return l.callHandler("MPI_Session_call_errhandler", Where{kind: kindSession, handle: session}, number)
}

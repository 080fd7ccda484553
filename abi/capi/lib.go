package capi

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/xwarp/xwarp/mpi"
)

// Callbacks are what a library does that Go cannot do by itself.
type Callbacks struct {
	// Errhandler calls an error handler of the program.
	Errhandler func(function Addr, object Handle, code int)
	// Query, Free and Cancel call the functions of a generalized request, which may be those of
	// a Fortran program.
	Query  func(function, state Addr, status *StatusMemory, fortran bool) int
	Free   func(function, state Addr, fortran bool) int
	Cancel func(function, state Addr, complete, fortran bool) int
	// CopyAttr and DeleteAttr call the functions of an attribute key, by their proxies if these
	// are not 0.
	CopyAttr   func(function, proxy Addr, object Handle, key int, extra, value Addr) (copied Addr, ok bool, rc int)
	DeleteAttr func(function, proxy Addr, object Handle, key int, value, extra Addr) (rc int)
	// AtExit sees to it that Leave is called when the process ends.
	AtExit func()
	// Flush writes what the program has printed and the C library keeps.
	Flush func()
	// Reduce calls a function of the program that reduces elements.
	Reduce func(function Addr, in, inout Addr, count int, datatype Handle, large bool)
	// Exit writes a text to standard error and ends the process.
	Exit func(code int, text string)
}

// A Lib is the state of MPI in a process.
type Lib struct {
	calls Callbacks
	state atomic.Int32 // of MPI_Init
	users atomic.Int32 // MPI_Init, and sessions, that have not come to their ends
	proc  *mpi.Proc
	level int // of threads, as the program has it

	errors mpi.UserErrors

	world, self comm // MPI_COMM_WORLD and MPI_COMM_SELF
	comms       table[comm]
	types       datatypes
	ops         operations
	requests    table[request]
	messages    table[message]
	errhandlers table[errhandler]
	groups      table[*mpi.Group]
	infos       table[*mpi.Info]
	keyvals     table[keyval]
	wins        table[*win]
	sessions    table[*session]
	fixed       predefinedAttrs
	memory      allocated
	batches     batches
	attached    attached // to MPI_Bsend of the process
	tools       tools
	abi         abiState
}

// What a Lib has been through.
const (
	before int32 = iota
	initialized
	finalized
)

// New returns the state of a process that has not called MPI_Init yet.
func New(calls Callbacks) *Lib {
	l := &Lib{calls: calls}
	l.comms.kind, l.requests.kind = kindComm, kindRequest
	l.messages.kind, l.errhandlers.kind = kindMessage, kindErrhandler
	l.groups.kind, l.infos.kind, l.keyvals.kind = kindGroup, kindInfo, kindKeyval
	l.wins.kind, l.sessions.kind = kindWin, kindSession
	l.types.init()
	l.tools.init()
	l.ops.init()
	l.world.handler, l.self.handler = MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ARE_FATAL
	return l
}

// up returns an error unless MPI_Init was called, and MPI_Finalize was not, or there is a
// session.
func (l *Lib) up() error {
	switch {
	case l.users.Load() > 0:
		return nil
	case l.state.Load() == finalized:
		return fail(mpi.ErrOther, "MPI_Finalize was called before")
	}
	return fail(mpi.ErrOther, "MPI_Init was not called")
}

// Boundary is deferred in each function that C calls: it keeps a panic from going on into C.
func (l *Lib) Boundary(name string, rc *int32) {
	if v := recover(); v != nil {
		*rc = int32(classTo(mpi.ErrIntern))
		l.die(int(*rc), fmt.Sprintf("%s: internal error: %v\n%s", name, v, debug.Stack()))
	}
}

// die ends the job.
func (l *Lib) die(code int, why string) {
	l.calls.Flush() // the launcher may end this process at once
	if l.up() == nil {
		l.proc.AbortWith(code, why)
	}
	l.calls.Exit(code, why)
}

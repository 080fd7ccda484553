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
	// Query, Free and Cancel call the functions of a generalized request.
	Query  func(function, state Addr, status *StatusMemory) int
	Free   func(function, state Addr) int
	Cancel func(function, state Addr, complete bool) int
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
	state atomic.Int32
	proc  *mpi.Proc
	level int // of threads, as the program has it

	world, self comm // MPI_COMM_WORLD and MPI_COMM_SELF
	comms       table[comm]
	types       datatypes
	ops         operations
	requests    table[request]
	messages    table[message]
	errhandlers table[errhandler]
	batches     batches
	attached    attached // to MPI_Bsend of the process
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
	l.types.init()
	l.ops.init()
	l.world.handler, l.self.handler = MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ARE_FATAL
	return l
}

// up returns an error unless MPI_Init was called, and MPI_Finalize was not.
func (l *Lib) up() error {
	switch l.state.Load() {
	case before:
		return fail(mpi.ErrOther, "MPI_Init was not called")
	case finalized:
		return fail(mpi.ErrOther, "MPI_Finalize was called before")
	}
	return nil
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
	if l.state.Load() == initialized {
		l.proc.AbortWith(code, why)
	}
	l.calls.Exit(code, why)
}

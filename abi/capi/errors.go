package capi

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/mpi"
)

func fail(class mpi.ErrorClass, format string, args ...any) error {
	return &mpi.Error{Class: class, Rank: -1, Detail: fmt.Sprintf(format, args...)}
}

// Where says whose error handler gets an error.
type Where struct {
	kind    kind // 0: MPI_T, whose functions have none
	handle  Handle
	handler Handle // not 0: that which the object was to have, of which there is none yet
}

// OnComm is the handler of a communicator.
func OnComm(h uintptr) Where { return Where{kind: kindComm, handle: Handle(h)} }

// OnWin is the handler of a window.
func OnWin(h uintptr) Where { return Where{kind: kindWin, handle: Handle(h)} }

// OnFile is the handler of a file.
func OnFile(h uintptr) Where { return Where{kind: kindFile, handle: Handle(h)} }

// OnSession is the handler of a session.
func OnSession(h uintptr) Where { return Where{kind: kindSession, handle: Handle(h)} }

// OnNew is the handler that a call was given for the communicator, or the session, that it
// makes.
func OnNew(handler uintptr, session bool) Where {
	if session {
		return Where{kindSession, MPI_SESSION_NULL, Handle(handler)}
	}
	return Where{kindComm, MPI_COMM_NULL, Handle(handler)}
}

// OnSelf is the handler for errors of calls without an object, that of MPI_COMM_SELF.
func OnSelf() Where { return Where{kind: kindComm, handle: MPI_COMM_SELF} }

// OnTools is none: functions of MPI_T return their errors.
func OnTools() Where { return Where{} }

// elsewhere is an error for the handler of another object than the arguments of the call
// tell: that of a request.
type elsewhere struct {
	error
	where Where
}

func (e *elsewhere) Unwrap() error { return e.error }

// on is err for the error handler of a communicator.
func on(h Handle, err error) error {
	if err == nil {
		return nil
	}
	return &elsewhere{err, Where{kind: kindComm, handle: h}}
}

// inStatus is the error of a call with several requests: the statuses say more.
type inStatus struct{ error }

// code is the number of an error.
func code(err error) int {
	var s inStatus
	if errors.As(err, &s) {
		return MPI_ERR_IN_STATUS
	}
	var t toolsError
	if errors.As(err, &t) {
		return int(t)
	}
	return classTo(mpi.ClassOf(err))
}

// Raise calls the error handler with an error of the function name, and returns its code.
func (l *Lib) Raise(name string, err error, where Where) int32 {
	var e *elsewhere
	if errors.As(err, &e) {
		where = e.where
	}
	c := code(err)
	if where.kind == 0 {
		if mpi.ClassOf(err) == mpi.ErrUnsupported {
			return MPI_T_ERR_NOT_SUPPORTED
		}
		return int32(c)
	}
	l.handle(l.handlerOf(where), where.handle, c, func() string { return l.explain(name, err) })
	return int32(c)
}

// Missing raises the error of a function that is not implemented.
func (l *Lib) Missing(name string, where Where) int32 {
	return l.Raise(name, fail(mpi.ErrUnsupported, "this library does not have it (docs/ABI.md lists what it has)"), where)
}

// Null raises the error of a call with NULL for a variable that it sets.
func (l *Lib) Null(name, variable string, where Where) int32 {
	if where.kind == 0 {
		return MPI_T_ERR_INVALID
	}
	return l.Raise(name, fail(mpi.ErrArg, "%s is NULL", variable), where)
}

// explain says what is wrong in a call.
func (l *Lib) explain(name string, err error) string {
	rank := ""
	if l.up() == nil {
		rank = fmt.Sprintf("rank %d: ", l.proc.World().Rank())
	}
	var e *mpi.Error
	if errors.As(err, &e) {
		text := e.Class.String()
		if e.Detail != "" {
			text += ": " + e.Detail
		}
		if e.Err != nil {
			text += ": " + e.Err.Error()
		}
		return rank + name + ": " + text
	}
	return rank + name + ": " + err.Error()
}

// ErrorClass is MPI_Error_class.
func ErrorClass(l *Lib, errorcode int, class Ints) error {
	class.set(0, classTo(l.errors.ErrorClass(classFrom(errorcode))))
	return nil
}

// ErrorString is MPI_Error_string.
func ErrorString(l *Lib, errorcode int, text Text, length Ints) error {
	length.set(0, text.set(l.textOf(errorcode), MPI_MAX_ERROR_STRING))
	return nil
}

// textOf is the text of an error class or code.
func (l *Lib) textOf(errorcode int) string { return l.errors.ErrorString(classFrom(errorcode)) }

// AddErrorClass is MPI_Add_error_class.
func AddErrorClass(l *Lib, class Ints) error {
	class.set(0, classTo(l.errors.AddErrorClass()))
	return nil
}

// AddErrorCode is MPI_Add_error_code.
func AddErrorCode(l *Lib, class int, number Ints) error {
	c, err := l.errors.AddErrorCode(classFrom(class))
	if err == nil {
		number.set(0, classTo(c))
	}
	return err
}

// AddErrorString is MPI_Add_error_string.
func AddErrorString(l *Lib, number int, text string) error {
	return l.errors.AddErrorString(classFrom(number), text)
}

// RemoveErrorClass is MPI_Remove_error_class.
func RemoveErrorClass(l *Lib, class int) error { return l.errors.RemoveErrorClass(classFrom(class)) }

// RemoveErrorCode is MPI_Remove_error_code.
func RemoveErrorCode(l *Lib, number int) error { return l.errors.RemoveErrorCode(classFrom(number)) }

// RemoveErrorString is MPI_Remove_error_string.
func RemoveErrorString(l *Lib, number int) error {
	return l.errors.RemoveErrorString(classFrom(number))
}

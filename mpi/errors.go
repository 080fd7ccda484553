package mpi

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// ErrorClass is an MPI error class. The numbers are those of the MPI standard
// ABI (MPI 5.0, chapter 20).
type ErrorClass int

// Error classes.
const (
	Success        ErrorClass = 0
	ErrBuffer      ErrorClass = 1
	ErrCount       ErrorClass = 2
	ErrType        ErrorClass = 3
	ErrTag         ErrorClass = 4
	ErrComm        ErrorClass = 5
	ErrRank        ErrorClass = 6
	ErrRequest     ErrorClass = 7
	ErrRoot        ErrorClass = 8
	ErrGroup       ErrorClass = 9
	ErrOp          ErrorClass = 10
	ErrTopology    ErrorClass = 11
	ErrDims        ErrorClass = 12
	ErrArg         ErrorClass = 13
	ErrUnknown     ErrorClass = 14
	ErrTruncate    ErrorClass = 15
	ErrOther       ErrorClass = 16
	ErrIntern      ErrorClass = 17
	ErrPending     ErrorClass = 18
	ErrAssert      ErrorClass = 22
	ErrBase        ErrorClass = 24
	ErrConversion  ErrorClass = 25
	ErrInfoKey     ErrorClass = 31
	ErrInfoNoKey   ErrorClass = 32
	ErrInfoValue   ErrorClass = 33
	ErrInfo        ErrorClass = 34
	ErrKeyval      ErrorClass = 36
	ErrLockType    ErrorClass = 37
	ErrNoMem       ErrorClass = 39
	ErrRMAAttach   ErrorClass = 46
	ErrRMARange    ErrorClass = 48
	ErrRMAShared   ErrorClass = 49
	ErrRMASync     ErrorClass = 50
	ErrUnsupported ErrorClass = 55
	ErrWin         ErrorClass = 56
	ErrRMAFlavor   ErrorClass = 57
	ErrProcAborted ErrorClass = 58
	ErrSession     ErrorClass = 60

	// Fault tolerance. It is not in the standard yet, so the numbers are ours.
	ErrProcFailed        ErrorClass = 101 // a rank that takes part is lost (MPIX_ERR_PROC_FAILED)
	ErrProcFailedPending ErrorClass = 102 // a receive from any source may wait for a lost rank; it goes on (MPIX_ERR_PROC_FAILED_PENDING)
	ErrRevoked           ErrorClass = 103 // a rank has revoked the communicator (MPIX_ERR_REVOKED)
)

var classNames = map[ErrorClass]string{
	Success: "no error", ErrBuffer: "invalid buffer", ErrCount: "invalid count",
	ErrType: "invalid datatype", ErrConversion: "value cannot be converted",
	ErrInfoKey: "invalid info key", ErrInfoNoKey: "no such info key", ErrInfoValue: "invalid info value", ErrInfo: "invalid info",
	ErrTag: "invalid tag", ErrComm: "invalid communicator", ErrRank: "invalid rank",
	ErrRequest: "invalid request", ErrRoot: "invalid root", ErrGroup: "invalid group", ErrOp: "invalid operation",
	ErrTopology: "invalid topology", ErrDims: "invalid dimensions", ErrKeyval: "invalid attribute key",
	ErrArg: "invalid argument", ErrUnknown: "unknown error", ErrTruncate: "message truncated",
	ErrOther: "error", ErrIntern: "internal error", ErrPending: "operations are pending",
	ErrWin: "invalid window", ErrAssert: "invalid assertion", ErrLockType: "invalid kind of lock",
	ErrRMASync: "wrong synchronization of one-sided operations", ErrRMARange: "not memory of the window",
	ErrRMAAttach: "memory cannot be attached", ErrRMAFlavor: "wrong flavor of window",
	ErrRMAShared:   "memory cannot be shared",
	ErrUnsupported: "unsupported operation",
	ErrBase:        "invalid address", ErrNoMem: "out of memory", ErrProcAborted: "rank aborted", ErrSession: "invalid session",
	ErrProcFailed: "rank lost", ErrProcFailedPending: "rank lost that may have been the source", ErrRevoked: "communicator revoked",
}

func (c ErrorClass) String() string {
	if name, ok := classNames[c]; ok {
		return name
	}
	return fmt.Sprintf("error class %d", int(c))
}

// Error is what every function of this package returns when it fails.
type Error struct {
	Class  ErrorClass
	Op     string // the call: "Send", "Wait", ...
	Rank   int    // the other rank in question, or -1
	Detail string // what is wrong, and what to do
	Err    error  // cause, or nil
}

func (e *Error) Error() string {
	s := "mpi: " + e.Op + ": " + e.Class.String()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of an error (MPI_Error_class): Success for nil,
// ErrUnknown for an error that is not from this package.
func ClassOf(err error) ErrorClass {
	if err == nil {
		return Success
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ErrUnknown
}

// classes translates what the point-to-point layer reports.
var classes = map[p2p.Code]ErrorClass{
	p2p.Truncated: ErrTruncate,
	p2p.PeerLost:  ErrProcFailed,
	p2p.MayBeLost: ErrProcFailedPending,
	p2p.Revoked:   ErrRevoked,
	p2p.Ended:     ErrOther,
	p2p.Deadlock:  ErrOther,
	p2p.NoMemory:  ErrNoMem,
}

// wrap is wrap with the other rank as this communicator numbers it.
func (c *Comm) wrap(op string, err error) error {
	var e *Error
	if errors.As(err, &e) { // it is ours already
		return err
	}
	err = wrap(op, err)
	if errors.As(err, &e) {
		e.Rank = c.from(int32(e.Rank))
	}
	return err
}

// wrap makes an error of the point-to-point layer one of ours. The rank is of
// World.
func wrap(op string, err error) error {
	var e *p2p.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return &Error{Class: classes[e.Code], Op: op, Rank: e.Peer, Detail: e.Detail, Err: e.Err}
	}
	return &Error{Class: ErrIntern, Op: op, Rank: -1, Err: err}
}

func fail(class ErrorClass, op string, format string, args ...any) error {
	return &Error{Class: class, Op: op, Rank: -1, Detail: fmt.Sprintf(format, args...)}
}

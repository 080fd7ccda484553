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
	Success               ErrorClass = 0
	ErrBuffer             ErrorClass = 1
	ErrCount              ErrorClass = 2
	ErrType               ErrorClass = 3
	ErrTag                ErrorClass = 4
	ErrComm               ErrorClass = 5
	ErrRank               ErrorClass = 6
	ErrRequest            ErrorClass = 7
	ErrRoot               ErrorClass = 8
	ErrGroup              ErrorClass = 9
	ErrOp                 ErrorClass = 10
	ErrTopology           ErrorClass = 11
	ErrDims               ErrorClass = 12
	ErrArg                ErrorClass = 13
	ErrUnknown            ErrorClass = 14
	ErrTruncate           ErrorClass = 15
	ErrOther              ErrorClass = 16
	ErrIntern             ErrorClass = 17
	ErrPending            ErrorClass = 18
	ErrInStatus           ErrorClass = 19
	ErrAccess             ErrorClass = 20
	ErrAmode              ErrorClass = 21
	ErrAssert             ErrorClass = 22
	ErrBadFile            ErrorClass = 23
	ErrBase               ErrorClass = 24
	ErrConversion         ErrorClass = 25
	ErrDisp               ErrorClass = 26
	ErrDupDatarep         ErrorClass = 27
	ErrFileExists         ErrorClass = 28
	ErrFileInUse          ErrorClass = 29
	ErrFile               ErrorClass = 30
	ErrInfoKey            ErrorClass = 31
	ErrInfoNoKey          ErrorClass = 32
	ErrInfoValue          ErrorClass = 33
	ErrInfo               ErrorClass = 34
	ErrIO                 ErrorClass = 35
	ErrKeyval             ErrorClass = 36
	ErrLockType           ErrorClass = 37
	ErrName               ErrorClass = 38
	ErrNoMem              ErrorClass = 39
	ErrNotSame            ErrorClass = 40
	ErrNoSpace            ErrorClass = 41
	ErrNoSuchFile         ErrorClass = 42
	ErrPort               ErrorClass = 43
	ErrQuota              ErrorClass = 44
	ErrReadOnly           ErrorClass = 45
	ErrRMAAttach          ErrorClass = 46
	ErrRMAConflict        ErrorClass = 47
	ErrRMARange           ErrorClass = 48
	ErrRMAShared          ErrorClass = 49
	ErrRMASync            ErrorClass = 50
	ErrService            ErrorClass = 51
	ErrSize               ErrorClass = 52
	ErrSpawn              ErrorClass = 53
	ErrUnsupportedDatarep ErrorClass = 54
	ErrUnsupported        ErrorClass = 55
	ErrWin                ErrorClass = 56
	ErrRMAFlavor          ErrorClass = 57
	ErrProcAborted        ErrorClass = 58
	ErrValueTooLarge      ErrorClass = 59
	ErrSession            ErrorClass = 60
	ErrErrhandler         ErrorClass = 61
	ErrABI                ErrorClass = 62

	// Fault tolerance. It is not in the standard yet, so the numbers are ours.
	ErrProcFailed        ErrorClass = 101 // a rank that takes part is lost (MPIX_ERR_PROC_FAILED)
	ErrProcFailedPending ErrorClass = 102 // a receive from any source may wait for a lost rank; it goes on (MPIX_ERR_PROC_FAILED_PENDING)
	ErrRevoked           ErrorClass = 103 // a rank has revoked the communicator (MPIX_ERR_REVOKED)
	ErrGhostFailed       ErrorClass = 104 // a ghost is lost: whether operations are done that no flush has covered is not known; see Win.Fence
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
	ErrInStatus:    "statuses have errors", ErrAccess: "permission denied",
	ErrAmode: "invalid access mode", ErrBadFile: "invalid file name",
	ErrDisp: "invalid displacement", ErrDupDatarep: "data representation exists",
	ErrFileExists: "file exists", ErrFileInUse: "file is in use",
	ErrFile: "invalid file", ErrIO: "input or output error",
	ErrName: "no such service", ErrNotSame: "ranks differ",
	ErrNoSpace: "no space left", ErrNoSuchFile: "no such file",
	ErrPort: "invalid port", ErrQuota: "quota exceeded",
	ErrReadOnly: "read-only file", ErrRMAConflict: "conflicting accesses to a window",
	ErrService: "service cannot be withdrawn", ErrSize: "invalid size",
	ErrSpawn: "processes cannot be started", ErrUnsupportedDatarep: "unsupported data representation",
	ErrValueTooLarge: "value too large", ErrErrhandler: "invalid error handler",
	ErrABI:  "error of the binary interface",
	ErrBase: "invalid address", ErrNoMem: "out of memory", ErrProcAborted: "rank aborted", ErrSession: "invalid session",
	ErrProcFailed: "rank lost", ErrProcFailedPending: "rank lost that may have been the source", ErrRevoked: "communicator revoked",
	ErrGhostFailed: "ghost lost",
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
	if e, ok := errors.AsType[*Error](err); ok {
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
	if _, ok := errors.AsType[*Error](err); ok || err == nil { // it is ours already
		return err
	}
	err = wrap(op, err)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Rank = c.from(int32(e.Rank))
	}
	return err
}

// wrap makes an error of the point-to-point layer one of ours. The rank is of
// World.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*p2p.Error](err); ok {
		return &Error{Class: classes[e.Code], Op: op, Rank: e.Peer, Detail: e.Detail, Err: e.Err}
	}
	return &Error{Class: ErrIntern, Op: op, Rank: -1, Err: err}
}

func fail(class ErrorClass, op string, format string, args ...any) error {
	return &Error{Class: class, Op: op, Rank: -1, Detail: fmt.Sprintf(format, args...)}
}

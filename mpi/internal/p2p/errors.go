package p2p

import "fmt"

// Code says what went wrong, in the terms of this layer. Package mpi turns it
// into an MPI error class.
type Code uint8

// The codes.
const (
	Truncated Code = iota + 1 // the message is longer than the receive buffer
	PeerLost                  // a rank that takes part is gone
	Ended                     // the job is being ended, or has been
	Deadlock                  // the call can never finish
	NoMemory                  // registration or buffers ran out
	MayBeLost                 // a receive from any source waits, perhaps for a rank that is gone; it goes on
	Revoked                   // the communicator is revoked
)

// Error is the error of a request.
type Error struct {
	Code   Code
	Peer   int // rank, or -1
	Detail string
	Err    error // cause, or nil
}

func (e *Error) Error() string {
	s := e.Detail
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func truncated(from int32, got uint64, room int) *Error {
	return &Error{Code: Truncated, Peer: int(from), Detail: fmt.Sprintf(
		"the message of %d bytes from rank %d is longer than the receive buffer of %d bytes", got, from, room)}
}

package iwarp

import "fmt"

// TerminateError tells that a stream was terminated because of an error in the
// protocol, and in which layer (RFC 5040, section 4.8).
type TerminateError struct {
	Cause  Cause
	Remote bool // the peer has found the error, and has told us
}

func (e *TerminateError) Error() string {
	if e.Remote {
		return fmt.Sprintf("terminated by the peer: %v", e.Cause)
	}
	return fmt.Sprintf("the peer was terminated: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *TerminateError) Unwrap() error { return e.Cause }

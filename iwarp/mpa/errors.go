package mpa

import (
	"fmt"

	"github.com/xwarp/xwarp/iwarp"
)

// RejectedError says that the peer understands us and does not want the
// connection. Nothing is sent any more but the end of the stream.
type RejectedError struct {
	Private []byte // what the peer says to that
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("mpa: the peer rejects the connection (with %d bytes of private data)", len(e.Private))
}

// ProtocolError says that the start-up has failed, because the peer does not
// speak MPA as it should, or not as we want it. The connection is to be closed.
type ProtocolError struct {
	// Cause is what a Terminate says. errors.Is finds it.
	Cause iwarp.Cause
	// Terminate tells whether to send one before closing; if not, there is
	// no peer that would understand it.
	Terminate bool
	What      string // what is wrong, and what can be done
}

func (e *ProtocolError) Error() string { return fmt.Sprintf("mpa: %s: %v", e.What, e.Cause) }

// Unwrap returns the cause.
func (e *ProtocolError) Unwrap() error { return e.Cause }

func invalid(format string, args ...any) error {
	return &ProtocolError{Cause: iwarp.LLPStartup, What: fmt.Sprintf(format, args...)}
}

package netstack

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// Error is why a connection could not be made, or has ended. It wraps an errno
// of package unix.
type Error struct {
	Op            string // "connect", "listen" or "connection"
	Local, Remote netip.AddrPort
	Err           error
}

func (e *Error) Error() string {
	s := "netstack: " + e.Op
	if e.Local.IsValid() {
		s += fmt.Sprintf(" %s", e.Local)
	}
	if e.Remote.IsValid() {
		s += fmt.Sprintf(" to %s", e.Remote)
	}
	return fmt.Sprintf("%s: %v", s, e.Err)
}

// Unwrap returns the errno.
func (e *Error) Unwrap() error { return e.Err }

// errno returns what Linux calls an error of gVisor's.
func errno(err tcpip.Error) error {
	switch err.(type) {
	case *tcpip.ErrConnectionRefused:
		return unix.ECONNREFUSED
	case *tcpip.ErrConnectionReset:
		return unix.ECONNRESET
	case *tcpip.ErrConnectionAborted, *tcpip.ErrAborted:
		return unix.ECONNABORTED
	case *tcpip.ErrTimeout:
		return unix.ETIMEDOUT
	case *tcpip.ErrHostUnreachable:
		return unix.EHOSTUNREACH
	case *tcpip.ErrHostDown:
		return unix.EHOSTDOWN
	case *tcpip.ErrNetworkUnreachable:
		return unix.ENETUNREACH
	case *tcpip.ErrPortInUse:
		return unix.EADDRINUSE
	case *tcpip.ErrBadLocalAddress, *tcpip.ErrNoPortAvailable:
		return unix.EADDRNOTAVAIL
	case *tcpip.ErrNoBufferSpace:
		return unix.ENOBUFS
	case *tcpip.ErrClosedForSend:
		return unix.EPIPE
	case *tcpip.ErrNotConnected:
		return unix.ENOTCONN
	case *tcpip.ErrInvalidEndpointState:
		return unix.EINVAL
	case *tcpip.ErrMessageTooLong:
		return unix.EMSGSIZE
	}
	return fmt.Errorf("%s: %w", err, unix.EIO)
}

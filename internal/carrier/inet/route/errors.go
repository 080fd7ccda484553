package route

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// Why a destination has no next hop. Errors of [Table.Resolve] are an [Error]
// that wraps one of them.
var (
	ErrNoRoute     = errors.New("no route")
	ErrNoNeighbour = errors.New("no neighbour")
	ErrTableFull   = errors.New("the kernel's table of neighbours is full")
	ErrLinkDown    = errors.New("link is down")
	ErrLocal       = errors.New("address of this host")
)

// Error says why a destination cannot be reached through a device, and what
// can be done.
type Error struct {
	Dst    netip.Addr
	Link   string     // name of the device
	Via    netip.Addr // the router or host that was asked for its Ethernet address
	Reason error      // one of those above
	Kernel error      // what the kernel said; may be nil
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s cannot be reached through %s: %v", e.Dst, e.Link, e.Reason)
	switch e.Reason {
	case ErrNoRoute:
		s += fmt.Sprintf("; add one (ip route add %s/%d dev %s) or use the device that has one", e.Dst, e.Dst.BitLen(), e.Link)
	case ErrNoNeighbour:
		who := "it"
		if e.Via != e.Dst {
			who = "the router " + e.Via.String()
		}
		question := "ARP"
		if e.Dst.Is6() {
			question = "neighbour solicitations"
		}
		s += fmt.Sprintf(": %s does not answer %s; is it up, on this network, and is its link up?", who, question)
	case ErrTableFull:
		name := "ipv4"
		if e.Dst.Is6() {
			name = "ipv6"
		}
		s += fmt.Sprintf(": all network namespaces of a machine share it; raise its limit there (sysctl -w net.%s.neigh.default.gc_thresh3=16384), or use fewer hosts in a testbed", name)
	case ErrLinkDown:
		s += fmt.Sprintf("; bring it up (ip link set %s up) and check its cable", e.Link)
	case ErrLocal:
		s += ": frames to it never leave the device; use shared memory or the kernel's sockets (--fabric udp)"
	}
	if e.Kernel != nil {
		s += fmt.Sprintf(" (%v)", e.Kernel)
	}
	return s
}

// Is reports whether target is the errno that a socket of the kernel fails with for
// the same reason, so that callers need not know whose way it is that is missing.
func (e *Error) Is(target error) bool {
	switch e.Reason {
	case ErrNoRoute:
		return target == syscall.ENETUNREACH
	case ErrNoNeighbour, ErrTableFull:
		return target == syscall.EHOSTUNREACH
	case ErrLinkDown:
		return target == syscall.ENETDOWN
	}
	return false
}

// Unwrap returns the reason and what the kernel said.
func (e *Error) Unwrap() []error {
	if e.Kernel == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Kernel}
}

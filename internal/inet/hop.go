package inet

import (
	"errors"
	"fmt"
	"net/netip"
)

// Hop is where frames for one destination go.
type Hop struct {
	MAC    MAC        // of the destination, or of the router on the way to it
	Source netip.Addr // the address of ours that the kernel would send from
	MTU    int        // largest IP packet in bytes that gets there whole
}

// Resolver knows the next hop of every destination. Its methods may be called
// by any goroutine.
type Resolver interface {
	// Resolve finds the next hop to dst, and keeps track of it from then on.
	// It may ask the kernel and wait for the answer of another host.
	Resolve(dst netip.Addr) (Hop, error)
	// Current returns what is known now about a destination that was
	// resolved before, and false when it cannot be reached now. It never waits.
	Current(dst netip.Addr) (Hop, bool)
	// Generation changes whenever an answer of Current may have changed.
	Generation() uint64
}

// Fixed is a Resolver for networks that do not change: simulations and tests.
type Fixed map[netip.Addr]Hop

// ErrUnknownHost is wrapped by Fixed's errors.
var ErrUnknownHost = errors.New("host is not in the table")

// Resolve returns the entry of dst.
func (f Fixed) Resolve(dst netip.Addr) (Hop, error) {
	h, ok := f[dst]
	if !ok {
		return Hop{}, fmt.Errorf("%s: %w", dst, ErrUnknownHost)
	}
	return h, nil
}

// Current returns the entry of dst.
func (f Fixed) Current(dst netip.Addr) (Hop, bool) {
	h, ok := f[dst]
	return h, ok
}

// Generation returns 0: nothing changes.
func (Fixed) Generation() uint64 { return 0 }

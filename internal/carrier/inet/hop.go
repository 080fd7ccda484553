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
	Via    netip.Addr // the router on the way; the zero Addr when there is none
}

// Resolver knows the next hop of every destination. Its methods may be called
// by any goroutine.
type Resolver interface {
	// Resolve finds the next hop to dst, and keeps track of it from then on.
	// It may ask the kernel and wait for the answer of another host.
	Resolve(dst netip.Addr) (Hop, error)
	// Current returns what is known now about a destination that was
	// resolved before or is followed, and false when it cannot be reached now: for
	// want of an Ethernet address only if the MTU is not 0. It never waits.
	Current(dst netip.Addr) (Hop, bool)
	// Follow keeps track of dst like Resolve, and waits for nothing.
	Follow(dst netip.Addr)
	// Doubt says that dst should have answered and did not. It returns the neighbour
	// whose Ethernet address is to be asked for, on the link, and the zero Addr when
	// there is none. It never waits.
	Doubt(dst netip.Addr) netip.Addr
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

// Follow does nothing: all is known.
func (Fixed) Follow(netip.Addr) {}

// Doubt returns the zero Addr: there is no kernel to ask.
func (Fixed) Doubt(netip.Addr) netip.Addr { return netip.Addr{} }

// Generation returns 0: nothing changes.
func (Fixed) Generation() uint64 { return 0 }

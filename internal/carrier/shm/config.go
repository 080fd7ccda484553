// Package shm joins processes of one host through memory that both map. An
// [Datagram] carries datagrams, as an alternative to a network; [Channels] carry
// messages for MPI, reliably, with nothing above them (channels.go).
//
// Datagrams take no system call each while the receiver polls, and one copy, from
// the sender's buffers into the receiver's arena.
//
// Each sender has a ring of its own at each receiver (ring.go), a memfd that
// no other process maps. So a neighbour that dies in the middle of a datagram, or
// writes nonsense, spoils its own ring and nothing else: what is read from a
// ring is checked, positions are kept outside of it, and a ring is never used
// again. Senders find receivers by a socket with an abstract name (listener.go).
// Nothing of this has a name in a file system, so nothing is left behind
// however a process ends.
//
// Like UDP a Datagram loses datagrams: when a ring is full, or there is no listener.
package shm

import (
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Config describes an endpoint. Arena and Local must be given.
type Config struct {
	// Arena holds the buffers. The caller keeps it. It must be of mem.New or
	// mem.Map.
	Arena *mem.Arena
	// Local is the address and port that peers send to: an IPv4 or IPv6 address of
	// this host. With port 0 one is chosen. No packet carries it; it is a
	// name, seen in this network namespace and by this user only.
	Local netip.AddrPort
	// MTU is the largest IP packet in bytes that would hold a datagram, so
	// that it means the same as for other carriers; default 9000. All peers
	// must accept it.
	MTU int
	// Frames is how many frames there are for sending; default 256.
	Frames int
	// Peers is how many others may send to this endpoint at a time; default
	// DefaultPeers.
	Peers int
	// Ring is how many bytes of the arena hold what one peer has sent and
	// are not released, a power of two; default, what a quarter of the
	// arena's room allows, at most 1 MiB. Memory is taken when it is used.
	Ring int
	// Track checks every move of a frame, as mem.NewPool does.
	Track bool
}

// DefaultPeers is the default of Config.Peers.
const DefaultPeers = 32

const (
	ipv4Len = 20
	ipv6Len = 40
	udpLen  = 8

	mtuMin  = 68 // RFC 791
	mtuMax  = 65535
	ringMin = 16 << 10
	ringMax = 64 << 20 // more is of no use; a peer that asks for more is broken
)

// Errors that Open and Resolve wrap.
var (
	// ErrPortInUse says that another endpoint has the port.
	ErrPortInUse = errors.New("port is in use")
	// ErrNotLocal says that no device of this host has the address.
	ErrNotLocal = errors.New("not an address of this host")
	// ErrPeers says that an endpoint has as many senders as it has rings.
	ErrPeers = errors.New("the endpoint has no ring left")
	// ErrMTU says that a peer does not take datagrams of our size.
	ErrMTU = errors.New("MTU of the peer is too small")
)

// withDefaults checks c and fills in what is missing.
func (c Config) withDefaults() (Config, error) {
	if c.Arena == nil || c.Arena.FD() < 0 {
		return c, errors.New("shm: Config.Arena is missing, or memory that nobody can map: use mem.New")
	}
	c.Local = netip.AddrPortFrom(c.Local.Addr().Unmap(), c.Local.Port())
	if !c.Local.Addr().IsValid() || c.Local.Addr().IsUnspecified() {
		return c, fmt.Errorf("shm: local address %s: want an IPv4 address, or one of IPv6, of this host", c.Local)
	}
	for _, f := range []struct {
		name            string
		value           *int
		def, least, top int
	}{
		{"MTU", &c.MTU, 9000, mtuMin, mtuMax},
		{"Frames", &c.Frames, 256, 1, 1 << 20},
		{"Peers", &c.Peers, DefaultPeers, 1, 1 << 16},
		{"Ring", &c.Ring, c.defaultRing(), ringMin, ringMax},
	} {
		if *f.value == 0 {
			*f.value = f.def
		}
		if *f.value < f.least || *f.value > f.top {
			return c, fmt.Errorf("shm: Config.%s is %d: want %d to %d", f.name, *f.value, f.least, f.top)
		}
	}
	if c.Ring&(c.Ring-1) != 0 {
		return c, fmt.Errorf("shm: Config.Ring is %d: want a power of two", c.Ring)
	}
	if depth(c.Ring, c.payload()) < 1 {
		return c, fmt.Errorf("shm: a ring of %d bytes does not hold two datagrams of MTU %d: make Config.MTU or Peers smaller, or the arena larger (XWARP_ARENA)", c.Ring, c.MTU)
	}
	return c, nil
}

// payload returns how many bytes a datagram carries in a packet of the MTU.
func (c *Config) payload() int {
	if c.Local.Addr().Is6() {
		return c.MTU - ipv6Len - udpLen
	}
	return c.MTU - ipv4Len - udpLen
}

func (c *Config) defaultRing() int {
	peers := c.Peers
	if peers <= 0 {
		peers = DefaultPeers
	}
	share := min(c.Arena.Room()/4/peers, 1<<20)
	return max(ringMin, 1<<bits.Len(uint(share))>>1)
}

// depth returns how many datagrams of n bytes a ring holds wherever its ends
// are: as many as fit, less one for what is skipped where it wraps around, and
// for the end mark.
func depth(ring, n int) int { return (ring-granule)/int(recordLen(n)) - 1 }

// hostAddrs returns the addresses of this host besides loopback's, in the
// network namespace of the calling thread.
func hostAddrs() (map[netip.Addr]bool, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("shm: addresses of this host: %w", err)
	}
	have := map[netip.Addr]bool{}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				have[ip.Unmap()] = true
			}
		}
	}
	return have, nil
}

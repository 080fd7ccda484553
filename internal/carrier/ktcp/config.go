// Package ktcp carries byte streams over the kernel's TCP sockets
// ([fabric.Streams]). It needs no privileges, works on every network device,
// and is what RC over AF_XDP is measured against.
//
// Everything is done by the thread that calls, in system calls that never
// block. The kernel names what is new through one epoll instance,
// edge-triggered; while there are no more than two streams they are both named
// at each Poll instead, which saves the question.
package ktcp

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Config describes a carrier. Its zero value will do.
type Config struct {
	// Arena is memory for applications; the carrier does not use it, and the
	// caller keeps it. Default: there is none.
	Arena *mem.Arena
	// Local is the address, IPv4 or IPv6, that Addr tells; default none. What
	// a stream is sent from is Dial's from, or else the kernel's choice.
	Local netip.Addr
	// MTU is the largest IP packet in bytes that streams are cut into, both
	// ways; default, and at most, what the path takes.
	MTU int
	// Congestion is the algorithm of congestion control, as in tcp(7), if the kernel has
	// it and lets this process use it; default what the system says. BBR, which some
	// systems say, paces: on a path within a machine or a rack it has less than half of
	// the bandwidth of cubic.
	Congestion string
	// UserTimeout is for how long what was sent may stay without an acknowledgement, or find
	// no room at the other end, until the stream fails (TCP_USER_TIMEOUT, tcp(7)); in
	// milliseconds, rounded down; default what the system says, about 15 minutes.
	UserTimeout time.Duration
	// Mark is that of all packets (SO_MARK, socket(7)), if this process may set one; default none.
	Mark int
}

const (
	ipv4Len = 20
	ipv6Len = 40
	tcpLen  = 20 // without options

	minMTU = 576   // RFC 1122, section 3.3.3
	maxMSS = 32767 // of TCP_MAXSEG; a larger MTU, of loopback, is not limited
)

func (c Config) check() error {
	if c.MTU != 0 && (c.MTU < minMTU || c.MTU > 65536) {
		return fmt.Errorf("ktcp: MTU %d: want %d to 65536, or 0 for what the path takes", c.MTU, minMTU)
	}
	if c.Local.IsUnspecified() {
		return fmt.Errorf("ktcp: Config.Local is %s: want an address that peers can reach, or none", c.Local)
	}
	return nil
}

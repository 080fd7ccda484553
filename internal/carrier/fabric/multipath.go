package fabric

import (
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/trace"
)

// MaxPaths is the most networks that a Multipath is on.
const MaxPaths = trace.MaxNetworks

// Multipath is what a [Datagram] also is that is on several networks, with a device
// and an address on each. Which of them a datagram takes is the caller's choice,
// and he makes it with its Path. All that Datagram says without naming a network is
// about the first.
//
// A peer is on the same networks, numbered alike.
type Multipath interface {
	Datagram
	// Locals returns the addresses and ports that peers send to, one of each
	// network. The first is Local.
	Locals() []netip.AddrPort
	// ResolveOn is Resolve for a destination on network i.
	ResolveOn(i int, to netip.AddrPort) (Path, error)
	// Via returns on which network the batch came that Recv filled last.
	Via() int
	// StatsOn returns the counts of network i alone.
	StatsOn(i int) DatagramStats
}

// Package arq makes an unreliable path reliable (automatic repeat request): a
// window of numbered units with selective acknowledgements, loss found by time
// (RFC 8985) and a congestion window led by delay. It knows numbers and times;
// it never sees a header, a payload or a clock.
//
// What a unit is, and how an acknowledgement looks on the wire, is the
// caller's: DDP segments for reliable datagrams (iwarp/dgram), packets for MPI
// over unreliable ones (mpi/internal/reliable).
package arq

import (
	"math"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// MaxSackWords is the most words of 64 bits in one selective acknowledgement.
const MaxSackWords = 8

// WindowMax is the largest window: what MaxSackWords words can describe.
const WindowMax = MaxSackWords * 64

// HeldUnit is the unit in which an acknowledgement tells for how long the
// newest unit that it acknowledges was kept.
const HeldUnit = 256 * mono.Nanosecond

// HeldUnknown is the longest that can be told: the unit was kept for that long
// or longer, so that the round-trip time says nothing about the network.
const HeldUnknown = math.MaxUint16 * HeldUnit

// HeldOf returns d in units of HeldUnit, rounded down, between 0 and the code
// of HeldUnknown.
func HeldOf(d mono.Duration) uint16 {
	return uint16(min(max(d, 0), HeldUnknown) / HeldUnit)
}

// HeldFor returns what a code means. HeldUnknown: not known.
func HeldFor(code uint16) mono.Duration { return mono.Duration(code) * HeldUnit }

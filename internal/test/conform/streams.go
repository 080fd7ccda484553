package conform

import (
	"io"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// StreamNet is a network of two hosts with a carrier of streams on each.
type StreamNet struct {
	// Open opens the carrier of host i, 0 or 1. It is closed at the end of
	// the case, and under after it, in order.
	Open func(i int) (s fabric.Streams, under []io.Closer, err error)
	// Addr is the address of host i that its peer connects to; default, what
	// its carrier tells. The suite is of the family that these are of.
	Addr func(i int) netip.Addr
	// Clock is the time on both hosts; default mono.Real.
	Clock mono.Clock
	// Step lets time pass. idle is how many times in a row nothing has
	// happened; default does nothing.
	Step func(idle int)
	// Virtual says that time passes in Step only, as in the simulator: nobody
	// waits in poll(2).
	Virtual bool
	// Allocates says that the carrier stands on somebody else's code, which
	// allocates memory for what it moves.
	Allocates bool
	// Greets says that the ends of a stream exchange something before it is open, so that
	// one that nobody accepts is not.
	Greets bool
	// Kept says that the carriers stay open from case to case.
	Kept bool
	// Many is how many connections the case of that name has; default 200.
	Many int
	// On runs fn on host i, where it dials and listens; default just calls it.
	On func(i int, fn func() error) error
}

// streamCase is one thing that streams promise.
type streamCase struct {
	name string
	run  func(r *streamRig)
}

// Streams holds a carrier to the contract of fabric.Streams. open makes a
// network for one case, and ends it with the test. Each end does something with
// a stream only when Poll names it, so that a carrier that forgets to name one
// makes the case hang, which the time limit of go test finds. All cases run
// twice: polling, and asleep in poll(2) whenever nothing is to be done.
func Streams(t *testing.T, open func(t *testing.T) StreamNet) {
	for _, asleep := range []bool{false, true} {
		name := "polling"
		if asleep {
			name = "asleep"
		}
		t.Run(name, func(t *testing.T) {
			for _, group := range [][]streamCase{streamBasics, streamEnds, streamLoads} {
				for _, c := range group {
					t.Run(c.name, func(t *testing.T) {
						net := open(t)
						if net.Virtual && asleep {
							t.Skip("in virtual time nobody sleeps")
						}
						r := newStreamRig(t, net, asleep)
						c.run(r)
					})
				}
			}
		})
	}
}

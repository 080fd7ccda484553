package verbs

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/proto/llp"
)

// Engine moves everything of the contexts that were opened with it, in the thread
// that calls: Step does what there is to do and returns how much that was, Park
// waits until there may be more. A program of its own may Add what else is to be
// polled: anything with the methods Poll and Deadline of Context. device.Open makes
// an engine with each context; Context.Engine returns it.
type Engine = progress.Engine

// Time is what the clock of an engine shows: nanoseconds from an origin that is
// fixed for the life of the process. Never is later than every time.
type Time = mono.Time

// Never is the deadline of what waits for input only.
const Never = mono.Never

// Arena is the memory that a carrier sends from where it lies. Alloc takes a piece of
// it, and At returns the bytes of that. device.Open makes one with each context;
// Context.Arena returns it.
type Arena = mem.Arena

// Addr is an offset into an Arena.
type Addr = mem.Addr

// Datagram is a carrier of datagrams, and Streams one of byte streams. device.Open
// makes those that there are.
type Datagram = fabric.Datagram

// Streams is a carrier of byte streams; see Datagram.
type Streams = fabric.Streams

// EndpointStats counts what the endpoint of datagrams did and dropped.
type EndpointStats = llp.Stats

// DatagramStats counts what a carrier of datagrams did.
type DatagramStats = fabric.DatagramStats

// Losses are what a carrier has lost; see DatagramStats.Losses.
type Losses = trace.Losses

// StreamStats counts what a carrier of streams did.
type StreamStats = fabric.StreamStats

// enumName returns the name of a value of an enumeration.
func enumName(names []string, enumeration string, value uint8) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", enumeration, value)
}

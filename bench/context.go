package bench

import (
	"slices"
	"time"

	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// frameArena is what device.Open takes by default, for everything but the
// messages.
const frameArena = 64 << 20

// openContext opens the device of an end for verbs and MPI.
func openContext(e *End) (*verbs.Context, error) { return device.Open(e.device()) }

// device says what to open.
func (e *End) device() device.Spec {
	spec := device.Spec{
		Fabric: e.Spec.Fabric, Device: e.Device.Name, Addr: e.Addr, MTU: e.Spec.MTU,
		// Both ends have a core of their own and look at the control connection
		// while they wait.
		Poller: progress.PollerConfig{Spin: 24 * time.Hour},
		Key:    e.Pair.Key(), Secret: e.Pair.secret, Arena: frameArena + 2*slices.Max(e.Spec.Sizes),
		Capture: e.Capture, BusyPoll: e.Spec.BusyPoll,
		RC: e.Spec.rc() && e.Spec.Fabric != "tcp",
	}
	spec.Bulk, _ = device.ParseBulk(e.Spec.Bulk) // Check has read it
	if c, ok := Find(e.Spec.Test); ok && c.OfMPI() && (e.Spec.Transport == "rd" || e.Spec.Transport == "hybrid") {
		spec.Beside(e.Spec.Transport == "hybrid")
	}
	if e.Spec.Loss > 0 { // without, nothing stands between the carrier and the protocol
		spec.Faults = fault.Config{Loss: e.Spec.Loss, Seed: spec.Key + uint64(e.Pair.Rank())}
	}
	return spec
}

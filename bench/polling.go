package bench

import (
	"errors"

	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// polling is a Bench that polls its device while it waits, for which the settings of
// that have been changed.
type polling struct {
	Bench
	end func()
}

// Close implements Bench.
func (p polling) Close() error {
	defer p.end()
	return p.Bench.Close()
}

func (p polling) losses() trace.Losses { return lossesOf(p.Bench) }
func (p polling) detail() string       { return detailOf(p.Bench) }

// busyPoll changes the settings of the device of the end if it is to poll, until end is
// called.
func (e *End) busyPoll() (end func()) {
	if !e.Spec.BusyPoll {
		return func() {}
	}
	end, err := launch.BusyPoll(e.Device.Name, device.ModeOf(e.Spec.Fabric))
	if err == nil {
		return end
	}
	if !errors.Is(err, xdp.ErrNoBusyPoll) { // which the detail of the carrier says
		e.notes = append(e.notes, "interrupts are not kept away: "+err.Error())
	}
	return func() {}
}

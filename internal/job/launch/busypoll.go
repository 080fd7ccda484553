package launch

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// busyPoll prepares the devices of the ranks for busy polling, if that is wanted, and
// lets people know where there is none. The calling thread is in the network namespace
// of the devices.
func (a *agent) busyPoll() {
	s := a.start
	if !settings(s.lookup).BusyPoll {
		return
	}
	if !isXDP(s.Fabric) {
		a.notice(fmt.Sprintf("no busy polling on host %d: it is for AF_XDP, and this is %s", s.Host, s.Fabric))
		return
	}
	for _, name := range device.Devices(s.Device) {
		end, err := BusyPoll(name, device.ModeOf(s.Fabric))
		switch {
		case err == nil:
			a.polled = append(a.polled, end)
		case errors.Is(err, xdp.ErrNoBusyPoll):
			a.notice(fmt.Sprintf("on host %d: %v", s.Host, err))
		default:
			a.notice(fmt.Sprintf("on host %d busy polling does not keep interrupts away: %v", s.Host, err))
		}
	}
}

// BusyPoll makes the settings of a network device those that busy polling wants, until
// end is called; when the process dies before, its janitor sets them back. The device is
// in the network namespace of the calling thread, and the program of the process one
// that runs AgentMain for AgentArg. mode is that of the ports. The errors are those of
// xdp.NAPIOf, and what the kernel says when settings cannot be changed.
func BusyPoll(device string, mode bpf.Mode) (end func(), err error) {
	_, _ = CleanDevices() // what a killed one has set is not how the device was
	before, err := xdp.NAPIOf(device, mode)
	if err != nil {
		return nil, err
	}
	dir := notesDir
	if testbed.Inside() { // where the device, and a janitor, go with the testbed
		dir = ""
	}
	return pollWith(dir, before)
}

// pollWith is BusyPoll for a device whose settings are before, with a note in dir; no
// note if that is "".
func pollWith(dir string, before xdp.NAPI) (end func(), err error) {
	if before == before.Busy() { // another process has set them, and sets them back
		return func() {}, nil
	}
	var n *note
	if dir != "" {
		if n, err = noteChanges(dir, changes{NAPI: &before}); err != nil {
			return nil, err
		}
	}
	end = func() {
		_, err := before.Restore()
		switch {
		case n == nil:
		case err == nil:
			n.drop()
		default:
			n.leave()
		}
	}
	if err := before.Busy().Set(); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

package xdp

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
)

// With busy polling a system call on an AF_XDP socket runs the poll function of the
// driver (NAPI) for the queue of the socket, on the core of the caller. Of several
// callers, on sockets of one queue, one polls and puts into the RX rings of all; the
// others find it busy and go on. Interrupts come only when the queue was not polled for
// some time (NAPI.GROFlushTimeout), as while all ranks compute or sleep.

// busyPolling is what a port knows about it.
type busyPolling uint8

const (
	busyOff   busyPolling = iota // not asked for
	busyAsked                    // the kernel learns with the first frame which NAPI it is from
	busyOn
	busyNone // this driver has none
)

// String is for PortCaps.BusyPoll.
func (b busyPolling) String() string {
	return [...]string{"", "busy polling asked for", "busy polling", "no busy polling in this driver"}[b]
}

// busyBudget is the most frames of one poll: what drivers take in a softirq.
const busyBudget = 64

// busyPoll asks for busy polling of the queue that the socket is bound to.
func (s *socket) busyPoll(dev string) error {
	for _, o := range []struct{ opt, value int }{
		{unix.SO_PREFER_BUSY_POLL, 1},
		{unix.SO_BUSY_POLL, 1}, // AF_XDP polls once, however many microseconds these are
		{unix.SO_BUSY_POLL_BUDGET, busyBudget},
	} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o.opt, o.value); err != nil {
			return &Error{Device: dev, Reason: ErrUnsupported, Detail: "busy polling",
				Remedy: "it needs CAP_NET_ADMIN and Linux 5.11 with CONFIG_NET_RX_BUSY_POLL: do without (no --busy-poll, no XWARP_BUSY_POLL)", Cause: err}
		}
	}
	return nil
}

// napiAtBind reports whether a socket that is bound has its NAPI for good, or
// never gets one. Before, it gets that of the first frame that arrives in driver mode.
func napiAtBind() bool { return versionAtLeast(kernelRelease(), 6, 13) }

// startBusyPoll is called when the socket, which asked for busy polling, is bound.
func (p *Port) startBusyPoll() {
	if p.busy = busyAsked; !p.findNAPI() && napiAtBind() {
		p.busy = busyNone
	}
}

// findNAPI finds out whether the kernel knows the NAPI of the socket, unless that is
// decided, and reports whether there is busy polling.
func (p *Port) findNAPI() bool {
	if p.busy == busyAsked {
		id, err := unix.GetsockoptInt(p.sock.fd, unix.SOL_SOCKET, unix.SO_INCOMING_NAPI_ID)
		switch {
		case err == nil && id != 0:
			p.busy = busyOn
		case p.stats.RxFrames > 0:
			p.busy = busyNone
		}
	}
	return p.busy == busyOn
}

// drive polls the device for the queue of p, if that is possible.
func (p *Port) drive() bool {
	if !p.findNAPI() {
		return false
	}
	p.stats.Wakeups++
	receive(p.sock.fd)
	return true
}

// refill makes the driver look at the FILL ring of a socket.
func (p *Port) refill(fd int) {
	p.stats.Wakeups++
	if p.busy == busyOn {
		p.wakeByPoll(fd)
		return
	}
	receive(fd)
}

// wakeByPoll wakes the driver for a socket in zero-copy mode. With busy polling sendto and
// recvfrom do not: they poll the device, or do nothing while another process does, which
// may have passed the ring already. poll(2) always does.
func (p *Port) wakeByPoll(fd int) {
	p.polled[0].Fd = int32(fd)
	_, _ = unix.Poll(p.polled[:], 0)
}

// NAPI are the settings of a network device that busy polling wants to be changed.
// They are the device's and not a process's: the process that sets them must set them back.
type NAPI struct {
	Device          string `json:"device"`
	Ifindex         int    `json:"ifindex"`
	DeferHardIRQs   uint64 `json:"napi_defer_hard_irqs"` // polls that find nothing until interrupts are on again
	GROFlushTimeout uint64 `json:"gro_flush_timeout"`    // nanoseconds until the kernel polls by itself
}

// What busy polling wants, as the kernel's Documentation/networking/af_xdp.rst
// recommends: a rank that waits polls each microsecond or so, and what arrives for one
// that computes or sleeps waits for a fifth of a millisecond at most.
const (
	busyDeferHardIRQs   = 2
	busyGROFlushTimeout = 200_000
)

// ErrNoBusyPoll is the reason of an [*Error] where the driver has no busy polling.
var ErrNoBusyPoll = errors.New("no busy polling")

// NAPIOf returns the settings of a device as they are, in the network namespace of
// the calling thread. mode is that of the ports there. The error is an [*Error] with
// the reason ErrNoBusyPoll where busy polling gains nothing, as far as that is known
// before frames arrive.
func NAPIOf(device string, mode bpf.Mode) (n NAPI, err error) {
	dev, err := lookup(device)
	if err != nil {
		return n, err
	}
	none := func(why string, cause error) (NAPI, error) {
		return n, &Error{Device: device, Reason: ErrNoBusyPoll, Detail: why, Remedy: "interrupts are used as ever", Cause: cause}
	}
	switch atBind := napiAtBind(); {
	case atBind && !queueHasNAPI(dev.index):
		return none(dev.driverText()+" does not tell the kernel which NAPI its queues have", nil)
	case !atBind && dev.preferred(mode) == bpf.Generic:
		return none("in generic mode it needs Linux 6.13", nil)
	}
	n, err = NAPI{Device: dev.card, Ifindex: dev.index}.Now()
	if err != nil {
		return none("its settings cannot be read", err)
	}
	return n, nil
}

// Now returns n with the settings as they are now. It fails where the device has none of
// them.
func (n NAPI) Now() (NAPI, error) {
	dir, err := openSysfs(n.Device)
	if err != nil {
		return n, err
	}
	defer unix.Close(dir)
	for name, value := range n.values() {
		if *value, err = readNumber(dir, name); err != nil {
			return n, fmt.Errorf("xdp: %s of %s: %w", name, n.Device, err)
		}
	}
	return n, nil
}

// values are the settings by the names of their files.
func (n *NAPI) values() map[string]*uint64 {
	return map[string]*uint64{"napi_defer_hard_irqs": &n.DeferHardIRQs, "gro_flush_timeout": &n.GROFlushTimeout}
}

// Busy returns n as it is while ports poll.
func (n NAPI) Busy() NAPI {
	n.DeferHardIRQs, n.GROFlushTimeout = busyDeferHardIRQs, busyGROFlushTimeout
	return n
}

// Set makes the settings of the device those of n.
func (n NAPI) Set() error {
	dir, err := openSysfs(n.Device)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for name, value := range n.values() {
		if err := writeNumber(dir, name, *value); err != nil {
			return fmt.Errorf("xdp: %s of %s: %w", name, n.Device, err)
		}
	}
	return nil
}

// Restore sets the settings back to those of n, in the network namespace of the
// calling thread, and reports whether it did: it leaves alone what another process has
// set since, and a device that is gone has none. Doing it again is harmless. It fails where
// the kernel refuses the settings.
func (n NAPI) Restore() (bool, error) {
	dev, err := lookup(n.Device)
	if errors.Is(err, ErrNoDevice) || err == nil && dev.index != n.Ifindex {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := n.Now()
	if err != nil {
		return false, err
	}
	busy, before := n.Busy(), now
	for _, v := range []struct{ now, busy, before *uint64 }{
		{&now.DeferHardIRQs, &busy.DeferHardIRQs, &n.DeferHardIRQs},
		{&now.GROFlushTimeout, &busy.GROFlushTimeout, &n.GROFlushTimeout},
	} {
		if *v.now == *v.busy {
			*v.now = *v.before
		}
	}
	if now == before {
		return false, nil
	}
	return true, now.Set()
}

// openSysfs opens the folder of a device in sysfs. That which is mounted has the
// devices of the network namespace that it was mounted in, so this is one of its own,
// which is mounted nowhere; where that is not allowed, /sys.
func openSysfs(device string) (dir int, err error) {
	root := unix.AT_FDCWD
	path := "/sys/class/net/" + device
	if fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC); err == nil {
		defer unix.Close(fs)
		if unix.FsconfigCreate(fs) == nil {
			if mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0); err == nil {
				defer unix.Close(mount)
				root, path = mount, "class/net/"+device
			}
		}
	}
	dir, err = unix.Openat(root, path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return dir, os.NewSyscallError("open of "+path+" in sysfs", err)
}

func readNumber(dir int, name string) (uint64, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var text [32]byte
	n, err := unix.Read(fd, text[:])
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text[:n])), 10, 64)
}

func writeNumber(dir int, name string, value uint64) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, strconv.AppendUint(nil, value, 10))
	return err
}

// queueHasNAPI reports whether the kernel knows the NAPI of the first queue to receive
// on (netdev netlink family, Linux 6.8).
func queueHasNAPI(ifindex int) bool {
	const queueGet, idAttr, ifindexAttr, typeAttr, napiAttr, receives = 10, 1, 2, 3, 4, 0
	attrs, err := askGeneric("netdev", queueGet, nl.NewRtAttr(idAttr, nl.Uint32Attr(0)),
		nl.NewRtAttr(ifindexAttr, nl.Uint32Attr(uint32(ifindex))), nl.NewRtAttr(typeAttr, nl.Uint32Attr(receives)))
	if err != nil {
		return false
	}
	for _, a := range attrs {
		if a.Attr.Type == napiAttr {
			return true
		}
	}
	return false
}

package testbed

import (
	"fmt"
	"os"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ReceiveOn makes the kernel do the receive work of a queue of the host's
// device on the given cores, whoever sends (receive packet steering,
// Documentation/networking/scaling.rst). Without it, and with no cores, a veth
// is served on the core of the sender. It acts before XDP programs in generic
// mode, and not at all before those in driver mode.
func (h *Host) ReceiveOn(queue int, cores ...int) error {
	mask, err := coreMask(cores)
	if err != nil {
		return err
	}
	err = onNewThread(func() error {
		// The directory of a device is to be seen only in a sysfs that was
		// mounted in its network namespace, and only this thread shall.
		if err := netns.Set(h.ns); err != nil {
			return fmt.Errorf("entering %s: %w", h.Name, err)
		}
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
			return os.NewSyscallError("mount", err)
		}
		if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
			return os.NewSyscallError("mount", err)
		}
		return os.WriteFile(fmt.Sprintf("/sys/class/net/%s/queues/rx-%d/rps_cpus", h.Dev, queue), []byte(mask), 0)
	})
	if err != nil {
		return fmt.Errorf("testbed: receive work of queue %d of %s: %w", queue, h.Name, permission(err))
	}
	return nil
}

// coreMask returns a set of cores as the kernel writes it: hexadecimal words
// of 32 bits, the highest ones first, separated by commas.
func coreMask(cores []int) (string, error) {
	words := []uint32{0}
	for _, c := range cores {
		if c < 0 || c >= 1<<16 {
			return "", &ConfigError{"core", c, "0 to 65535"}
		}
		for c/32 >= len(words) {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	var b strings.Builder
	for i := len(words) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%x", words[i])
		if i > 0 {
			b.WriteByte(',')
		}
	}
	return b.String(), nil
}

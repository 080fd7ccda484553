package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Mode is how an XDP program runs on an interface.
type Mode uint8

// Modes.
const (
	Auto    Mode = iota // Driver, else Generic
	Generic             // in the kernel's stack, on any interface
	Driver              // inside the driver, which must support it
)

func (m Mode) String() string {
	if m <= Driver {
		return [...]string{Auto: "auto", Generic: "generic", Driver: "driver"}[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// MarshalText makes a mode readable in JSON.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Attached describes the XDP program on an interface.
type Attached struct {
	ProgramID uint32 `json:"program_id"`
	Name      string `json:"name,omitempty"` // "" when we may not ask
	Mode      Mode   `json:"mode"`
	LinkID    uint32 `json:"link_id,omitempty"` // 0 when it is not held by a link, or we may not ask
}

func (a Attached) String() string {
	s := fmt.Sprintf("XDP program %q (id %d, %s mode", a.Name, a.ProgramID, a.Mode)
	if a.LinkID != 0 {
		s += fmt.Sprintf(", link %d", a.LinkID)
	}
	return s + ")"
}

// AttachedError says that an interface has an XDP program already. We never
// replace one.
type AttachedError struct {
	Device string
	Attached
	// Ours says that it is the same program as the one to attach, of another
	// job or of one that ends. It was waited for.
	Ours bool
	// Holder is the process that holds it, or "" when that is not known.
	Holder string
}

func (e *AttachedError) Error() string {
	s := fmt.Sprintf("bpf: %s has %v already, which is left in place", e.Device, e.Attached)
	if e.Ours {
		s += ", and is of another job of xwarp that did not end in time"
	}
	return s + ": " + e.Remedy()
}

// Remedy says what to do.
func (e *AttachedError) Remedy() string {
	who := "the process that attached it"
	if e.Holder != "" {
		who = e.Holder
	}
	command := fmt.Sprintf("bpftool link detach id %d", e.LinkID)
	if e.LinkID == 0 {
		command = fmt.Sprintf("ip link set dev %s xdp%s off", e.Device, map[Mode]string{Generic: "generic", Driver: "drv"}[e.Mode])
	}
	return "stop " + who + ", detach it (" + command + "), or use another interface"
}

// Query returns the XDP program on an interface. ok is false when there is none. It fails
// where there is no such interface.
func Query(ifindex int) (a Attached, ok bool, err error) {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return a, false, fmt.Errorf("bpf: no interface with index %d: %w", ifindex, err)
	}
	xdp := l.Attrs().Xdp
	if xdp == nil || !xdp.Attached {
		return a, false, nil
	}
	a.ProgramID, a.Mode = xdp.ProgId, Driver
	if xdp.AttachMode == attachedSKB {
		a.Mode = Generic
	}
	// What follows needs CAP_SYS_ADMIN; the caller can do without.
	if p, err := ebpf.NewProgramFromID(ebpf.ProgramID(a.ProgramID)); err == nil {
		if info, err := p.Info(); err == nil {
			a.Name = info.Name
		}
		p.Close()
	}
	a.LinkID = linkOf(ifindex, a.ProgramID)
	return a, true, nil
}

// XDP_ATTACHED_SKB of linux/if_link.h.
const attachedSKB = 2

// linkOf returns the id of the link that holds a program on an interface, or 0.
func linkOf(ifindex int, program uint32) uint32 {
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		info, err := it.Link.Info()
		if err != nil || uint32(info.Program) != program {
			continue
		}
		if x := info.XDP(); x != nil && int(x.Ifindex) == ifindex {
			return uint32(info.ID)
		}
	}
	return 0
}

// attach attaches a program. The same program on the interface may be that of a
// job which has just ended, or is about to: for that one it waits.
func attach(p *ebpf.Program, ifindex int, mode Mode) (link.Link, Mode, error) {
	for try := 1; ; try++ {
		l, at, err := attachNow(p, ifindex, mode)
		if err == nil {
			return l, at, nil
		}
		var other *AttachedError
		switch {
		case errors.As(err, &other):
			other.Ours = sameProgram(p, other.ProgramID)
			if err = other; !other.Ours || try == tries {
				other.Holder = holder(other.LinkID)
				return nil, 0, err
			}
		case !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EEXIST): // else it has gone between
			return nil, 0, err
		}
		if try >= tries {
			return nil, 0, err
		}
		time.Sleep(retry)
	}
}

// How often, and how long after the last time, attach tries. This is counted and
// not timed: a process that cannot run has not waited.
const (
	tries = 100
	retry = 50 * time.Millisecond
)

func attachNow(p *ebpf.Program, ifindex int, mode Mode) (link.Link, Mode, error) {
	if mode == Auto {
		l, _, err := attachNow(p, ifindex, Driver)
		if _, ok := errors.AsType[*AttachedError](err); err == nil || ok || isPermission(err) {
			return l, Driver, err
		}
		l, _, generic := attachNow(p, ifindex, Generic)
		if generic != nil {
			return nil, 0, errors.Join(err, generic)
		}
		return l, Generic, nil
	}
	flags := link.XDPGenericMode
	if mode == Driver {
		flags = link.XDPDriverMode
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: ifindex, Flags: flags})
	if err == nil {
		return l, mode, nil
	}
	return nil, 0, attachError(ifindex, mode, err)
}

func attachError(ifindex int, mode Mode, err error) error {
	dev, linkErr := netlink.LinkByIndex(ifindex)
	if linkErr != nil {
		return fmt.Errorf("bpf: no interface with index %d: %w", ifindex, linkErr)
	}
	name, mtu := dev.Attrs().Name, dev.Attrs().MTU
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) {
		if a, ok, _ := Query(ifindex); ok {
			return &AttachedError{Device: name, Attached: a}
		}
	}
	switch {
	case isPermission(err):
		return fmt.Errorf("bpf: not allowed to attach an XDP program to %s: run as root or with CAP_BPF and CAP_NET_ADMIN: %w", name, err)
	case mode == Driver && errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("bpf: the driver of %s does not support XDP: use generic mode: %w", name, err)
	case mode == Driver && (errors.Is(err, unix.ERANGE) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EMSGSIZE)):
		return fmt.Errorf("bpf: the driver of %s refuses XDP, most often because of the MTU (here %d; a veth looks at its peer's), of too few queues or of an offload like LRO: lower the MTU or use generic mode: %w", name, mtu, err)
	}
	return fmt.Errorf("bpf: cannot attach to %s in %s mode: %w", name, mode, err)
}

func isPermission(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
}

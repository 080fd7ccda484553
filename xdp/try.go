package xdp

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
)

// Try is [Probe], and then tries what a driver only claims: for a moment it runs our
// program in driver mode, which passes everything on, and binds a socket with
// zero-copy to a queue without an owner. That may make a card reset itself and lose
// its link for some seconds, so it is done on request only.
func Try(name string) (Report, error) {
	dev, err := lookup(name)
	if err != nil {
		return Report{}, err
	}
	r := probe(dev, kernelRelease())
	if !r.Usable() {
		r.add(Finding{Name: "trial", Detail: "not done: AF_XDP cannot be used here", Remedy: "see what is missing"})
		return r, nil
	}
	r.tried(dev, try(dev))
	return r, nil
}

// trial is what came of trying.
type trial struct {
	mode     error // of the program in driver mode
	zeroCopy error // of binding
	queue    int   // that was bound, or the last that was tried
}

// tryPort is a UDP port not in use: nothing is steered while trying.
const tryPort = 9 // discard

func try(dev *device) (t trial) {
	queues := max(dev.receive, 1)
	s, err := NewSteering(Config{
		Device: dev.name, Mode: bpf.Driver, Steer: bpf.Config{PortBase: tryPort, Slots: 1, Queues: queues},
	})
	if err != nil {
		t.mode = err
		return t
	}
	dev.settle()
	for t.queue = dev.queues - 1; ; t.queue-- { // the first ones are those that others take
		if t.zeroCopy = tryZeroCopy(dev, t.queue); !errors.Is(t.zeroCopy, unix.EBUSY) || t.queue == 0 {
			break
		}
	}
	t.mode = s.Close()
	dev.settle()
	return t
}

// tryZeroCopy binds a socket to a queue, and closes it.
func tryZeroCopy(dev *device, queue int) error {
	arena, err := mem.New(mem.Config{Size: tryDepth * mem.FrameSize, SmallPages: true})
	if err != nil {
		return err
	}
	defer arena.Close()
	s, err := newSocket(dev.name, arena, depths{tryDepth, tryDepth, tryDepth, tryDepth})
	if err != nil {
		return err
	}
	for i := range tryDepth / 2 { // some drivers want something to receive into
		s.rings.fill.push(mem.Addr(i * mem.FrameSize))
	}
	s.rings.fill.publish()
	c := Config{ZeroCopy: ZeroCopyMust}
	err = s.bind(dev, queue, c.bindings(dev, bpf.Driver), bindTriesFew)
	return errors.Join(err, s.close())
}

// tryDepth is the size of the rings while trying: some drivers refuse short ones.
const tryDepth = 2048

// tried tells what came of trying.
func (r *Report) tried(dev *device, t trial) {
	f := Finding{Name: "driver mode", OK: t.mode == nil, Detail: "tried: works in " + dev.driverText()}
	r.Modes = []string{bpf.Generic.String()}
	if !f.OK {
		f.Detail = "tried, and refused by " + dev.driverText() + ": " + meaning(t.mode)
		f.Remedy = "generic mode is used"
		r.add(f)
		r.ZeroCopy = ZeroCopyNo
		r.add(Finding{Name: "zero-copy", Detail: "needs driver mode", Remedy: "the kernel copies"})
		return
	}
	r.Modes = append(r.Modes, bpf.Driver.String())
	r.add(f)
	f = Finding{Name: "zero-copy", OK: t.zeroCopy == nil, Detail: fmt.Sprintf("tried: works on queue %d", t.queue)}
	claimed := r.ZeroCopy != ZeroCopyNo
	switch {
	case f.OK:
		r.ZeroCopy = ZeroCopyWorks
		if n := r.ZeroCopySegs; n > 0 {
			f.Detail += fmt.Sprintf(", with up to %s for a frame (zc_max_segs)", count(n, "buffer"))
		}
	case claimed:
		r.ZeroCopy = ZeroCopyFails
		fallthrough
	default:
		f.Detail = fmt.Sprintf("tried on queue %d: %s", t.queue, meaning(t.zeroCopy))
		f.Remedy = "the kernel copies"
		if most := dev.mtuZeroCopy(); claimed && dev.mtu > most {
			f.Remedy += fmt.Sprintf("; with an MTU of %d or less, whose frames have one buffer, it may work", most)
		}
	}
	r.add(f)
}

type refusal struct {
	errno unix.Errno
	name  string
	text  string
}

// refusals are what kernels mean when they refuse a program or a socket.
var refusals = []refusal{
	{unix.EOPNOTSUPP, "EOPNOTSUPP", "the driver has it not, or not with these settings of the card"},
	{unix.EINVAL, "EINVAL", "the driver refuses it with these settings (virtio: no VIRTIO_F_ACCESS_PLATFORM; else the MTU, the number of queues, the size of the rings, LRO)"},
	{unix.EBUSY, "EBUSY", "other AF_XDP sockets hold all queues"},
	{unix.ENOMEM, "ENOMEM", "the kernel has no memory for it"},
	{unix.ENOSPC, "ENOSPC", "the card has no queue left for it (fewer queues may help: ethtool -L)"},
	{unix.ERANGE, "ERANGE", "the MTU is too large"},
	{unix.EPERM, "EPERM", "not permitted"},
	{unix.ENODEV, "ENODEV", "the device is gone"},
}

// meaning says in words what the kernel refuses something for.
func meaning(err error) string {
	i := slices.IndexFunc(refusals, func(r refusal) bool { return errors.Is(err, r.errno) })
	var errno unix.Errno
	switch {
	case i >= 0:
		return fmt.Sprintf("%s (%s)", refusals[i].text, refusals[i].name)
	case errors.As(err, &errno):
		return fmt.Sprintf("%v (%s)", errno, unix.ErrnoName(errno))
	}
	return err.Error()
}

package xdp

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
)

// Finding is one thing that AF_XDP needs or can use on a device.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"`           // false: it works without, only slower
	Unsure bool   `json:"unsure,omitempty"` // it may be OK: it was not tried
	Detail string `json:"detail,omitempty"` // what was found
	Remedy string `json:"remedy,omitempty"` // what to do when not OK
}

// ZeroCopyState says whether a device can do zero-copy, and how that is known.
type ZeroCopyState string

// States of zero-copy.
const (
	ZeroCopyNo       ZeroCopyState = "no"        // the driver has none, or none in this configuration
	ZeroCopyNotTried ZeroCopyState = "not tried" // the driver says that it has it
	ZeroCopyUnknown  ZeroCopyState = "unknown"   // the kernel does not tell
	ZeroCopyWorks    ZeroCopyState = "yes"       // see Try
	ZeroCopyFails    ZeroCopyState = "fails"     // the driver says that it has it, and see Try
)

// Report says what a device can do.
type Report struct {
	Device       string        `json:"device"`
	Driver       string        `json:"driver"`
	Kind         string        `json:"kind"`            // "network card", "VLAN", ...
	Lower        string        `json:"lower,omitempty"` // the device below it that is used in its stead
	Kernel       string        `json:"kernel"`
	Up           bool          `json:"up"`
	MTU          int           `json:"mtu"`        // bytes
	Queues       int           `json:"queues"`     // that can both receive and send
	QueuesMax    int           `json:"queues_max"` // that it can be given; 0: its driver does not say
	Modes        []string      `json:"modes"`      // "generic", "driver"
	ZeroCopy     ZeroCopyState `json:"zero_copy"`
	ZeroCopySegs int           `json:"zc_max_segs"`  // buffers of one frame in zero-copy; 0: unknown, or none
	MultiBuffer  bool          `json:"multi_buffer"` // frames above MTUSingle, in copy mode
	NeedWakeup   bool          `json:"need_wakeup"`
	Memlock      uint64        `json:"memlock"`           // limit in bytes; ^0 is none
	Program      *bpf.Attached `json:"program,omitempty"` // the device's XDP program
	Findings     []Finding     `json:"findings"`
}

// Usable reports whether [Open] can be expected to work.
func (r Report) Usable() bool {
	for _, f := range r.Findings {
		if f.Needed && !f.OK {
			return false
		}
	}
	return true
}

// add adds a finding, or replaces the one of its name.
func (r *Report) add(f Finding) {
	if f.OK {
		f.Remedy = ""
	}
	if i := slices.IndexFunc(r.Findings, func(o Finding) bool { return o.Name == f.Name }); i >= 0 {
		r.Findings[i] = f
		return
	}
	r.Findings = append(r.Findings, f)
}

// Probe finds out what a device in the network namespace of the calling thread
// can do. It changes nothing there: it binds a socket to queue 0 for a moment,
// in copy mode and without a program. So whether zero-copy works, which may depend
// on more than the driver, it does not find out: see [Try]. The error is that of an
// unknown device.
func Probe(name string) (Report, error) {
	dev, err := lookup(name)
	if err != nil {
		return Report{}, err
	}
	return probe(dev, kernelRelease()), nil
}

func probe(dev *device, release string) Report {
	r := Report{
		Device: dev.name, Driver: dev.driver, Kind: dev.kindName(), Lower: dev.lower(), Kernel: release,
		Up: dev.up, MTU: dev.mtu, Queues: dev.queues, QueuesMax: dev.most,
	}
	r.kernel()
	r.device(dev)
	r.add(Finding{Name: "link", OK: dev.up, Needed: true, Detail: map[bool]string{true: "up", false: "down"}[dev.up],
		Remedy: fmt.Sprintf("ip link set dev %s up", dev.name)})
	r.permissions()
	r.memlock()
	r.program(dev)
	r.trialSocket(dev)
	r.modes(dev)
	r.multiBuffer(dev)
	r.zeroCopy(dev)
	r.queues(dev)
	r.steering(dev)
	return r
}

func (r *Report) queues(dev *device) {
	f := Finding{Name: "queues", OK: true, Detail: strconv.Itoa(dev.queues)}
	if dev.most > 0 {
		f.Detail += fmt.Sprintf(" of up to %d", dev.most)
	}
	r.add(f)
}

// steering tells whether several processes can have a queue each, and how a card
// spreads what no filter steers.
func (r *Report) steering(dev *device) {
	const share = "ranks of one host share a queue"
	f := Finding{Name: "steering", Detail: "no n-tuple filters in " + dev.driverText(), Remedy: share}
	var on bool
	card, closeCard, err := openEthtool(dev.card)
	if err == nil {
		defer closeCard()
		r.hash(dev, card)
		on, _ = card.filtering() // a card with filters reports it
		_, err = card.list()
	}
	switch {
	case err != nil:
	case dev.vlan != 0:
		f.Detail = "frames of a VLAN are not steered to queues"
	case dev.queues == 1:
		f.Detail = "n-tuple filters, but one queue"
		if f.Remedy = dev.moreQueues("add queues: "); f.Remedy == "" {
			f.Remedy = share + ", for it can have no other"
		}
	default:
		f.OK, f.Detail = true, "n-tuple filters (xrun --queues steered), "+map[bool]string{true: "on", false: "switched on when needed"}[on]
	}
	r.add(f)
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil { // it fails for bad addresses only
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// versionAtLeast compares a kernel release such as "6.1.0-18-amd64".
func versionAtLeast(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n != 2 {
		return true // unheard of: let the other findings decide
	}
	return a > major || a == major && b >= minor
}

func (r *Report) kernel() {
	r.add(Finding{Name: "kernel", OK: versionAtLeast(r.Kernel, 5, 15), Needed: true, Detail: r.Kernel,
		Remedy: "Linux 5.15 is needed, 6.6 or later is best"})
}

// Capabilities that opening a port needs (capabilities(7)).
var capabilities = []struct {
	name string
	bit  uint
}{{"CAP_NET_RAW", unix.CAP_NET_RAW}, {"CAP_NET_ADMIN", unix.CAP_NET_ADMIN}, {"CAP_BPF", unix.CAP_BPF}}

// hasCapability reports whether the thread has a capability. CAP_SYS_ADMIN
// stands for CAP_BPF, which was split off from it.
func hasCapability(bit uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	if data[bit/32].Effective&(1<<(bit%32)) != 0 {
		return true
	}
	return bit == unix.CAP_BPF && hasCapability(unix.CAP_SYS_ADMIN)
}

func (r *Report) permissions() {
	var missing []string
	for _, c := range capabilities {
		if !hasCapability(c.bit) {
			missing = append(missing, c.name)
		}
	}
	f := Finding{Name: "permission", OK: len(missing) == 0, Needed: true, Detail: "all capabilities", Remedy: permissionRemedy}
	if len(missing) > 0 {
		f.Detail = "missing " + strings.Join(missing, ", ")
	}
	r.add(f)
}

func (r *Report) memlock() {
	const arena = mem.DefaultSize
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		limit.Cur = 0
	}
	r.Memlock = limit.Cur
	f := Finding{Name: "memlock", OK: limit.Cur >= arena || hasCapability(unix.CAP_IPC_LOCK), Needed: true,
		Detail: fmt.Sprintf("%d KiB", limit.Cur/1024),
		Remedy: fmt.Sprintf("ulimit -l %d, or give the program CAP_IPC_LOCK, or make the arena smaller", arena/1024)}
	switch {
	case limit.Cur == unix.RLIM_INFINITY:
		f.Detail = "unlimited"
	case hasCapability(unix.CAP_IPC_LOCK):
		f.Detail += ", not counted (CAP_IPC_LOCK)"
	}
	r.add(f)
}

func (r *Report) program(dev *device) {
	f := Finding{Name: "xdp program", OK: true, Needed: true, Detail: "none attached"}
	if a, ok, err := bpf.Query(dev.index); err == nil && ok {
		r.Program = &a
		f.OK, f.Detail = false, a.String()
		f.Remedy = (&bpf.AttachedError{Device: dev.name, Attached: a}).Remedy()
	}
	r.add(f)
}

// trialSocket opens a socket and binds it, which shows most of what can be
// wrong, and whether the kernel takes frames of several buffers.
func (r *Report) trialSocket(dev *device) {
	f := Finding{Name: "socket", Needed: true}
	err := func() error {
		arena, err := mem.New(mem.Config{Size: depthMin * mem.FrameSize, SmallPages: true})
		if err != nil {
			return err
		}
		defer arena.Close()
		s, err := newSocket(dev.name, arena, depths{depthMin, depthMin, depthMin, depthMin})
		if err != nil {
			return err
		}
		defer s.close()
		if err := s.bind(dev, 0, []uint16{unix.XDP_COPY | unix.XDP_USE_SG, unix.XDP_COPY}, bindTriesFew); err != nil {
			return err
		}
		r.NeedWakeup, r.MultiBuffer = true, s.sg // bind asks for both
		return nil
	}()
	f.OK, f.Detail = err == nil, "bound to queue 0"
	var known *Error
	switch {
	case errors.As(err, &known):
		f.Detail, f.Remedy = known.Reason.Error(), known.Remedy
	case err != nil:
		f.Detail, f.Remedy = err.Error(), "see the kernel's log (dmesg)"
	}
	r.add(f)
}

func (r *Report) modes(dev *device) {
	r.Modes = []string{bpf.Generic.String()}
	f := Finding{Name: "driver mode", OK: dev.features.driverMode(), Detail: "supported by " + dev.driverText()}
	if known, _ := knownOf(dev.driver, r.Kernel); !dev.features.known {
		f.OK, f.Detail = known, "supported by "+dev.driverText()+", as far as known: the kernel tells since Linux 6.3"
	}
	switch {
	case dev.kind.use != useBest && dev.kind.use != useLower:
		f.OK, f.Detail, f.Remedy = false, "not used on "+dev.kind.what, "see device"
	case f.OK && dev.tooLarge():
		f.OK, f.Detail = false, fmt.Sprintf("supported by %s, but not with an MTU above %d", dev.driverText(), dev.mtuDriver())
		f.Remedy = fmt.Sprintf("generic mode is used; or lower the MTU on all hosts: ip link set dev %s mtu %d", dev.name, dev.mtuDriver())
	case f.OK:
		r.Modes = append(r.Modes, bpf.Driver.String())
	case dev.dropsRedirected():
		f.Detail, f.Remedy = dev.driverText()+" takes programs, but drops the frames that they redirect", "generic mode is used"
	case !dev.features.known:
		f.Unsure, f.Detail = true, "unknown: the kernel tells since Linux 6.3, and "+dev.driverText()+" is not known to have it"
		f.Remedy = "it is used if it is there; to find out: " + tryCommand(dev)
	default:
		f.Detail, f.Remedy = "not supported by "+dev.driverText(), "generic mode is used; a network card with XDP in its driver is faster"
	}
	r.add(f)
}

func (r *Report) multiBuffer(dev *device) {
	f := Finding{Name: "multi-buffer", OK: r.MultiBuffer, Needed: dev.mtu > MTUSingle,
		Detail: fmt.Sprintf("frames above %d bytes use several buffers", rxBuffer),
		Remedy: fmt.Sprintf("Linux 6.6 has it; here lower the MTU on all hosts: ip link set dev %s mtu %d", dev.name, MTUSingle)}
	switch {
	case !r.NeedWakeup: // the trial socket was not bound
		f.Needed, f.Detail, f.Remedy = false, "unknown: no socket could be opened", "see socket"
	case !r.MultiBuffer && dev.mtu <= MTUSingle:
		f.Detail, f.Remedy = "missing, and not needed at this MTU", "Linux 6.6 has it"
	case r.MultiBuffer && dev.features.known && !dev.features.multiBuffer():
		f.Detail += ", in generic mode only"
	}
	r.add(f)
}

// zeroCopy tells what the driver says, which is not all that it takes.
func (r *Report) zeroCopy(dev *device) {
	r.ZeroCopySegs = int(dev.features.zcSegs)
	has, by := dev.features.zeroCopy(), "as "+dev.driverText()+" says"
	if !dev.features.known {
		_, has = knownOf(dev.driver, r.Kernel)
		by = "as far as known of " + dev.driverText()
	}
	f := Finding{Name: "zero-copy"}
	switch {
	case !has && !dev.features.known:
		r.ZeroCopy, f.Unsure = ZeroCopyUnknown, true
		f.Detail, f.Remedy = "unknown before Linux 6.3", "it is used where it works; to find out: "+tryCommand(dev)
	case !has:
		r.ZeroCopy = ZeroCopyNo
		f.Detail, f.Remedy = "not supported by "+dev.driverText(), "the kernel copies; a network card with AF_XDP zero-copy in its driver is faster"
	case dev.lacks != "":
		r.ZeroCopy = ZeroCopyNo
		f.Detail, f.Remedy = "supported by "+dev.driverText()+", but not here: "+dev.lacks, "the kernel copies; ask who runs the host of this machine"
	case dev.tooLarge(), dev.mtu > dev.mtuZeroCopy() && dev.features.zcSegs <= 1:
		r.ZeroCopy, f.Detail = ZeroCopyNo, "only for frames of one buffer (zc_max_segs 1)"
		f.Remedy = fmt.Sprintf("lower the MTU on all hosts to use it, to %d at most: ip link set dev %s mtu %[1]d", dev.mtuZeroCopy(), dev.name)
	default:
		r.ZeroCopy, f.Unsure = ZeroCopyNotTried, true
		f.Detail = "not tried; supported, " + by
		if n := r.ZeroCopySegs; n > 0 {
			f.Detail += fmt.Sprintf(", with up to %s for a frame (zc_max_segs)", count(n, "buffer"))
		}
		f.Remedy = "it is used where it works; to find out: " + tryCommand(dev)
	}
	r.add(f)
}

// tryCommand is what a user types to have [Try] done.
func tryCommand(dev *device) string {
	return fmt.Sprintf("xinfo --check %s --try (the card may reset itself)", dev.name)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

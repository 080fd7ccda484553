package xdp

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
)

func finding(r Report, name string) Finding {
	for _, f := range r.Findings {
		if f.Name == name {
			return f
		}
	}
	return Finding{}
}

const (
	claimsNoSG = featureBasic | featureRedirect | featureZeroCopy
	claimsAll  = claimsNoSG | featureRxSG
)

// What only a driver says is not said to be so, and an old kernel does not make a card
// slow that it drives.
func TestReport_claims(t *testing.T) {
	for _, tt := range []struct {
		name, kernel string
		dev          device
		modes        string
		zeroCopy     ZeroCopyState
		says         string // of zero-copy
	}{
		{"claims", "6.12.0", device{driver: "igb", mtu: 1500, features: features{true, claimsAll, 1}}, "generic driver", ZeroCopyNotTried, "not tried; supported, as igb says, with up to 1 buffer for a frame (zc_max_segs)"},
		{"large frames", "6.12.0", device{driver: "virtio_net", mtu: 9000, features: features{true, claimsAll, 1}}, "generic driver", ZeroCopyNo, "only for frames of one buffer"},
		{"frames too large for the driver", "6.12.0", device{driver: "igb", mtu: 3500, features: features{true, claimsNoSG, 1}}, "generic", ZeroCopyNo, "only for frames of one buffer"},
		{"many buffers", "6.12.0", device{driver: "ice", mtu: 9000, features: features{true, claimsAll, 8}}, "generic driver", ZeroCopyNotTried, "up to 8 buffers"},
		{"virtio", "6.12.0", device{driver: "virtio_net", mtu: 1500, features: features{true, claimsAll, 1}, lacks: virtioLacks(strings.Repeat("1", 33) + "0110")}, "generic driver", ZeroCopyNo, "no VIRTIO_F_ACCESS_PLATFORM"},
		{"virtio with it", "6.12.0", device{driver: "virtio_net", mtu: 1500, features: features{true, claimsAll, 1}, lacks: virtioLacks(strings.Repeat("1", 34))}, "generic driver", ZeroCopyNotTried, "not tried"},
		{"none", "6.12.0", device{driver: "e1000e", mtu: 1500, features: features{known: true}}, "generic", ZeroCopyNo, "not supported by e1000e"},
		{"old and known", "6.1.0-18-amd64", device{driver: "igb", mtu: 1500}, "generic driver", ZeroCopyUnknown, "unknown before Linux 6.3"},
		{"old and known for zero-copy", "6.1.0", device{driver: "i40e", mtu: 1500}, "generic driver", ZeroCopyNotTried, "as far as known of i40e"},
		{"too old", "5.15.0", device{driver: "mana", mtu: 1500}, "generic", ZeroCopyUnknown, "unknown"},
		{"drops", "6.12.0", device{driver: "ixgbevf", mtu: 1500, features: features{true, featureBasic, 1}}, "generic", ZeroCopyNo, "not supported by ixgbevf"},
		{"old and drops", "6.1.0", device{driver: "ixgbevf", mtu: 1500}, "generic", ZeroCopyUnknown, "unknown"},
		{"old and unknown", "6.1.0", device{driver: "e1000e", mtu: 1500}, "generic", ZeroCopyUnknown, "unknown"},
	} {
		r := Report{Kernel: tt.kernel}
		tt.dev.name = "eth1"
		r.modes(&tt.dev)
		r.zeroCopy(&tt.dev)
		if f := finding(r, "zero-copy"); strings.Join(r.Modes, " ") != tt.modes || r.ZeroCopy != tt.zeroCopy || !strings.Contains(f.Detail, tt.says) || f.OK || f.Remedy == "" {
			t.Errorf("%s: modes %v, zero-copy %q, %+v", tt.name, r.Modes, r.ZeroCopy, f)
		}
	}
}

// A driver that drops what programs redirect is given none.
func TestDevice_dropsRedirected(t *testing.T) {
	for _, tt := range []struct {
		dev  device
		want bpf.Mode
		says string
	}{
		{device{driver: "ixgbevf"}, bpf.Generic, "drops"}, // before Linux 6.3
		{device{driver: "igb"}, bpf.Auto, ""},
		{device{driver: "vmxnet3", mtu: 3058, features: features{true, claimsNoSG, 1}}, bpf.Auto, ""},
		{device{driver: "vmxnet3", mtu: 3059, features: features{true, claimsNoSG, 1}}, bpf.Generic, "MTU above 3058"},
		{device{driver: "unheard of"}, bpf.Auto, ""},
		{device{driver: "unheard of", features: features{true, featureBasic, 0}}, bpf.Generic, "drops"},
		{device{driver: "ixgbevf", features: features{true, claimsNoSG, 1}}, bpf.Auto, ""}, // a version that can
		{device{driver: "says nothing", features: features{known: true}}, bpf.Auto, ""},    // it may be older than what tells
	} {
		err := tt.dev.suits(bpf.Driver)
		if got := tt.dev.preferred(bpf.Auto); got != tt.want || errors.Is(err, ErrUnsupported) != (got == bpf.Generic) || tt.dev.suits(bpf.Auto) != nil {
			t.Errorf("%s, %+v: tries %v; driver mode: %v", tt.dev.driver, tt.dev.features, got, err)
		}
		var r Report
		r.Kernel = "6.1.0"
		if r.modes(&tt.dev); tt.want == bpf.Generic && (len(r.Modes) != 1 || finding(r, "driver mode").Unsure || !strings.Contains(finding(r, "driver mode").Detail, tt.says)) {
			t.Errorf("%s: %v, %+v", tt.dev.driver, r.Modes, finding(r, "driver mode"))
		}
	}
}

// With which MTU a driver takes a program, and receives frames in one buffer, differs.
func TestReport_mtuOfDriver(t *testing.T) {
	for _, tt := range []struct {
		driver string
		mtu    int
		flags  uint64
		modes  string
		most   string // of the remedies
	}{
		{"igb", 3046, claimsNoSG, "generic driver", ""},
		{"igb", 3047, claimsNoSG, "generic", "mtu 3046"},
		{"igb", 9000, claimsAll, "generic driver", "mtu 3046"}, // a version that can do several
		{"ixgbe", 9000, claimsNoSG, "generic", "mtu 3050"},
		{"igc", 1501, claimsNoSG, "generic", "mtu 1500"},
		{"vmxnet3", 3058, claimsNoSG, "generic driver", ""},
		{"vmxnet3", 3059, claimsNoSG, "generic", "mtu 3058"},
		{"ena", 9001, claimsNoSG, "generic", "mtu 3498"},
		{"mana", 3507, claimsNoSG, "generic", "mtu 3506"},
		{"virtio_net", 3814, claimsAll, "generic driver", ""},
		{"virtio_net", 3815, claimsAll, "generic driver", "mtu 3814"},
		{"unheard of", 9000, claimsNoSG, "generic driver", "mtu 3814"},
	} {
		dev := device{name: "eth1", driver: tt.driver, mtu: tt.mtu, features: features{true, tt.flags, 1}}
		r := Report{Kernel: "6.14.0"}
		r.modes(&dev)
		r.zeroCopy(&dev)
		mode, zero := finding(r, "driver mode"), finding(r, "zero-copy")
		if strings.Join(r.Modes, " ") != tt.modes || !strings.Contains(zero.Remedy, tt.most) || !mode.OK && !strings.Contains(mode.Remedy, tt.most) || (r.ZeroCopy == ZeroCopyNo) != (tt.most != "") {
			t.Errorf("%s with an MTU of %d: %v, zero-copy %s, %+v, %+v", tt.driver, tt.mtu, r.Modes, r.ZeroCopy, mode, zero)
		}
	}
}

// What was tried is said with what the kernel means.
func TestReport_tried(t *testing.T) {
	refused := func(e unix.Errno) error { return &Error{Device: "eth1", Reason: ErrUnsupported, Cause: e} }
	for _, tt := range []struct {
		name     string
		trial    trial
		mtu      int
		claims   uint64
		modes    string
		zeroCopy ZeroCopyState
		says     string
	}{
		{"works", trial{queue: 3}, 1500, claimsAll, "generic driver", ZeroCopyWorks, "tried: works on queue 3, with up to 1 buffer"},
		{"virtio", trial{zeroCopy: refused(unix.EINVAL), queue: 1}, 1500, claimsAll, "generic driver", ZeroCopyFails, "tried on queue 1: the driver refuses it with these settings (virtio: no VIRTIO_F_ACCESS_PLATFORM"},
		{"none", trial{zeroCopy: refused(unix.EOPNOTSUPP)}, 1500, featureBasic, "generic driver", ZeroCopyNo, "(EOPNOTSUPP)"},
		{"busy", trial{zeroCopy: refused(unix.EBUSY)}, 1500, claimsAll, "generic driver", ZeroCopyFails, "hold all queues (EBUSY)"},
		{"unheard of", trial{zeroCopy: refused(unix.EIO)}, 1500, claimsAll, "generic driver", ZeroCopyFails, "input/output error (EIO)"},
		{"no driver mode", trial{mode: os.NewSyscallError("bpf", unix.EOPNOTSUPP)}, 1500, claimsAll, "generic", ZeroCopyNo, "needs driver mode"},
	} {
		dev := device{name: "eth1", driver: "igb", mtu: tt.mtu, features: features{true, tt.claims, 1}}
		r := Report{Kernel: "6.12.0"}
		r.modes(&dev)
		r.zeroCopy(&dev)
		r.tried(&dev, tt.trial)
		f := finding(r, "zero-copy")
		if strings.Join(r.Modes, " ") != tt.modes || r.ZeroCopy != tt.zeroCopy || !strings.Contains(f.Detail, tt.says) || f.Unsure || f.OK == (f.Remedy != "") || len(r.Findings) != 2 {
			t.Errorf("%s: modes %v, zero-copy %q, %+v", tt.name, r.Modes, r.ZeroCopy, r.Findings)
		}
	}
}

// Queues are to be added only to what can have more.
func TestDevice_moreQueues(t *testing.T) {
	attr := func(typ uint16, n uint32) syscall.NetlinkRouteAttr {
		return syscall.NetlinkRouteAttr{Attr: syscall.RtAttr{Type: typ}, Value: binary.NativeEndian.AppendUint32(nil, n)}
	}
	for _, tt := range []struct {
		name  string
		attrs []syscall.NetlinkRouteAttr
		want  channels
		more  string
	}{
		{"igb", []syscall.NetlinkRouteAttr{attr(5, 8), attr(9, 1)}, channels{1, 1, 8, false}, "add: ethtool -L eth1 combined N (up to 8)"},
		{"one queue", []syscall.NetlinkRouteAttr{attr(5, 1), attr(9, 1)}, channels{1, 1, 1, true}, ""},
		{"all that it has", []syscall.NetlinkRouteAttr{attr(5, 4), attr(9, 4)}, channels{4, 4, 4, false}, ""},
		{"veth", []syscall.NetlinkRouteAttr{attr(2, 6), attr(3, 6), attr(6, 1), attr(7, 1)}, channels{1, 1, 6, true}, "add: ethtool -L eth1 rx N tx N (up to 6)"},
		{"says nothing", nil, channels{0, 0, 0, true}, ""},
	} {
		c := channelsOf(tt.attrs)
		d := device{name: "eth1", card: "eth1", queues: c.both, most: c.most, apart: c.apart}
		if got := d.moreQueues("add: "); c != tt.want || got != tt.more {
			t.Errorf("%s: %+v, %q; want %+v, %q", tt.name, c, got, tt.want, tt.more)
		}
	}
	d := device{name: "eth1", card: "eth1", queues: 1, most: 1, up: true, mtu: 1500}
	var e *Error
	if err := d.check(1, 0); !errors.As(err, &e) || strings.Contains(e.Remedy, "add queues") {
		t.Errorf("a device with one queue: %v", err)
	}
}

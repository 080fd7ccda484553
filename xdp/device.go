package xdp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// device is what the kernel says about a network device.
type device struct {
	name     string // that was asked for
	card     string // where the sockets are: name, or the device below a VLAN; what follows is of it
	driver   string // "veth", "ixgbe", ...; "" when it does not say
	index    int
	mtu      int
	queues   int  // that can both receive and send
	receive  int  // that can receive
	most     int  // queues that it can have; 0: it does not say
	apart    bool // see channels
	up       bool
	carrier  bool // the link was up, too
	features features
	kind     kind   // of the one that was asked for
	vlan     uint16 // whose tag frames have on card; 0: none
	lacks    string // what this machine misses for the zero-copy that its driver has; "": nothing known
}

func lookup(name string) (*device, error) {
	l, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	switch {
	case errors.As(err, &missing):
		return nil, &Error{Device: name, Reason: ErrNoDevice, Remedy: "choose one of: " + strings.Join(deviceNames(), ", ")}
	case err != nil:
		return nil, fmt.Errorf("xdp: cannot look up device %s: %w", name, err)
	}
	d := describe(l)
	if v, ok := l.(*netlink.Vlan); ok {
		if err := d.below(v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// describe returns what a device is like, whatever is below it.
func describe(l netlink.Link) *device {
	a := l.Attrs()
	d := &device{
		name: a.Name, card: a.Name, index: a.Index, mtu: a.MTU, up: a.Flags&net.FlagUp != 0, carrier: a.RawFlags&unix.IFF_RUNNING != 0,
		driver: driverOf(a.Name), features: queryFeatures(a.Index),
	}
	if d.driver == "virtio_net" {
		d.lacks = virtioLacks(virtioFeatures(d.name))
	}
	d.kind = kindOfLink(l, d.driver)
	c := queryChannels(a.Index)
	d.queues, d.receive, d.most, d.apart = c.both, c.receive, c.most, c.apart
	if d.receive == 0 {
		d.queues, d.receive = max(min(a.NumRxQueues, a.NumTxQueues), 1), max(a.NumRxQueues, 1)
	}
	return d
}

// settle waits until the link is as it was when the device was looked up: many
// drivers reset the card when they get a program or a socket, and then it has no
// link for some seconds. When it stays away the senders report that.
func (d *device) settle() {
	for range settleTries {
		l, err := netlink.LinkByIndex(d.index)
		if err != nil || !d.carrier || l.Attrs().RawFlags&unix.IFF_RUNNING != 0 {
			return
		}
		time.Sleep(settlePause)
	}
}

const (
	settlePause = 20 * time.Millisecond
	settleTries = 500 // ten seconds
)

// driverText names the driver, for people.
func (d *device) driverText() string {
	if d.driver == "" {
		return "this device"
	}
	return d.driver
}

func deviceNames() []string {
	links, err := netlink.LinkList()
	if err != nil || len(links) == 0 {
		return []string{"(none)"}
	}
	var names []string
	for _, l := range links {
		names = append(names, l.Attrs().Name)
	}
	return names
}

func driverOf(name string) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, name)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(info.Driver[:])
}

// virtioFeatures returns the feature bits that the driver and the host have agreed on,
// as a digit for each, or "" where they are not to be seen.
func virtioFeatures(name string) string {
	text, _ := os.ReadFile(filepath.Join("/sys/class/net", name, "device/features"))
	return strings.TrimSpace(string(text))
}

// virtioLacks says what virtio misses for zero-copy: addresses of DMA, which its queues
// have with VIRTIO_F_ACCESS_PLATFORM only (virtnet_xsk_pool_enable in Linux).
func virtioLacks(features string) string {
	const accessPlatform = 33
	if len(features) > accessPlatform && features[accessPlatform] == '0' {
		return "its host gives it no VIRTIO_F_ACCESS_PLATFORM (QEMU: iommu_platform=on)"
	}
	return ""
}

// moreQueues says, behind a text, how to give the device more queues; "" where it
// has all that it can have.
func (d *device) moreQueues(text string) string {
	switch {
	case d.most <= d.queues:
		return ""
	case d.apart:
		return fmt.Sprintf("%sethtool -L %s rx N tx N (up to %d)", text, d.card, d.most)
	}
	return fmt.Sprintf("%sethtool -L %s combined N (up to %d)", text, d.card, d.most)
}

// check finds what keeps a port from being opened on the device.
func (d *device) check(queue, mtu int) error {
	switch {
	case !d.up:
		return &Error{Device: d.name, Reason: ErrDeviceDown, Remedy: fmt.Sprintf("bring it up: ip link set dev %s up", d.name)}
	case queue >= d.queues:
		return &Error{Device: d.name, Reason: ErrNoQueue, Detail: fmt.Sprintf("queue %d of %d", queue, d.queues),
			Remedy: fmt.Sprintf("use a queue from 0 to %d", d.queues-1) + d.moreQueues(", or add queues: ")}
	case mtu > d.mtu:
		return &Error{Device: d.name, Reason: ErrMTU, Detail: fmt.Sprintf("%d wanted, the device has %d", mtu, d.mtu),
			Remedy: fmt.Sprintf("raise it here and on all peers: ip link set dev %s mtu %d", d.name, mtu)}
	case mtu != 0 && mtu < mtuMin:
		return &Error{Device: d.name, Reason: ErrMTU, Detail: fmt.Sprintf("%d wanted", mtu),
			Remedy: fmt.Sprintf("IPv4 needs at least %d", mtuMin)}
	}
	return nil
}

// mtuMin is the least MTU of IPv4 (RFC 791, section 3.2).
const mtuMin = 68

package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/cmd/internal/cli"
)

// nic is what the kernel knows of a network device that has nothing to do with
// AF_XDP.
type nic struct {
	mac    net.HardwareAddr // nil: it has none
	active bool             // up, and connected
	mtu    int              // bytes
	maxMTU int              // bytes; 0: the kernel does not say
	addrs  []netip.Prefix
	vendor vendor
}

// vendor is the maker of a card, from its PCI configuration; 0 for devices that
// are no PCI cards.
type vendor struct{ id, part, revision uint64 }

// lookupNIC asks the kernel.
func lookupNIC(name string) (nic, error) {
	dev, err := net.InterfaceByName(name)
	if err != nil {
		return nic{}, fmt.Errorf("network device %s: %w", name, err)
	}
	addrs, err := dev.Addrs()
	if err != nil {
		return nic{}, fmt.Errorf("addresses of %s: %w", name, err)
	}
	n := nic{
		mac: dev.HardwareAddr, mtu: dev.MTU, maxMTU: maxMTU(dev.Index), vendor: vendorOf(name),
		active: dev.Flags&net.FlagUp != 0 && dev.Flags&net.FlagRunning != 0,
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			n.addrs = append(n.addrs, p)
		}
	}
	return n, nil
}

// maxMTU returns the largest MTU that the driver takes, or 0.
func maxMTU(index int) int {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil || len(answers) == 0 || len(answers[0]) < unix.SizeofIfInfomsg {
		return 0
	}
	attrs, err := nl.ParseRouteAttr(answers[0][unix.SizeofIfInfomsg:])
	if err != nil {
		return 0
	}
	for _, a := range attrs {
		if a.Attr.Type == unix.IFLA_MAX_MTU && len(a.Value) == 4 {
			return int(nl.NativeEndian().Uint32(a.Value))
		}
	}
	return 0
}

// vendorOf reads what PCI says of the card. The way leads over the driver and
// not over /sys/class/net, which may be that of another network namespace.
func vendorOf(name string) vendor {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return vendor{}
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, name)
	if err != nil {
		return vendor{}
	}
	bus := unix.ByteSliceToString(info.Bus_info[:])
	if bus == "" || bus != filepath.Base(bus) {
		return vendor{}
	}
	number := func(file string) uint64 {
		text, err := os.ReadFile(filepath.Join("/sys/bus/pci/devices", bus, file))
		if err != nil {
			return 0
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 0, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return vendor{number("vendor"), number("device"), number("revision")}
}

// guid returns the EUI-64 that the kernel's own iWARP drivers make of a MAC
// address (RFC 4291, appendix A): four words in hexadecimal.
func guid(mac net.HardwareAddr) string {
	if len(mac) != 6 {
		return "0000:0000:0000:0000"
	}
	return fmt.Sprintf("%02x%02x:%02xff:fe%02x:%02x%02x", mac[0]^2, mac[1], mac[2], mac[3], mac[4], mac[5])
}

// version returns the version of xwarp, which is what stands for firmware.
func version() string { return cli.Read().Version }

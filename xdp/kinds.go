package xdp

import (
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
)

// Kind is what a network device is, besides what its driver is called.
type Kind struct {
	Name string // for people: "network card", "VLAN"
	// Upper says that frames leave and arrive by another device.
	Upper bool
	// Note is what to know of AF_XDP on devices of this kind; may be empty.
	Note string
}

// kinds are the devices that are no cards, by what the kernel calls them
// (IFLA_INFO_KIND). One that is not here is shown with the kernel's name.
var kinds = map[string]Kind{
	"vlan":      {Name: "VLAN", Upper: true},
	"bond":      {Name: "bond"},
	"team":      {Name: "team"},
	"bridge":    {Name: "bridge"},
	"macvlan":   {Name: "macvlan", Upper: true},
	"macvtap":   {Name: "macvtap", Upper: true},
	"ipvlan":    {Name: "ipvlan", Upper: true},
	"tun":       {Name: "tun/tap"},
	"tuntap":    {Name: "tun/tap"}, // as package netlink has it
	"wireguard": {Name: "WireGuard tunnel"},
	"veth":      {Name: "veth pair, as of containers"},
}

// Kinds of devices that the kernel has no such name for.
var (
	kindCard     = Kind{Name: "network card"}
	kindVF       = Kind{Name: "virtual function of a network card (SR-IOV)"}
	kindLoopback = Kind{Name: "loopback"}
)

// kindOf says what a link is, and by which device of this host its frames leave if
// that is known. function is whether it is a virtual function.
func kindOf(l netlink.Link, function bool) (k Kind, lower string) {
	a := l.Attrs()
	switch k, known := kinds[l.Type()]; {
	case a.Flags&net.FlagLoopback != 0:
		return kindLoopback, ""
	case function:
		return kindVF, ""
	case l.Type() == "device" || l.Type() == "":
		return kindCard, ""
	case !known:
		return Kind{Name: l.Type()}, ""
	case !k.Upper || a.ParentIndex == 0:
		return k, ""
	default:
		if l, err := netlink.LinkByIndex(a.ParentIndex); err == nil && a.NetNsID < 0 { // else a number of another namespace
			lower = l.Attrs().Name
		}
		return k, lower
	}
}

// isVirtualFunction reports whether a device is the virtual function of a card. In
// another network namespace than that of /sys it may not be seen.
func isVirtualFunction(name string) bool {
	_, err := os.Stat(filepath.Join("/sys/class/net", name, "device/physfn"))
	return err == nil
}

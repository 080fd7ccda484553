package xdp

import (
	"fmt"
	"os"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/bpf"
)

// use is what carries frames over a device.
type use uint8

const (
	useBest    use = iota // AF_XDP in the best mode that its driver has
	useGeneric            // AF_XDP in generic mode
	useLower              // AF_XDP on the device below it, with a tag in the frames
	useKernel             // no AF_XDP: kernel UDP
)

// kind is what is known about a kind of devices.
type kind struct {
	name string // IFLA_INFO_KIND, or the driver as ethtool has it; "" for network cards
	use  use
	what string // for people
	why  string // in one sentence, how that is used
}

// kinds is the table of docs/NICS.md, section "Devices that are not cards".
func kinds() []kind {
	const (
		above = "its frames come in through another device, and in generic mode the kernel hands them to it before"
		noMAC = "its packets have no Ethernet header"
	)
	return []kind{
		{"veth", useBest, "a veth", "generic mode has the lower latency, driver mode works too"},
		{"vlan", useLower, "a VLAN", "the tag is put into and taken off the frames of the device below"},
		{"bond", useGeneric, "a bond", "in driver mode frames come in on the queues of the bonded devices, where no socket of the bond gets them"},
		{"team", useGeneric, "a team", above},
		{"bridge", useGeneric, "a bridge", above},
		{"macvlan", useGeneric, "a macvlan", above},
		{"macvtap", useGeneric, "a macvtap", above},
		{"ipvlan", useGeneric, "an ipvlan", above},
		{"vxlan", useGeneric, "a VXLAN tunnel", above},
		{"geneve", useGeneric, "a Geneve tunnel", above},
		{"gretap", useKernel, "a GRE tunnel", "frames of AF_XDP sockets do not get through it"},
		{"macsec", useGeneric, "a MACsec device", above},
		{"hsr", useGeneric, "an HSR device", above},
		{"netkit", useGeneric, "a netkit device", "it has no XDP in its driver"},
		{"net_failover", useGeneric, "a failover device", above},
		{"hv_netvsc", useGeneric, "a network card of Hyper-V", "in driver mode frames come in on its virtual function, where no socket of it gets them"},
		{"tun", useBest, "a tap", "its driver has XDP"},
		{"vrf", useKernel, "a VRF", "it is a routing table and no device that frames come in by: name the device in it"},
		{"dummy", useKernel, "a dummy", "what it sends goes nowhere"},
		{"ifb", useKernel, "an IFB", "it is for traffic control only"},
		{"wireguard", useKernel, "a WireGuard tunnel", noMAC},
		{"ipip", useKernel, "an IP tunnel", noMAC},
		{"sit", useKernel, "an IP tunnel", noMAC},
		{"gre", useKernel, "a GRE tunnel", noMAC},
		{"ip6tnl", useKernel, "an IP tunnel", noMAC},
		{"xfrm", useKernel, "an IPsec interface", noMAC},
		{"ipoib", useKernel, "IP over InfiniBand", noMAC},
	}
}

// kindOf returns what is known about the devices of some kind.
func kindOf(name string) kind {
	for _, k := range kinds() {
		if k.name == name {
			return k
		}
	}
	return kind{}
}

// kindOfLink returns what is known about a device, whose driver has a name.
func kindOfLink(l netlink.Link, driver string) kind {
	k := kindOf(l.Type())
	if k.name == "" {
		k = kindOf(driver)
	}
	ether := l.Attrs().EncapType == "ether" || l.Attrs().EncapType == "loopback" // which is for tests
	if !ether && k.use != useKernel {
		k = kind{k.name, useKernel, "no Ethernet device", "its packets have no Ethernet header"}
	}
	if v, ok := l.(*netlink.IPVlan); ok && v.Mode != netlink.IPVLAN_MODE_L2 {
		k.use, k.what, k.why = useKernel, "an ipvlan in mode l3", "it has no neighbours, and takes what is sent for packets to route"
	}
	return k
}

// suits refuses modes that cannot be used on the device.
func (d *device) suits(wish bpf.Mode) error {
	switch {
	case d.kind.use == useKernel:
		return &Error{Device: d.name, Reason: ErrUnsupported, Detail: d.kind.what + ": " + d.kind.why, Remedy: "use kernel UDP (--fabric udp)"}
	case d.kind.use == useGeneric && wish == bpf.Driver:
		return &Error{Device: d.name, Reason: ErrUnsupported, Detail: "driver mode on " + d.kind.what + ": " + d.kind.why, Remedy: "use generic mode (--fabric xdp:generic)"}
	case d.dropsRedirected() && wish == bpf.Driver:
		return &Error{Device: d.name, Reason: ErrUnsupported, Detail: "driver mode: " + d.driverText() + " drops the frames that a program redirects", Remedy: "use generic mode (--fabric xdp:generic)"}
	}
	return nil
}

// preferred returns the mode to try. On veth generic mode has the lower
// latency: there is no hardware queue to be closer to, and driver mode adds a
// hop through NAPI.
func (d *device) preferred(wish bpf.Mode) bpf.Mode {
	if wish == bpf.Auto && (d.driver == "veth" || d.kind.use == useGeneric || d.dropsRedirected()) {
		return bpf.Generic
	}
	return wish
}

// Note says in a few words how AF_XDP is used on a device in the network namespace
// of the calling thread that is no network card, and why, or "" where there is
// nothing to say. The error is why it cannot be used, an [*Error], or that of
// an unknown device.
func Note(name string) (string, error) {
	d, err := lookup(name)
	if err != nil {
		return "", err
	}
	return d.note(), d.suits(bpf.Auto)
}

func (d *device) note() string {
	switch d.kind.use {
	case useGeneric:
		return fmt.Sprintf("%s is %s, so AF_XDP is in generic mode: %s", d.name, d.kind.what, d.kind.why)
	case useLower:
		return fmt.Sprintf("%s is VLAN %d of %s, so AF_XDP is used there: %s", d.name, d.vlan, d.card, d.kind.why)
	case useKernel:
		return fmt.Sprintf("%s is %s: %s", d.name, d.kind.what, d.kind.why)
	}
	return ""
}

// below makes d, a VLAN, use the device below it where that is right, and else
// generic mode on itself.
func (d *device) below(v *netlink.Vlan) error {
	generic := func(why string) error {
		d.kind.use, d.kind.why = useGeneric, why
		return nil
	}
	switch {
	case v.VlanProtocol != netlink.VLAN_PROTOCOL_8021Q && v.VlanProtocol != netlink.VLAN_PROTOCOL_UNKNOWN:
		return generic("only tags of 802.1Q are put into frames, and its are of 802.1ad")
	case v.VlanId < 1 || v.VlanId > 4094:
		return generic("its tag says no VLAN, only a priority")
	case v.NetNsID >= 0:
		return generic("the device below it is in another network namespace")
	}
	l, err := netlink.LinkByIndex(v.ParentIndex)
	if err != nil {
		return fmt.Errorf("xdp: cannot look up the device below %s: %w", d.name, err)
	}
	lower := describe(l)
	switch {
	case l.Type() == "vlan":
		return generic("it is inside of another VLAN (QinQ), and one tag is put into frames, not two")
	case lower.kind.use != useBest:
		return generic("it is on " + lower.kind.what + ", where frames come in through other devices")
	case l.Attrs().MasterIndex != 0:
		return generic("the device below it belongs to a bond, a bridge or the like, which gets its frames")
	}
	up, carrier, mtu, k, name := d.up, d.carrier, d.mtu, d.kind, d.name
	*d = *lower
	d.name, d.kind, d.vlan = name, k, uint16(v.VlanId)
	d.up, d.carrier, d.mtu = up, carrier, min(mtu, lower.mtu)
	return nil
}

// stripsTags reports whether the device may take tags off before a program sees
// the frames (ethtool -K rxvlan).
func (d *device) stripsTags() bool {
	card, closeCard, err := openEthtool(d.card)
	if err != nil {
		return true
	}
	defer closeCard()
	flags, err := card.flags()
	return err != nil || flags&flagRxVLAN != 0
}

// flagRxVLAN is ETH_FLAG_RXVLAN of linux/ethtool.h.
const flagRxVLAN = 1 << 8

// device says what kind of device it is, and how it is used.
func (r *Report) device(dev *device) {
	f := Finding{Name: "device", OK: dev.kind.use == useBest || dev.kind.use == useLower, Needed: dev.kind.use == useKernel, Detail: dev.note()}
	switch {
	case dev.kind.use == useKernel:
		f.Remedy = "ranks use kernel UDP there; name another device (--device) for AF_XDP"
	case dev.kind.use == useGeneric:
		f.Remedy = "name the network card below it, if ranks can have addresses there, for driver mode"
	case dev.kind.use == useLower && dev.stripsTags():
		f.Detail += fmt.Sprintf("; %s takes tags off, so datagrams of its other VLANs to our address and ports would be taken for ours (ethtool -K %s rxvlan off)", dev.card, dev.card)
	case f.Detail != "":
	case isVF(dev.card):
		f.Detail = "a virtual function of a network card (SR-IOV): used as a card, as far as its driver has XDP"
	case dev.kind.what != "":
		f.Detail = dev.kind.what + ": " + dev.kind.why
	default:
		f.Detail = "a network card"
	}
	r.add(f)
}

// kindName says for people what the device is, in few words.
func (d *device) kindName() string {
	switch {
	case d.kind.what != "":
		return strings.TrimPrefix(strings.TrimPrefix(d.kind.what, "a "), "an ")
	case isVF(d.name):
		return "virtual function of a network card"
	}
	return "network card"
}

// lower returns the device that is used in d's stead, or "".
func (d *device) lower() string {
	if d.card == d.name {
		return ""
	}
	return d.card
}

// isVF reports whether a device is a virtual function of a network card (SR-IOV).
func isVF(name string) bool {
	if strings.ContainsRune(name, '/') {
		return false
	}
	_, err := os.Stat("/sys/class/net/" + name + "/device/physfn")
	return err == nil
}

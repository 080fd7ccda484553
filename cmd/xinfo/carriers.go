package main

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// carrier is one way to use a port: a value of --fabric, and which types of
// queue pairs it carries there.
type carrier struct {
	Fabric  string   `json:"fabric"`
	Offered bool     `json:"offered"`
	QPTypes []string `json:"qp_types"` // that it carries where it is offered
	Detail  string   `json:"detail,omitempty"`
}

// noAddress is why datagrams are not offered.
const noAddress = "needs an address that is not of its link only"

// carriersOf returns what a port offers. Only xdp depends on the driver; the
// others are the kernel's and need an address.
func carriersOf(r xdp.Report, n nic) []carrier {
	ip := slices.ContainsFunc(n.addrs, func(p netip.Prefix) bool { return !p.Addr().Is6() || !p.Addr().IsLinkLocalUnicast() })
	why := func(ok bool, missing string) string {
		if ok {
			return ""
		}
		return missing
	}
	all := []carrier{
		{"xdp", r.Usable() && ip, []string{"RC", "RD", "UD"}, xdpDetail(r, ip)},
		{"udp", ip, []string{"RD", "UD"}, why(ip, noAddress)},
		{"tcp", len(n.addrs) > 0, []string{"RC"}, why(len(n.addrs) > 0, "needs an address")},
		{"shm", ip, []string{"RD", "UD"}, why(ip, noAddress)},
	}
	return slices.DeleteFunc(all, func(c carrier) bool { return !slices.Contains(device.Fabrics(), c.Fabric) })
}

func xdpDetail(r xdp.Report, ip bool) string {
	for _, f := range r.Findings {
		if f.Needed && !f.OK {
			return f.Name + ": " + f.Detail
		}
	}
	if !ip {
		return noAddress
	}
	detail := strings.Join(r.Modes, ", ") + " mode"
	switch r.ZeroCopy {
	case xdp.ZeroCopyWorks:
		detail += ", zero-copy"
	case xdp.ZeroCopyNotTried:
		detail += ", zero-copy not tried"
	}
	if r.MultiBuffer {
		detail += ", multi-buffer"
	}
	return detail
}

// queryDevice opens a device for a moment to ask what queue pairs, memory and
// completion queues it can have; these limits are the same for all carriers.
// It takes kernel sockets, which change nothing on the device. ok is false when
// the device has no address that one could be bound to.
func queryDevice(name string, n nic) (attr verbs.DeviceAttr, ok bool, err error) {
	spec := device.Spec{Fabric: "udp", RC: true, Device: name}
	switch {
	case len(n.addrs) == 0:
		return attr, false, nil
	case !slices.ContainsFunc(n.addrs, func(p netip.Prefix) bool { return p.Addr().Is4() }):
		spec = device.Spec{Fabric: "tcp", Addr: n.addrs[0].Addr()}
	}
	ctx, err := device.Open(spec)
	if err != nil {
		return attr, false, err
	}
	attr = ctx.Attr()
	return attr, true, ctx.Close()
}

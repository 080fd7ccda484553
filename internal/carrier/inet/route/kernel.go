package route

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// way is what the kernel's routing table says about a destination.
type way struct {
	via    netip.Addr // router, or the destination itself
	source netip.Addr
	mtu    int // bytes, as configured for the route; 0 means the link's
}

// ask asks the kernel for the route to dst through the link.
func (t *Table) ask(dst netip.Addr) (way, error) {
	fail := func(reason, kernel error) (way, error) {
		return way{}, &Error{Dst: dst, Link: t.config.Link, Reason: reason, Kernel: kernel}
	}
	switch {
	case !dst.IsValid() || dst.IsMulticast():
		return fail(ErrNoRoute, errors.New("not an address of a host"))
	case dst.Is6() && dst.IsLinkLocalUnicast():
		return fail(ErrNoRoute, inet.ErrLinkLocal)
	}
	ip := dst.AsSlice()
	anywhere, err := t.kernel.RouteGetWithOptions(ip, nil)
	if err == nil && len(anywhere) > 0 && anywhere[0].Type == unix.RTN_LOCAL {
		return fail(ErrLocal, nil)
	}
	// Given a device, the kernel assumes that a destination without route is
	// on its link. The entry of the table itself tells whether there is one.
	configured, err := t.kernel.RouteGetWithOptions(ip, &netlink.RouteGetOptions{OifIndex: t.index, FIBMatch: true})
	if err != nil {
		return fail(ErrNoRoute, err)
	}
	routes, err := t.kernel.RouteGetWithOptions(ip, &netlink.RouteGetOptions{OifIndex: t.index})
	if err != nil {
		return fail(ErrNoRoute, err)
	}
	if len(routes) == 0 || routes[0].Via != nil || routes[0].Type != unix.RTN_UNICAST {
		return fail(ErrNoRoute, errors.New("not a unicast route to a router or host of the same family"))
	}
	w := way{via: dst}
	// The MTU of the entry is the configured one. That of the answer without
	// FIBMatch may be what an ICMP message has said, which any host can send.
	if len(configured) > 0 {
		w.mtu = configured[0].MTU
	}
	if gw, ok := netip.AddrFromSlice(routes[0].Gw); ok {
		w.via = gw.Unmap()
	}
	if src, ok := netip.AddrFromSlice(routes[0].Src); ok {
		w.source = src.Unmap()
	}
	return w, nil
}

// askLink asks the kernel what the device is like. A device that was removed
// is down.
func (t *Table) askLink() (Link, error) {
	l := Link{Name: t.config.Link, Index: t.index}
	link, err := t.kernel.LinkByIndex(t.index)
	if errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV) {
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("device %q: %w", t.config.Link, err)
	}
	a := link.Attrs()
	l.MTU = a.MTU
	l.Up = a.RawFlags&unix.IFF_UP != 0 && a.RawFlags&unix.IFF_LOWER_UP != 0
	if a.EncapType == "ether" && len(a.HardwareAddr) == len(l.MAC) {
		l.MAC = inet.MAC(a.HardwareAddr)
	}
	addrs, err := t.kernel.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return l, fmt.Errorf("addresses of device %q: %w", t.config.Link, err)
	}
	l.Addr, l.Addr6 = choose(addrs)
	return l, nil
}

// Addresses returns the addresses that endpoints on a device use: the first of IPv4,
// and of IPv6 the first that lasts and is not of the link only. The zero Addr stands
// for none.
func Addresses(device string) (v4, v6 netip.Addr, err error) {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return v4, v6, fmt.Errorf("device %q: %w", device, err)
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return v4, v6, fmt.Errorf("addresses of device %q: %w", device, err)
	}
	v4, v6 = choose(addrs)
	return v4, v6, nil
}

// choose picks the addresses that Addresses tells of.
func choose(addrs []netlink.Addr) (v4, v6 netip.Addr) {
	for _, a := range addrs {
		addr, ok := netip.AddrFromSlice(a.IP)
		addr = addr.Unmap()
		switch {
		case ok && addr.Is4() && !v4.IsValid():
			v4 = addr
		case ok && addr.Is6() && !addr.IsLinkLocalUnicast() && !v6.IsValid() && a.Flags&passing == 0:
			v6 = addr
		}
	}
	return v4, v6
}

// passing are the flags of an IPv6 address that peers should not be told: it is not
// checked for being unique, turned out not to be, or will be taken away soon.
const passing = unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED | unix.IFA_F_TEMPORARY | unix.IFA_F_DEPRECATED

// askNeighbours asks the kernel for all neighbours on the link.
func (t *Table) askNeighbours() ([]netlink.Neigh, error) {
	list, err := t.kernel.NeighList(t.index, netlink.FAMILY_ALL)
	for errors.Is(err, netlink.ErrDumpInterrupted) { // the table changed meanwhile
		list, err = t.kernel.NeighList(t.index, netlink.FAMILY_ALL)
	}
	if err != nil {
		return nil, fmt.Errorf("neighbours on device %q: %w", t.config.Link, err)
	}
	return list, nil
}

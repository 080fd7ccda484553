package route

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/inet"
)

// way is what the kernel's routing table says about a destination.
type way struct {
	via    netip.Addr // router, or the destination itself
	source netip.Addr
	mtu    int // bytes; 0 means the link's
}

// ask asks the kernel for the route to dst through the link.
func (t *Table) ask(dst netip.Addr) (way, error) {
	fail := func(reason, kernel error) (way, error) {
		return way{}, &Error{Dst: dst, Link: t.config.Link, Reason: reason, Kernel: kernel}
	}
	if !dst.Is4() {
		return fail(ErrNoRoute, errors.New("not an IPv4 address"))
	}
	ip := dst.AsSlice()
	anywhere, err := t.kernel.RouteGetWithOptions(ip, nil)
	if err == nil && len(anywhere) > 0 && anywhere[0].Type == unix.RTN_LOCAL {
		return fail(ErrLocal, nil)
	}
	// Given a device, the kernel assumes that a destination without route is
	// on its link. The entry of the table itself tells whether there is one.
	_, err = t.kernel.RouteGetWithOptions(ip, &netlink.RouteGetOptions{OifIndex: t.index, FIBMatch: true})
	if err != nil {
		return fail(ErrNoRoute, err)
	}
	routes, err := t.kernel.RouteGetWithOptions(ip, &netlink.RouteGetOptions{OifIndex: t.index})
	if err != nil {
		return fail(ErrNoRoute, err)
	}
	if len(routes) == 0 || routes[0].Via != nil || routes[0].Type != unix.RTN_UNICAST {
		return fail(ErrNoRoute, errors.New("not a unicast route to an IPv4 router or host"))
	}
	w := way{via: dst, mtu: routes[0].MTU}
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
	addrs, err := t.kernel.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return l, fmt.Errorf("addresses of device %q: %w", t.config.Link, err)
	}
	if len(addrs) > 0 {
		if addr, ok := netip.AddrFromSlice(addrs[0].IP); ok {
			l.Addr = addr.Unmap()
		}
	}
	return l, nil
}

// askNeighbours asks the kernel for all neighbours on the link.
func (t *Table) askNeighbours() ([]netlink.Neigh, error) {
	list, err := t.kernel.NeighList(t.index, netlink.FAMILY_V4)
	for errors.Is(err, netlink.ErrDumpInterrupted) { // the table changed meanwhile
		list, err = t.kernel.NeighList(t.index, netlink.FAMILY_V4)
	}
	if err != nil {
		return nil, fmt.Errorf("neighbours on device %q: %w", t.config.Link, err)
	}
	return list, nil
}

package route

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/inet"
)

var _ inet.Membership = (*Table)(nil)

// Join makes the kernel a member of a group on the link: it tells routers and
// switches (IGMP, MLD), and the device to let the group's frames in, until the last
// of as many calls of Leave, or Close.
func (t *Table) Join(group netip.Addr) error {
	t.routing.Lock()
	defer t.routing.Unlock()
	if t.groups[group] == 0 {
		if err := t.membership(true, group); err != nil {
			return err
		}
	}
	t.groups[group]++
	return nil
}

// Leave undoes one Join.
func (t *Table) Leave(group netip.Addr) error {
	t.routing.Lock()
	defer t.routing.Unlock()
	if t.groups[group] == 0 {
		return fmt.Errorf("route: %s was not joined on %s", group, t.config.Link)
	}
	if t.groups[group]--; t.groups[group] > 0 {
		return nil
	}
	delete(t.groups, group)
	if t.prober < 0 {
		return nil // closing the socket has left all groups
	}
	return t.membership(false, group)
}

// membership changes the membership of the socket that also probes neighbours:
// the kernel is a member for as long as a socket of its is. Nothing is ever
// received there, since it is bound to a port that no peer has been told. t.routing is
// held.
func (t *Table) membership(join bool, group netip.Addr) error {
	if t.prober < 0 {
		return errClosed
	}
	var err error
	option := unix.IP_ADD_MEMBERSHIP
	switch {
	case !group.IsMulticast():
		return fmt.Errorf("route: %s is no group: want an address in 224.0.0.0/4 or ff00::/8", group)
	case group.Is4():
		if !join {
			option = unix.IP_DROP_MEMBERSHIP
		}
		err = unix.SetsockoptIPMreqn(t.prober, unix.IPPROTO_IP, option, &unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(t.index)})
	default:
		if option = unix.IPV6_JOIN_GROUP; !join {
			option = unix.IPV6_LEAVE_GROUP
		}
		err = unix.SetsockoptIPv6Mreq(t.prober6, unix.IPPROTO_IPV6, option, &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(t.index)})
	}
	switch {
	case errors.Is(err, unix.ENOBUFS):
		return fmt.Errorf("route: group %s on %s: too many groups: raise sysctl net.ipv4.igmp_max_memberships: %w", group, t.config.Link, err)
	case err != nil:
		return fmt.Errorf("route: group %s on %s: %w", group, t.config.Link, err)
	}
	return nil
}

package verbs

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// maxGroups is how many multicast groups a queue pair may be attached to.
const maxGroups = 64

// AttachMcast makes a UD queue pair receive what is sent to a multicast group, of the
// family of this endpoint's address, and the port of this endpoint
// (ibv_attach_mcast(3)). Datagrams name the last four bytes of the group, so of groups
// of IPv6 that have the same ones a context can be in one. Its errors wrap ErrInvalid, or
// that of the carrier.
func (q *QP) AttachMcast(group netip.Addr) error {
	carrier, ok := q.ctx.cfg.Datagram.(fabric.Multicaster)
	group = group.Unmap()
	switch {
	case q.typ != UD:
		return fmt.Errorf("%w: only queue pairs of type UD receive multicast", ErrInvalid)
	case !ok:
		return fmt.Errorf("%w: %s carries no multicast", ErrInvalid, q.ctx.Attr().Carrier)
	case !group.IsMulticast() || group.Is4() != q.ctx.Addr().Addr().Is4():
		return fmt.Errorf("%w: %v is not a multicast group (224.0.0.0/4, or ff00::/8) of the family of %v", ErrInvalid, group, q.ctx.Addr().Addr())
	case q.ctx.nameTaken(group):
		return fmt.Errorf("%w: this context is in another group that ends like %v", ErrInvalid, group)
	case slices.Contains(q.ud.groups, group):
		return nil
	case len(q.ud.groups) == maxGroups:
		return fmt.Errorf("%w: the queue pair is attached to %d groups already", ErrInvalid, maxGroups)
	}
	if !q.ctx.inGroup(group) {
		if err := carrier.Join(group); err != nil {
			return fmt.Errorf("verbs: joining %v: %w", group, err)
		}
	}
	q.ud.groups = append(q.ud.groups, group)
	return nil
}

// DetachMcast ends that (ibv_detach_mcast(3)). A group that the queue pair is not attached
// to is ErrInvalid.
func (q *QP) DetachMcast(group netip.Addr) error {
	i := slices.Index(q.ud.groups, group.Unmap())
	if i < 0 {
		return fmt.Errorf("%w: the queue pair is not attached to %v", ErrInvalid, group)
	}
	q.ud.groups = slices.Delete(q.ud.groups, i, i+1)
	if q.ctx.inGroup(group.Unmap()) {
		return nil
	}
	return q.ctx.cfg.Datagram.(fabric.Multicaster).Leave(group.Unmap())
}

// inGroup reports whether any queue pair is attached to a group.
func (c *datagrams) inGroup(group netip.Addr) bool {
	return slices.ContainsFunc(c.uds, func(q *udQP) bool { return q != nil && slices.Contains(q.groups, group) })
}

// attached reports whether the queue pair wants what is sent to a group.
func (q *udQP) attached(group uint32) bool {
	return slices.ContainsFunc(q.groups, func(g netip.Addr) bool { return group == nameOf(g) })
}

// nameOf returns how datagrams name a group.
func nameOf(group netip.Addr) uint32 { return RemoteOf(netip.AddrPortFrom(group, 0)).Low() }

// nameTaken reports whether a queue pair is attached to another group with the name
// of this one.
func (c *datagrams) nameTaken(group netip.Addr) bool {
	return slices.ContainsFunc(c.uds, func(q *udQP) bool {
		return q != nil && slices.ContainsFunc(q.groups, func(g netip.Addr) bool { return g != group && nameOf(g) == nameOf(group) })
	})
}

// leaveAll detaches from all groups.
func (q *udQP) leaveAll() (err error) {
	for len(q.groups) > 0 && err == nil {
		err = q.DetachMcast(q.groups[0])
	}
	return err
}

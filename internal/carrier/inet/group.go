package inet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Membership is what a [Resolver] is also that can have the network deliver
// what is sent to a group: it makes the kernel tell switches (IGMP, MLD) and the
// device. Its methods may be called by any goroutine.
type Membership interface {
	// Join asks for a group's datagrams. Every Join takes one Leave.
	Join(group netip.Addr) error
	Leave(group netip.Addr) error
}

// GroupMAC returns the Ethernet address of a multicast group: the low 23 bits of
// one of IPv4 behind 01:00:5e (RFC 1112, section 6.4), the last four bytes of one
// of IPv6 behind 33:33 (RFC 2464, section 7).
func GroupMAC(group netip.Addr) MAC {
	if group.Is4() {
		b := group.As4()
		return MAC{0x01, 0x00, 0x5e, b[1] & 0x7f, b[2], b[3]}
	}
	b := group.As16()
	return MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// groupTTL keeps datagrams to groups on the link, those of IPv6 too whatever scope
// their address has: the kernel is asked for membership, and it asks no router
// further away (RFC 1112, section 6.1).
const groupTTL = 1

// group is a group that the endpoint has joined, as its address (see wordsOf) and
// its Ethernet address lie in a header, read in little-endian order.
type group struct {
	addr [2]uint64
	mac  uint64 // 6 bytes
	name netip.Addr
}

func newGroup(a netip.Addr) group {
	mac := GroupMAC(a)
	return group{wordsOf(a), uint64(binary.LittleEndian.Uint32(mac[:])) | uint64(mac[4])<<32 | uint64(mac[5])<<40, a}
}

var _ fabric.Multicaster = (*Endpoint)(nil)

// ErrMembership is wrapped by the errors of Join and Leave for a group that
// was joined already, or is not.
var ErrMembership = errors.New("wrong membership")

// Join makes the endpoint receive datagrams to a group and its port. When the
// resolver is a [Membership] it is asked to have them delivered; without one
// the network is taken to deliver all groups, as a simulated one does.
func (e *Endpoint) Join(to netip.Addr) error {
	to = to.Unmap()
	if to.Is6() != e.v6 || !to.IsMulticast() || to.Zone() != "" {
		return fmt.Errorf("inet: cannot join %s: a group is an address in %s", to, e.groupsOf())
	}
	g := newGroup(to)
	if slices.Contains(e.groups, g) {
		return fmt.Errorf("inet: %w: %s was joined before", ErrMembership, to)
	}
	if m, ok := e.resolver.(Membership); ok {
		if err := m.Join(to); err != nil {
			return fmt.Errorf("inet: %w", err)
		}
	}
	e.groups = append(e.groups, g)
	return nil
}

// Leave undoes Join.
func (e *Endpoint) Leave(from netip.Addr) error {
	from = from.Unmap()
	i := slices.IndexFunc(e.groups, func(g group) bool { return g.name == from })
	if i < 0 {
		return fmt.Errorf("inet: %w: %s was not joined", ErrMembership, from)
	}
	return e.leave(i)
}

// leave leaves e.groups[i].
func (e *Endpoint) leave(i int) error {
	addr := e.groups[i].name
	e.groups = slices.Delete(e.groups, i, i+1)
	if m, ok := e.resolver.(Membership); ok {
		if err := m.Leave(addr); err != nil {
			return fmt.Errorf("inet: %w", err)
		}
	}
	return nil
}

// leaveAll leaves all groups.
func (e *Endpoint) leaveAll() error {
	var errs []error
	for len(e.groups) > 0 {
		errs = append(errs, e.leave(len(e.groups)-1))
	}
	return errors.Join(errs...)
}

// groupsOf returns where the groups of the endpoint's family are.
func (e *Endpoint) groupsOf() string {
	if e.v6 {
		return "ff00::/8"
	}
	return "224.0.0.0/4"
}

// member reports whether a frame with headers h, whose IP header is whole, to dst
// (see wordsOf), is for a group that was joined: by both of its addresses, since
// many groups share an Ethernet address and any host may write any IP address. What
// this host sent itself and a switch has sent back is not.
func (e *Endpoint) member(h []byte, dst [2]uint64) bool {
	mac := binary.LittleEndian.Uint64(h[ethDst:]) & (1<<48 - 1)
	ip := h[EthernetLen:]
	for i := range e.groups {
		g := &e.groups[i]
		if g.addr != dst || g.mac != mac {
			continue
		}
		if e.v6 {
			return [2]uint64{binary.LittleEndian.Uint64(ip[ip6Src:]), binary.LittleEndian.Uint64(ip[ip6Src+8:])} != e.local6
		}
		return binary.LittleEndian.Uint32(ip[ipSrc:]) != e.localAddr
	}
	return false
}

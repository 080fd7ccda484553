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

var _ fabric.Multicaster = (*Datagram)(nil)

// ErrMembership is wrapped by the errors of Join and Leave for a group that
// was joined already, or is not.
var ErrMembership = errors.New("wrong membership")

// groups are those that an endpoint has joined.
type groups struct {
	joined     []group
	membership Membership // nil: the network delivers all groups
	v6         bool
	local      [2]uint64 // the address of this host, see wordsOf
}

func newGroups(r Resolver, local netip.Addr) groups {
	m, _ := r.(Membership)
	return groups{membership: m, v6: local.Is6(), local: wordsOf(local)}
}

// Join makes the endpoint receive datagrams to a group and its port. When the
// resolver is a [Membership] it is asked to have them delivered; without one
// the network is taken to deliver all groups, as a simulated one does.
func (e *Datagram) Join(to netip.Addr) error { return e.groups.join(to.Unmap()) }

// Leave undoes Join.
func (e *Datagram) Leave(from netip.Addr) error {
	from = from.Unmap()
	i := slices.IndexFunc(e.groups.joined, func(g group) bool { return g.name == from })
	if i < 0 {
		return fmt.Errorf("inet: %w: %s was not joined", ErrMembership, from)
	}
	return e.groups.leave(i)
}

func (s *groups) join(to netip.Addr) error {
	if to.Is6() != s.v6 || !to.IsMulticast() || to.Zone() != "" {
		where := "224.0.0.0/4"
		if s.v6 {
			where = "ff00::/8"
		}
		return fmt.Errorf("inet: cannot join %s: a group is an address in %s", to, where)
	}
	g := newGroup(to)
	if slices.Contains(s.joined, g) {
		return fmt.Errorf("inet: %w: %s was joined before", ErrMembership, to)
	}
	if s.membership != nil {
		if err := s.membership.Join(to); err != nil {
			return fmt.Errorf("inet: %w", err)
		}
	}
	s.joined = append(s.joined, g)
	return nil
}

// leave leaves s.joined[i].
func (s *groups) leave(i int) error {
	addr := s.joined[i].name
	s.joined = slices.Delete(s.joined, i, i+1)
	if s.membership != nil {
		if err := s.membership.Leave(addr); err != nil {
			return fmt.Errorf("inet: %w", err)
		}
	}
	return nil
}

func (s *groups) leaveAll() error {
	var errs []error
	for len(s.joined) > 0 {
		errs = append(errs, s.leave(len(s.joined)-1))
	}
	return errors.Join(errs...)
}

// has reports whether a frame with headers h, whose IP header is whole, to dst
// (see wordsOf), is for a group that was joined: by both of its addresses, since
// many groups share an Ethernet address and any host may write any IP address. What
// this host sent itself and a switch has sent back is not.
func (s *groups) has(h []byte, dst [2]uint64) bool {
	mac := binary.LittleEndian.Uint64(h[ethDst:]) & (1<<48 - 1)
	ip := h[EthernetLen:]
	for i := range s.joined {
		g := &s.joined[i]
		if g.addr != dst || g.mac != mac {
			continue
		}
		if s.v6 {
			return [2]uint64{binary.LittleEndian.Uint64(ip[ip6Src:]), binary.LittleEndian.Uint64(ip[ip6Src+8:])} != s.local
		}
		return uint64(binary.LittleEndian.Uint32(ip[ipSrc:])) != s.local[0]
	}
	return false
}

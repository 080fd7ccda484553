package inet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/xwarp/xwarp/internal/fabric"
)

// Membership is what a [Resolver] is also that can have the network deliver
// what is sent to a group: it makes the kernel tell switches (IGMP) and the
// device. Its methods may be called by any goroutine.
type Membership interface {
	// Join asks for a group's datagrams. Every Join takes one Leave.
	Join(group netip.Addr) error
	Leave(group netip.Addr) error
}

// GroupMAC returns the Ethernet address of an IPv4 multicast group: the low 23
// bits of the group behind 01:00:5e (RFC 1112, section 6.4).
func GroupMAC(group netip.Addr) MAC {
	b := group.As4()
	return MAC{0x01, 0x00, 0x5e, b[1] & 0x7f, b[2], b[3]}
}

// groupTTL keeps datagrams to groups on the link: who is asked for membership
// is the kernel, and it asks no router further away (RFC 1112, section 6.1).
const groupTTL = 1

// group is a group that the endpoint has joined, as its address and its
// Ethernet address lie in a header, read in little-endian order.
type group struct {
	addr uint32
	mac  uint64 // 6 bytes
}

func newGroup(a netip.Addr) group {
	mac := GroupMAC(a)
	return group{addr: littleEndian(a.As4()), mac: uint64(littleEndian([4]byte(mac[:]))) | uint64(mac[4])<<32 | uint64(mac[5])<<40}
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
	if !to.Is4() || !to.IsMulticast() {
		return fmt.Errorf("inet: cannot join %s: a group is an address in 224.0.0.0/4", to)
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
	i := -1
	if from.Is4() {
		i = slices.Index(e.groups, newGroup(from))
	}
	if i < 0 {
		return fmt.Errorf("inet: %w: %s was not joined", ErrMembership, from)
	}
	return e.leave(i)
}

// leave leaves e.groups[i].
func (e *Endpoint) leave(i int) error {
	addr := e.groups[i].address()
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

func (g group) address() netip.Addr {
	return netip.AddrFrom4([4]byte{byte(g.addr), byte(g.addr >> 8), byte(g.addr >> 16), byte(g.addr >> 24)})
}

// member reports whether a frame with headers h, whose IPv4 header is whole,
// is for a group that was joined: by both of its addresses, since 32 groups
// share an Ethernet address and anybody may write any IP address. What this
// host sent itself and a switch has sent back is not.
func (e *Endpoint) member(h []byte) bool {
	ip := IPv4(h[EthernetLen:])
	g := group{
		addr: binary.LittleEndian.Uint32(ip[ipDst:]),
		mac:  binary.LittleEndian.Uint64(h[ethDst:]) & (1<<48 - 1),
	}
	return slices.Contains(e.groups, g) && binary.LittleEndian.Uint32(ip[ipSrc:]) != e.localAddr
}

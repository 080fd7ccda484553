package fabric

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrNoMulticast is wrapped by the errors of a carrier that cannot do
// multicast after all: a decorator around one that cannot.
var ErrNoMulticast = errors.New("this carrier has no multicast")

// Multicaster is what a [Datagram] carrier also is when it can receive what is
// sent to a multicast group. To send to one takes no more than
// Datagram.Resolve of the group's address and a port.
//
// A datagram to group:port reaches every endpoint with that UDP port that has
// joined the group on another host of the same link (it passes no router), at
// most once and in no order, and never the endpoint that sent it. Whether it
// reaches others on the sender's own host is up to the carrier: the kernel's
// sockets hear each other, and a frame that has left a NIC does not come back.
type Multicaster interface {
	// Join makes the carrier receive datagrams to a group (224.0.0.0/4, or
	// ff00::/8 on a carrier of IPv6) and to its own port. It is a control call: it may allocate and ask the
	// kernel. Joining twice is an error.
	Join(group netip.Addr) error
	// Leave undoes Join. Datagrams that were received before may still be
	// handed out. Close leaves all groups.
	Leave(group netip.Addr) error
}

// Join makes a carrier that may be no [Multicaster] join a group, for decorators. Its
// error wraps ErrNoMulticast if it is none.
func Join(d Datagram, group netip.Addr) error {
	m, ok := d.(Multicaster)
	if !ok {
		return fmt.Errorf("%s: %w", d.Caps().Carrier, ErrNoMulticast)
	}
	return m.Join(group)
}

// Leave undoes that.
func Leave(d Datagram, group netip.Addr) error {
	m, ok := d.(Multicaster)
	if !ok {
		return fmt.Errorf("%s: %w", d.Caps().Carrier, ErrNoMulticast)
	}
	return m.Leave(group)
}

package kudp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// group is a multicast group that was joined. It has a socket of its own: one
// that is bound to an address of the host gets no datagrams to groups, and one
// bound to no address gets those of other hosts too.
type group struct {
	addr netip.Addr
	fd   int
}

var _ fabric.Multicaster = (*Socket)(nil)

// ErrMembership is wrapped by the errors of Join and Leave for a group that
// was joined already, or is not.
var ErrMembership = errors.New("wrong membership")

// Join makes the socket receive datagrams to a group and its port, on the
// device that has its address. Like Open it acts in the network namespace of
// the calling thread, which must be the one of the socket.
func (s *Socket) Join(to netip.Addr) error {
	to = to.Unmap()
	if to.Is4() != s.local.Addr().Is4() || !to.IsMulticast() || to.Zone() != "" {
		return fmt.Errorf("kudp: cannot join %s: a group is an address in %s", to, s.family.groups)
	}
	if s.indexOf(to) >= 0 {
		return fmt.Errorf("kudp: %w: %s was joined before", ErrMembership, to)
	}
	g := group{addr: to, fd: -1}
	if err := s.join(&g); err != nil {
		if g.fd >= 0 {
			unix.Close(g.fd)
		}
		return err
	}
	s.groups = append(s.groups, g)
	return nil
}

// join makes the socket of g.
func (s *Socket) join(g *group) (err error) {
	if g.fd, err = unix.Socket(s.family.domain, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("kudp: %w", os.NewSyscallError("socket", err))
	}
	// Others on this host may have joined the group and use the same port.
	if err := unix.SetsockoptInt(g.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("kudp: %w", os.NewSyscallError("SO_REUSEADDR", err))
	}
	// Without this, what others on this host have joined on other devices
	// would come here as well.
	if err := unix.SetsockoptInt(g.fd, s.family.level, s.family.multicastAll, 0); err != nil {
		return fmt.Errorf("kudp: %w", os.NewSyscallError("IP_MULTICAST_ALL", err))
	}
	if err := s.setBuffers(g.fd); err != nil {
		return err
	}
	if s.rx.gro { // whose buffers have the size that it takes
		if err := unix.SetsockoptInt(g.fd, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
			return fmt.Errorf("kudp: %w", os.NewSyscallError("UDP_GRO", err))
		}
	}
	local := netip.AddrPortFrom(g.addr, s.local.Port())
	if err := unix.Bind(g.fd, sockaddr(local)); err != nil {
		return bindError(local, err)
	}
	switch err = s.member(g); {
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("kudp: group %s: no device has %s here: join where the socket was opened, in its network namespace: %w", g.addr, s.local.Addr(), err)
	case err != nil:
		return fmt.Errorf("kudp: group %s: %w", g.addr, os.NewSyscallError("setsockopt", err))
	}
	if err := s.ready.Add(g.fd); err != nil {
		return fmt.Errorf("kudp: %w", err)
	}
	return nil
}

// member makes the kernel a member of g on the device that has the socket's address.
func (s *Socket) member(g *group) error {
	if g.addr.Is4() {
		return unix.SetsockoptIPMreqn(g.fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: g.addr.As4(), Address: s.local.Addr().As4()})
	}
	return unix.SetsockoptIPv6Mreq(g.fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: g.addr.As16(), Interface: uint32(s.device)})
}

// Leave undoes Join.
func (s *Socket) Leave(from netip.Addr) error {
	i := s.indexOf(from.Unmap())
	if i < 0 {
		return fmt.Errorf("kudp: %w: %s was not joined", ErrMembership, from)
	}
	g := s.groups[i]
	s.groups = slices.Delete(s.groups, i, i+1)
	s.turn = 0
	s.stats.RxDropped += uint64(getMemInfo(g.fd)[memInfoDrops])
	return os.NewSyscallError("close", unix.Close(g.fd)) // which leaves the group and the epoll instance
}

func (s *Socket) indexOf(addr netip.Addr) int {
	return slices.IndexFunc(s.groups, func(g group) bool { return g.addr == addr })
}

// toGroups sets up the socket to send to groups: on the device that has its
// address, over no router, and also to others on this host.
func (s *Socket) toGroups() error {
	f := s.family
	var err error
	if f.domain == unix.AF_INET {
		err = unix.SetsockoptInet4Addr(s.fd, f.level, unix.IP_MULTICAST_IF, s.local.Addr().As4())
	} else {
		err = unix.SetsockoptInt(s.fd, f.level, unix.IPV6_MULTICAST_IF, s.device)
	}
	if err != nil {
		return fmt.Errorf("kudp: %w", os.NewSyscallError("MULTICAST_IF", err))
	}
	if err := unix.SetsockoptInt(s.fd, f.level, f.multicastTTL, 1); err != nil {
		return fmt.Errorf("kudp: %w", os.NewSyscallError("MULTICAST_TTL", err))
	}
	if err := unix.SetsockoptInt(s.fd, f.level, f.multicastLoop, 1); err != nil {
		return fmt.Errorf("kudp: %w", os.NewSyscallError("MULTICAST_LOOP", err))
	}
	return nil
}

// poll receives into msgs from the socket whose turn it is, or the next one
// that has something: each is asked first in turn, so that none waits for
// another to fall silent. self is the address to ignore: the sender of what
// comes back from a group.
func (s *Socket) poll(msgs []message) (got int, self fabric.Remote) {
	if len(s.groups) == 0 {
		// An error is either "nothing there" or one that a datagram sent before
		// has caused, which is reported once and means nothing to this call.
		got = recvmmsg(s.fd, msgs)
		return got, self
	}
	sources := 1 + len(s.groups)
	for range sources {
		fd := s.fd
		if self = (fabric.Remote{}); s.turn > 0 {
			fd, self = s.groups[s.turn-1].fd, fabric.RemoteOf(s.local)
		}
		s.turn = (s.turn + 1) % sources
		if got = recvmmsg(fd, msgs); got > 0 {
			return got, self
		}
	}
	return 0, self
}

package ktcp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Dial begins to connect.
func (s *Streams) Dial(to, from netip.AddrPort) (fabric.Stream, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	if !to.Addr().IsValid() || to.Addr().IsUnspecified() || to.Addr().IsMulticast() || to.Port() == 0 {
		return nil, fmt.Errorf("ktcp: destination %s: want the address and port of one host", to)
	}
	fd, err := s.socket(to.Addr())
	if err != nil {
		return nil, err
	}
	c := &Stream{on: s, fd: fd, place: -1, remote: to, armed: true}
	if err := c.dial(from); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return c, nil
}

func (c *Stream) dial(from netip.AddrPort) error {
	if err := c.bind(from); err != nil {
		return err
	}
	sa, err := sockaddr(c.remote)
	if err != nil {
		return err
	}
	if err := unix.Connect(c.fd, sa); err != nil && err != unix.EINPROGRESS {
		var errno unix.Errno
		errors.As(err, &errno)
		return streamError(c.remote, errno)
	}
	if c.local, err = localOf(c.fd); err != nil {
		return err
	}
	// Only now: a socket that has not begun to connect counts as hung up.
	c.id, err = c.on.add(c.fd, inputEvents|unix.EPOLLOUT, socket{stream: c})
	return err
}

// bind binds the stream to what from names: an address, a port, or both.
func (c *Stream) bind(from netip.AddrPort) error {
	addr := from.Addr()
	if !addr.IsValid() || addr.IsUnspecified() {
		if from.Port() == 0 {
			return nil
		}
		addr = netip.IPv4Unspecified()
		if c.remote.Addr().Is6() {
			addr = netip.IPv6Unspecified()
		}
	}
	from = netip.AddrPortFrom(addr, from.Port())
	if addr.Is4() != c.remote.Addr().Is4() {
		return fmt.Errorf("ktcp: from %s to %s: both must be IPv4, or both IPv6", from, c.remote)
	}
	sa, err := sockaddr(from)
	if err != nil {
		return err
	}
	// The port may belong to connections that time out; without one it is
	// chosen when the peer is known, so that many connections may share it
	// (IP_BIND_ADDRESS_NO_PORT, ip(7)).
	if from.Port() != 0 {
		err = os.NewSyscallError("SO_REUSEADDR", unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	} else {
		err = os.NewSyscallError("IP_BIND_ADDRESS_NO_PORT", unix.SetsockoptInt(c.fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1))
	}
	if err != nil {
		return fmt.Errorf("ktcp: %w", err)
	}
	if err := unix.Bind(c.fd, sa); err != nil {
		return bindError(from, err)
	}
	return nil
}

// socket makes a non-blocking TCP socket of the family of addr.
func (s *Streams) socket(addr netip.Addr) (int, error) {
	family := unix.AF_INET
	if addr.Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, socketError(err)
	}
	if err := setOptions(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if name := s.config.Congestion; name != "" { // a listener hands it on to what it accepts
		_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	}
	if s.config.Mark != 0 { // likewise
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, s.config.Mark)
	}
	if t := s.config.UserTimeout; t != 0 { // likewise
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(t.Milliseconds())); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("ktcp: a user timeout of %v: %w", t, os.NewSyscallError("TCP_USER_TIMEOUT", err))
		}
	}
	headers := ipv4Len + tcpLen
	if addr.Is6() {
		headers = ipv6Len + tcpLen
	}
	if mss := s.config.MTU - headers; s.config.MTU != 0 && mss <= maxMSS {
		// A listener hands it on to what it accepts.
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, mss); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("ktcp: MTU %d: %w", s.config.MTU, os.NewSyscallError("TCP_MAXSEG", err))
		}
	}
	return fd, nil
}

// setOptions sets what each stream has. A message is never kept back to wait
// for the next one: a caller with more bytes passes them in one Send.
func setOptions(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("ktcp: %w", os.NewSyscallError("TCP_NODELAY", err))
	}
	return nil
}

func sockaddr(a netip.AddrPort) (unix.Sockaddr, error) {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, nil
	}
	sa := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	if zone := a.Addr().Zone(); zone != "" {
		dev, err := net.InterfaceByName(zone)
		if err != nil {
			return nil, fmt.Errorf("ktcp: address %s: %w; ip link shows the devices there are", a.Addr(), err)
		}
		sa.ZoneId = uint32(dev.Index)
	}
	return sa, nil
}

// addrPort is the reverse of sockaddr. Of IPv4 over IPv6 only IPv4 shows.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		addr := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.ZoneId != 0 {
			if dev, err := net.InterfaceByIndex(int(sa.ZoneId)); err == nil {
				addr = addr.WithZone(dev.Name)
			}
		}
		return netip.AddrPortFrom(addr, uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// localOf returns what a socket is bound to.
func localOf(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("ktcp: %w", os.NewSyscallError("getsockname", err))
	}
	return addrPort(sa), nil
}

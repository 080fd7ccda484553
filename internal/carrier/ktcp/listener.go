package ktcp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Listener accepts streams.
//
// Owner: engine.
type Listener struct {
	on           *Streams
	fd           int
	id           fabric.StreamID
	local        netip.AddrPort
	noDescriptor bool // Accept has found no descriptor
	closed       bool
}

var _ fabric.Listener = (*Listener)(nil)

// Listen waits for connections. An unspecified address, IPv4 or IPv6 or none,
// stands for all addresses of both families where there is IPv6.
func (s *Streams) Listen(at netip.AddrPort, backlog int) (fabric.Listener, error) {
	addr := at.Addr().Unmap()
	var l *Listener
	var err error
	if addr.IsValid() && !addr.IsUnspecified() {
		l, err = s.listen(netip.AddrPortFrom(addr, at.Port()), backlog)
	} else {
		l, err = s.listen(netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()), backlog)
		if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) { // no IPv6 here
			l, err = s.listen(netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()), backlog)
		}
	}
	if err != nil {
		return nil, err // not l: an interface with a nil in it is not nil
	}
	return l, nil
}

func (s *Streams) listen(at netip.AddrPort, backlog int) (*Listener, error) {
	fd, err := s.socket(at.Addr())
	if err != nil {
		return nil, err
	}
	l := &Listener{on: s, fd: fd}
	if err := l.open(at, backlog); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return l, nil
}

func (l *Listener) open(at netip.AddrPort, backlog int) error {
	sa, err := sockaddr(at)
	if err != nil {
		return err
	}
	if at.Addr().Is6() {
		only := 1
		if at.Addr().IsUnspecified() {
			only = 0
		}
		if err := unix.SetsockoptInt(l.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only); err != nil {
			return fmt.Errorf("ktcp: %w", os.NewSyscallError("IPV6_V6ONLY", err))
		}
	}
	// Connections of a listener before, that time out, do not matter. Two
	// listeners on a port remain an error.
	if err := unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("ktcp: %w", os.NewSyscallError("SO_REUSEADDR", err))
	}
	if err := unix.Bind(l.fd, sa); err != nil {
		return bindError(at, err)
	}
	if err := unix.Listen(l.fd, backlog); err != nil {
		return bindError(at, err)
	}
	if l.local, err = localOf(l.fd); err != nil {
		return err
	}
	l.id, err = l.on.add(l.fd, unix.EPOLLIN|unix.EPOLLET, socket{listener: l})
	return err
}

// ID returns the number of the listener.
func (l *Listener) ID() fabric.StreamID { return l.id }

// Local returns the address and port that it listens at.
func (l *Listener) Local() netip.AddrPort { return l.local }

// Accept returns the next stream that was connected, or nil. When the process
// has no descriptor left connections wait until it has.
func (l *Listener) Accept() fabric.Stream {
	for !l.closed {
		fd, from, err := unix.Accept4(l.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			if c := l.accepted(fd, from); c != nil {
				return c
			}
		case unix.EAGAIN:
			return nil
		case unix.EINTR, unix.ECONNABORTED: // this one has gone away: accept(2)
		default:
			l.retryLater()
			return nil
		}
	}
	return nil
}

// retryLater has the listener looked at again after a while.
func (l *Listener) retryLater() {
	l.noDescriptor = true
	l.on.retry = min(l.on.retry, l.on.now.Add(descriptorWait))
}

// accepted makes a stream of a socket, or nil if the peer has gone away.
func (l *Listener) accepted(fd int, from unix.Sockaddr) *Stream {
	s := l.on
	c := &Stream{on: s, fd: fd, place: -1, remote: addrPort(from)}
	local, err := localOf(fd)
	if err == nil {
		err = setOptions(fd)
	}
	if err == nil {
		c.local = local
		c.id, err = s.add(fd, inputEvents, socket{stream: c})
	}
	if err != nil {
		unix.Close(fd)
		return nil
	}
	c.begin()
	s.stats.Accepted++
	return c
}

// Close ends listening. Connections not accepted yet are reset.
func (l *Listener) Close() {
	if !l.closed {
		l.closed = true
		l.on.remove(l.id, l.fd)
	}
}

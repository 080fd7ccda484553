package ktcp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// streamError says why there is no connection with a peer, and what to do.
func streamError(peer netip.AddrPort, errno unix.Errno) error {
	var advice string
	switch errno {
	case unix.ECONNREFUSED:
		advice = "nobody listens there: start the server first, and compare address and port (ss -tlnp on that host)"
	case unix.ECONNRESET, unix.EPIPE:
		advice = "the peer has broken the connection off: it has ended, or says why itself"
	case unix.ETIMEDOUT:
		advice = "no answer: is the host up, and does a firewall drop packets to the port?"
	case unix.ENETUNREACH, unix.EHOSTUNREACH:
		advice = fmt.Sprintf("no way there (ip route get %s)", peer.Addr())
	case unix.EADDRNOTAVAIL:
		advice = "no local address or free port for it (ip addr; sysctl net.ipv4.ip_local_port_range)"
	case unix.EADDRINUSE:
		advice = "this connection exists already: choose another local port, or 0"
	case unix.EINVAL:
		advice = "the local address cannot send there: leave it away, or name one of the device that leads there"
	case unix.EACCES, unix.EPERM:
		advice = "forbidden by the kernel (firewall rule, or a broadcast address)"
	case unix.ENOTCONN:
		advice = "closed by this end"
	default:
		return fmt.Errorf("ktcp: connection with %s: %w", peer, errno)
	}
	return fmt.Errorf("ktcp: connection with %s: %w: %s", peer, errno, advice)
}

// bindError says what is wrong with a local address and port.
func bindError(local netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("ktcp: TCP port %d at %s belongs to another socket (ss -tanp 'sport = %d' shows it): choose another one: %w",
			local.Port(), local.Addr(), local.Port(), err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("ktcp: %s is no address of this host; ip addr shows those there are: %w", local.Addr(), err)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("ktcp: port %d is for privileged programs: choose one from 1024 on: %w", local.Port(), err)
	}
	return fmt.Errorf("ktcp: bind to %s: %w", local, err)
}

// socketError says why there is no socket.
func socketError(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return fmt.Errorf("ktcp: %w: each stream is an open file; raise ulimit -n", os.NewSyscallError("socket", err))
	case errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("ktcp: %w: this kernel has no IPv6; use IPv4", os.NewSyscallError("socket", err))
	}
	return fmt.Errorf("ktcp: %w", os.NewSyscallError("socket", err))
}

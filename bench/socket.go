package bench

import (
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"golang.org/x/sys/unix"
)

// socket is a kernel socket used as a C program that spins would use it: plain
// system calls that never block, straight from this thread, without Go's
// poller and without telling the scheduler (they return within microseconds).
//
// The kernel gets addresses in the socket's arena, which is mapped memory that
// the garbage collector neither moves nor frees.
type socket struct {
	fd    int
	arena *mem.Arena
	base  uintptr // address of the arena
	err   unix.Errno
}

// newSocket makes a socket of the family of local, with a buffer of size bytes.
func newSocket(local netip.Addr, kind, size int) (*socket, error) {
	family := unix.AF_INET
	if local.Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	s := &socket{fd: fd}
	if s.arena, err = mem.New(mem.Config{Size: size, Name: "xperf"}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	s.base = uintptr(mem.AddressOf(s.arena.Bytes()))
	return s, nil
}

// sockaddr returns an address as the kernel takes it.
func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

func (s *socket) close() error {
	unix.Close(s.fd)
	return s.arena.Close()
}

// send sends n bytes at off and returns how many the kernel took: 0 when it
// has no room, -1 after an error, which is in s.err.
func (s *socket) send(off, n int) int {
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), s.base+uintptr(off), uintptr(n), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return s.result(r, errno)
}

// recv receives up to n bytes at off and returns how many came: 0 when there
// are none, -1 after an error or the end of a stream, which is in s.err.
func (s *socket) recv(off, n int) int {
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), s.base+uintptr(off), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
	if r == 0 && errno == 0 {
		s.err = unix.EPIPE
		return -1
	}
	return s.result(r, errno)
}

// sendBatch and recvBatch do the same with n of the messages whose headers
// start at off, and return a number of messages.
func (s *socket) sendBatch(off, n int) int {
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.fd), s.base+uintptr(off), uintptr(n), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return s.result(r, errno)
}

func (s *socket) recvBatch(off, n int) int {
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s.fd), s.base+uintptr(off), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
	return s.result(r, errno)
}

func (s *socket) result(r uintptr, errno unix.Errno) int {
	switch errno {
	case 0:
		return int(r)
	case unix.EAGAIN, unix.EINTR, unix.ENOBUFS:
		return 0
	}
	s.err = errno
	return -1
}

// failure returns the error of the last call that returned -1.
func (s *socket) failure(what string) error {
	if s.err == unix.EPIPE {
		return fmt.Errorf("%s: %w: the data connection was closed", what, ErrPeerLost)
	}
	return fmt.Errorf("%s: %w", what, s.err)
}

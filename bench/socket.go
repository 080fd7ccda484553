package bench

import (
	"errors"
	"fmt"
	"os"

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
	file  *os.File
	fd    int // of file
	arena *mem.Arena
	base  uintptr // address of the arena
	err   unix.Errno
}

// newSocket takes conn over, with a buffer of size bytes.
func newSocket(conn interface {
	File() (*os.File, error)
	Close() error
}, size int) (*socket, error) {
	file, err := conn.File() // a descriptor of its own
	if err = errors.Join(err, conn.Close()); err != nil {
		return nil, err
	}
	s := &socket{file: file, fd: int(file.Fd())}
	if s.arena, err = mem.New(mem.Config{Size: size, Name: "xperf"}); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s.base = uintptr(mem.AddressOf(s.arena.Bytes()))
	return s, nil
}

func (s *socket) close() error { return errors.Join(s.file.Close(), s.arena.Close()) }

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

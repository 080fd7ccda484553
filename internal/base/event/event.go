// Package event has descriptors to wait on with poll(2): a bell, which another thread or
// process rings, and a set, which stands for several others.
package event

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Bell is an eventfd: readable once it was rung. A negative one is none.
type Bell int

// NewBell makes a bell. The caller closes it.
func NewBell() (Bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("eventfd: %w (too many open files? see ulimit -n)", err)
	}
	return Bell(fd), nil
}

// Close closes the descriptor, which is none afterwards.
func (b *Bell) Close() error { return closeFD((*int)(b)) }

// Set is an epoll instance: readable while one of its descriptors is. A negative one is
// none.
type Set int

// NewSet makes a set of descriptors. The caller closes it.
func NewSet(fds ...int) (Set, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("epoll_create: %w (too many open files? see ulimit -n)", err)
	}
	s := Set(fd)
	for _, fd := range fds {
		if err := s.Add(fd); err != nil {
			return -1, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Add makes the set readable when fd is.
func (s Set) Add(fd int) error {
	err := unix.EpollCtl(int(s), unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	if err != nil {
		return fmt.Errorf("descriptor %d cannot be waited for with epoll: %w", fd, err)
	}
	return nil
}

// Remove undoes Add. A descriptor that was closed is forgotten already, which is the error.
func (s Set) Remove(fd int) error { return unix.EpollCtl(int(s), unix.EPOLL_CTL_DEL, fd, nil) }

// Close closes the descriptor, which is none afterwards. Those in the set stay open.
func (s *Set) Close() error { return closeFD((*int)(s)) }

func closeFD(fd *int) error {
	if *fd < 0 {
		return nil
	}
	err := os.NewSyscallError("close", unix.Close(*fd))
	*fd = -1
	return err
}

package xdp

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// roll says which seats of a queue have somebody: a file without content, in
// which each holds a lock on the byte of its number. The kernel gives the lock
// up when the process is gone, however it went, and not before its last thread
// is, so nobody who is missing from the roll touches memory any more.
type roll struct{ fd int }

// newRoll makes a roll with nobody on it.
func newRoll() (roll, error) {
	fd, err := unix.MemfdCreate("xwarp-roll", unix.MFD_CLOEXEC)
	if err != nil {
		return roll{-1}, fmt.Errorf("xdp: memfd_create: %w", err)
	}
	return roll{fd}, nil
}

// sign opens the roll that fd is a descriptor of once more and puts a number on
// it. The lock belongs to the new description of the file: a descriptor that
// others inherited too would keep it when we are gone.
func sign(fd, number int) (roll, error) {
	own, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return roll{-1}, fmt.Errorf("xdp: cannot open the roll of a shared queue (is /proc mounted?): %w", err)
	}
	lock := byteLock(number)
	err = unix.FcntlFlock(uintptr(own), unix.F_OFD_SETLK, &lock)
	if err == nil {
		return roll{own}, nil
	}
	unix.Close(own)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return roll{-1}, fmt.Errorf("xdp: seat %d: %w", number, ErrSeatTaken)
	}
	return roll{-1}, fmt.Errorf("xdp: cannot sign the roll of a shared queue: %w", err)
}

// absent reports whether nobody has a number. It must not be our own.
func (r roll) absent(number int) bool {
	lock := byteLock(number)
	err := unix.FcntlFlock(uintptr(r.fd), unix.F_OFD_GETLK, &lock)
	return err == nil && lock.Type == unix.F_UNLCK
}

func (r roll) close() { _ = unix.Close(r.fd) }

func byteLock(number int) unix.Flock_t {
	return unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(number), Len: 1}
}

package xdp

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// livenessFile shows which slots of a queue are taken: a file without content, in
// which each holds a lock on the byte of its number. The kernel gives the lock
// up when the process is gone, however it went, and not before its last thread
// is, so no process without a lock touches memory any more.
type livenessFile struct{ fd int }

// newLivenessFile makes one without locks.
func newLivenessFile() (livenessFile, error) {
	fd, err := mem.Memfd("xwarp-liveness", 0)
	if err != nil {
		return livenessFile{-1}, fmt.Errorf("xdp: %w", err)
	}
	return livenessFile{fd}, nil
}

// sign opens the liveness file that fd is a descriptor of once more and puts a number on
// it. The lock belongs to the new description of the file: a descriptor that
// others inherited too would keep it when we are gone.
func sign(fd, number int) (livenessFile, error) {
	own, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return livenessFile{-1}, fmt.Errorf("xdp: cannot open the liveness file of a shared queue (is /proc mounted?): %w", err)
	}
	lock := byteLock(number)
	err = unix.FcntlFlock(uintptr(own), unix.F_OFD_SETLK, &lock)
	if err == nil {
		return livenessFile{own}, nil
	}
	unix.Close(own)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return livenessFile{-1}, fmt.Errorf("xdp: slot %d: %w", number, ErrSlotTaken)
	}
	return livenessFile{-1}, fmt.Errorf("xdp: cannot lock a byte of the liveness file of a shared queue: %w", err)
}

// absent reports whether a number is free. It must not be our own.
func (r livenessFile) absent(number int) bool {
	lock := byteLock(number)
	err := unix.FcntlFlock(uintptr(r.fd), unix.F_OFD_GETLK, &lock)
	return err == nil && lock.Type == unix.F_UNLCK
}

func (r livenessFile) close() { _ = unix.Close(r.fd) }

func byteLock(number int) unix.Flock_t {
	return unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(number), Len: 1}
}

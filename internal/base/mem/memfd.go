package mem

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Seals are what a memfd of [Memfd] has.
const Seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// Memfd makes memory of size bytes for processes that do not trust each other. None of them
// can change its size, which would be fatal to a process that touches what was cut off, nor
// how others may use it. The caller owns the descriptor.
func Memfd(name string, size int) (fd int, err error) { return memfd(name, size, 0) }

func memfd(name string, size, flags int) (fd int, err error) {
	fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|flags)
	if err != nil {
		return -1, fmt.Errorf("%s: memfd_create: %w", name, err)
	}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, Seals)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("%s: cannot make a memfd of %d bytes: %w", name, size, err)
	}
	return fd, nil
}

package mem

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// hugeTmpfile makes a nameless file of size bytes on transparent huge pages, for machines on
// which no huge pages are set aside. A memfd gets none there unless the
// whole system is told so, but a tmpfs of our own may. It is mounted nowhere
// and ends with the file. Only root may do that (Linux 5.2).
//
// It is worth the trouble: on small pages the frames fall into the cache's sets
// by chance, and about every third arena is unlucky, which costs 40 % of the
// bandwidth.
func hugeTmpfile(size int) (fd int, err error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("arena: tmpfs: %w", err)
	}
	defer unix.Close(fs)
	err = errors.Join(
		unix.FsconfigSetString(fs, "huge", "always"),
		unix.FsconfigSetString(fs, "mode", "0700"))
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return -1, fmt.Errorf("arena: tmpfs on huge pages: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("arena: mount of a tmpfs: %w", err)
	}
	defer unix.Close(mount)
	fd, err = unix.Openat(mount, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, fmt.Errorf("arena: file on a tmpfs: %w", err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("arena: cannot make it %d bytes large: %w", size, err)
	}
	return fd, nil
}

package launch

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Where there is no close_range, children inherit nothing by chance either.
func TestKeepDescriptors(t *testing.T) {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := keepDescriptors(); err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v: a child would inherit it", flags, err)
	}
}

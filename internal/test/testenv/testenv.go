// Package testenv says what tests need of the machine that they run on, what becomes of
// those that do not find it, how what they open is closed, how many
// descriptors are open, and whether one is readable.
package testenv

import (
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// requireXDP is set to 1 where root and AF_XDP are supposed to be there, so that a test
// which was left out cannot pass for a success.
const requireXDP = "XWARP_REQUIRE_XDP"

// RequiresXDP reports whether root and AF_XDP have to be there.
func RequiresXDP() bool { return os.Getenv(requireXDP) == "1" }

// NeedRoot leaves out a test that makes network namespaces, loads BPF programs or opens
// AF_XDP sockets where the user may not; see NoXDP.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		NoXDP(t, "needs root, for network namespaces and AF_XDP")
	}
}

// NoXDP leaves out a test that this machine cannot run, for a reason that is a text or
// an error. Where RequiresXDP it fails instead.
func NoXDP(t testing.TB, why any) {
	t.Helper()
	if RequiresXDP() {
		t.Fatalf("%v (and %s=1 is set)", why, requireXDP)
	}
	t.Skip(why)
}

// Closing closes c when the test ends.
func Closing(t testing.TB, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Readable tells whether poll(2) finds fd readable now.
func Readable(t testing.TB, fd int) bool {
	t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// OpenFiles counts the descriptors of this process, with those that Go's runtime opens for the first file.
func OpenFiles(t testing.TB) int {
	t.Helper()
	_, first := os.ReadDir("/proc/self/fd")
	files, err := os.ReadDir("/proc/self/fd")
	if err := errors.Join(first, err); err != nil {
		t.Fatal(err)
	}
	return len(files)
}

package testbed

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/proc"
)

// Clean removes the namespaces of testbeds whose owner is dead and what was shared
// as memory in them, and kills the processes there. Testbeds of living processes
// stay. It returns the names of what it removed, also together with an error.
func Clean() (removed []string, err error) {
	names, err := netnsNames(namePrefix)
	if err != nil {
		return nil, err
	}
	folders, err := memoryNames(namePrefix)
	errs := []error{err}
	for _, name := range append(names, folders...) {
		o, ok := ownerFromName(name)
		if !ok || o.alive() {
			continue
		}
		gone, err := remove(name, 0)
		removed = append(removed, gone...)
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// Inside reports whether the calling thread is in a host of a testbed.
func Inside() bool {
	here, ok := nsIDOf("/proc/thread-self/ns/net")
	names, err := netnsNames(namePrefix)
	return ok && err == nil && slices.ContainsFunc(names, func(name string) bool {
		id, ok := nsIDOf(netnsPath(name))
		return ok && id == here
	})
}

// netnsNames returns the named network namespaces that begin with prefix.
func netnsNames(prefix string) ([]string, error) { return namesIn(netnsDir, prefix, false) }

// namesIn returns the names in dir that begin with prefix: of folders, or of what is none.
func namesIn(dir, prefix string, folders bool) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("testbed: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() == folders && strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// remove removes the namespaces and memory whose names begin with prefix, after
// killing the processes in them, the process spare excepted.
func remove(prefix string, spare int) (removed []string, err error) {
	names, err := netnsNames(prefix)
	if err != nil {
		return nil, err
	}
	var errs []error
	if len(names) > 0 {
		in := isIn(names)
		if err := proc.KillAll(func(pid int) bool { return pid != spare && in(pid) }); err != nil {
			errs = append(errs, permission(err))
		}
	}
	for _, name := range names {
		if err := removeNetns(name); err != nil {
			errs = append(errs, permission(err))
			continue
		}
		removed = append(removed, name)
	}
	folders, err := removeMemory(prefix)
	return append(removed, folders...), errors.Join(append(errs, err)...)
}

// removeNetns takes a namespace's name away; with the last process gone the
// kernel then removes its devices. Another process may be doing the same.
func removeNetns(name string) error {
	path := netnsPath(name)
	// EINVAL: not mounted, a name whose maker died half way.
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("unmounting %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// nsID identifies a namespace.
type nsID struct{ dev, ino uint64 }

func nsIDOf(path string) (nsID, bool) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return nsID{}, false
	}
	return nsID{st.Dev, st.Ino}, true
}

// isIn returns what tells whether the main thread of a process is in one of the
// namespaces.
func isIn(names []string) func(pid int) bool {
	spaces := make(map[nsID]bool)
	for _, name := range names {
		if id, ok := nsIDOf(netnsPath(name)); ok {
			spaces[id] = true
		}
	}
	return func(pid int) bool {
		// A zombie has no namespace, a process that is gone no file.
		id, ok := nsIDOf(fmt.Sprintf("/proc/%d/ns/net", pid))
		return ok && spaces[id]
	}
}

package testbed

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// netnsDir is where ip-netns(8) keeps named namespaces.
const netnsDir = "/run/netns"

// prepareNetnsDir makes netnsDir a shared mount point, exactly as `ip netns
// add` does. Without that the first `ip netns add` would mount over our
// namespaces and make them impossible to remove.
func prepareNetnsDir() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	lock, err := os.Open(netnsDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", netnsDir, err)
	}
	err = unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if !errors.Is(err, unix.EINVAL) {
		return wrapMount(err)
	}
	// EINVAL: not a mount point yet.
	if err := unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return wrapMount(err)
	}
	return wrapMount(unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, ""))
}

func wrapMount(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mounting %s: %w", netnsDir, err)
}

// mountNetns gives the calling thread's network namespace a name.
func mountNetns(name string) error {
	path := netnsPath(name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	f.Close()
	if err := unix.Mount("/proc/thread-self/ns/net", path, "none", unix.MS_BIND, ""); err != nil {
		return errors.Join(fmt.Errorf("naming network namespace %s: %w", name, err), os.Remove(path))
	}
	return nil
}

// permission makes err wrap ErrPermission when rights are what is missing.
func permission(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w (%w)", ErrPermission, err)
	}
	return fmt.Errorf("testbed: %w", err)
}

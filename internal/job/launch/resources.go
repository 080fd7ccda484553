package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// explain adds to an error which limit of the system has caused it, and how to raise
// that, if one has.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE):
		var l unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &l) // it cannot fail
		return fmt.Errorf("%w: a process may have %d here, and xrun needs about 8 for each rank on a host: raise that (ulimit -n %d; for good LimitNOFILE= of systemd, or nofile in /etc/security/limits.conf)", err, l.Cur, max(1024, 4*l.Cur))
	case errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w: raise the limit of the whole machine (sysctl fs.file-max)", err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("%w: its user may have no more processes here: raise that limit (ulimit -u, pids.max of its cgroup, sysctl kernel.pid_max), or use fewer ranks", err)
	}
	return err
}

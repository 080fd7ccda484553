package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/proc"
)

// allHosts is no host's number.
const allHosts = -1

// killMarked kills what the ranks of a job have left on this machine: every process with the
// name of the job, and the number of the host, in its environment, until there is none. It
// finds children that have moved to sessions of their own, too. A machine can be several
// hosts of a job. What another agent has started is for that one to end: it has to tell
// what it ended from what was killed.
func killMarked(job string, host int) error {
	marks := []string{config.EnvJob + "=" + job}
	if host != allHosts {
		marks = append(marks, fmt.Sprint(config.EnvHost, "=", host))
	}
	return proc.KillAll(func(pid int) bool { return hasMarks(pid, marks) })
}

// hasMarks reports whether all these variables are in the environment of a process.
func hasMarks(pid int, marks []string) bool {
	// Unreadable: another user's process. Empty: a zombie.
	env, err := readSome(fmt.Sprintf("/proc/%d/environ", pid), maxEnviron)
	env = append([]byte{0}, env...)
	return err == nil && !slices.ContainsFunc(marks, func(mark string) bool {
		return !bytes.Contains(env, []byte("\x00"+mark+"\x00"))
	})
}

// maxEnviron is more than the kernel lets a program start with. A process can make it
// look as if it had far more (prctl PR_SET_MM_MAP).
const maxEnviron = 8 << 20

// readSome reads a file of /proc, which may be of any length, up to a limit.
func readSome(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

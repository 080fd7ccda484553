package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/proc"
)

// killMarked kills what the ranks of a job have left on this machine: every
// process with the name of the job in its environment, until there is none.
// It finds children that have moved to sessions of their own, too.
func killMarked(job string) error {
	return proc.KillAll(func(pid int) bool { return hasMark(pid, job) })
}

// hasMark reports whether the name of a job is in the environment of a process.
func hasMark(pid int, job string) bool {
	// Unreadable: another user's process. Empty: a zombie.
	env, err := readSome(fmt.Sprintf("/proc/%d/environ", pid), maxEnviron)
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+config.EnvJob+"="+job+"\x00"))
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

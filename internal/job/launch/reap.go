package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
)

// killMarked kills what the ranks of a job have left on this machine: every
// process with the name of the job in its environment, until there is none.
// It finds children that have moved to sessions of their own, too.
func killMarked(job string) error { return killAll(func(pid int) bool { return hasMark(pid, job) }) }

// killAll kills all processes, but this one, that are what is asked for, until there is
// none.
func killAll(is func(pid int) bool) error {
	const tries = 5000 // counted, not timed: a process that cannot run has not waited
	for try := 1; ; try++ {
		pids := processesThat(is)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			killIf(pid, is)
		}
		if try == tries {
			return fmt.Errorf("processes %v of the job do not die", pids)
		}
		time.Sleep(time.Millisecond)
	}
}

// killIf kills a process that is still what is asked for. Its number may belong to
// another one by now.
func killIf(pid int, is func(pid int) bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // gone already
	}
	defer unix.Close(fd)
	if is(pid) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // gone already, or another process has its number
	}
}

// processesThat returns the processes, other than this one, that are what is asked for.
func processesThat(is func(pid int) bool) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && is(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
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

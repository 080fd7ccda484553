package launch

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
)

// killMarked kills what the ranks of a job have left on this machine: every
// process with the name of the job in its environment, until there is none.
// It finds children that have moved to sessions of their own, too.
func killMarked(job string) error {
	const tries = 5000 // counted, not timed: who cannot run has not waited
	for try := 1; ; try++ {
		pids := marked(job)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // gone already, or somebody else's
		}
		if try == tries {
			return fmt.Errorf("processes %v of the job do not die", pids)
		}
		time.Sleep(time.Millisecond)
	}
}

// marked returns the processes, other than this one, with the name of the job
// in their environment.
func marked(job string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	mark := []byte("\x00" + config.EnvJob + "=" + job + "\x00")
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Unreadable: somebody else's process. Empty: a zombie.
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(append([]byte{0}, env...), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

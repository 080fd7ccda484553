package launch

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/proc"
)

// A rank of another user could leave processes behind that outlive the job, with the
// sockets that it was given, if they take the name of the job out of their environment.
// So the agent becomes the parent of what ranks leave behind, and knows it by that.

// adopt makes this process the parent of what its children leave behind, and lets them
// inherit no descriptors but those that are meant for them.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return keepDescriptors() // before Linux 5.11, and where a container does not know the call
}

// keepDescriptors lets no child inherit the descriptors that are open now.
func keepDescriptors() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("cannot see which descriptors ranks of another user (--user) would inherit: %w", err)
	}
	for _, d := range open {
		if fd, err := strconv.Atoi(d.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// reapPause is how long those that have died wait at most.
const reapPause = 500 * time.Millisecond

// reapOrphans takes notice of the death of adopted processes, without which their numbers
// would stay taken, as long as this process lives. Ranks are awaited elsewhere.
func (a *agent) reapOrphans() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	ranks := slices.Clone(a.ranks)
	go func() {
		for range died {
			time.Sleep(reapPause) // there may be many
			for _, pid := range proc.That(isDeadChild) {
				if !slices.ContainsFunc(ranks, func(r *rank) bool { return r.cmd.Process.Pid == pid }) {
					_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				}
			}
		}
	}()
}

func isDeadChild(pid int) bool {
	p, ok := readProcess(pid)
	return ok && p.parent == os.Getpid() && p.state == 'Z'
}

// killOrphans kills the descendants of this process that are of another user. All ranks
// are dead and were awaited. What seems to be dead is awaited, too: it may have threads.
func killOrphans() error {
	return proc.KillAll(func(pid int) bool {
		p, ok := readProcess(pid)
		if !ok || realUser(pid) == os.Getuid() {
			return false
		}
		if p.parent == os.Getpid() && p.state == 'Z' {
			dead, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil)
			return dead != pid
		}
		for ok && p.parent > 1 && p.parent != os.Getpid() {
			p, ok = readProcess(p.parent)
		}
		return ok && p.parent == os.Getpid()
	})
}

// realUser returns the user that started a process, or our own user if that is not known.
func realUser(pid int) int {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, ids, _ := bytes.Cut(status, []byte("\nUid:\t"))
	id, _, _ := bytes.Cut(ids, []byte("\t"))
	user, bad := strconv.Atoi(string(id))
	if err != nil || bad != nil {
		return os.Getuid()
	}
	return user
}

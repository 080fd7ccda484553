// Package proc finds other processes of this machine in /proc, signals and kills them.
package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// That returns the processes, other than this one, that are what is asked for.
func That(is func(pid int) bool) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && is(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// KillAll kills all processes, but this one, that are what is asked for, until there is
// none.
func KillAll(is func(pid int) bool) error {
	const tries = 10_000 // counted, not timed: a process that cannot run has not waited
	for try := 1; ; try++ {
		pids := That(is)
		if len(pids) == 0 {
			return nil
		}
		var err error
		for _, pid := range pids {
			if failed := KillIf(pid, is); failed != nil {
				err = failed
			}
		}
		switch {
		case try < tries:
			time.Sleep(time.Millisecond)
		case err != nil:
			return err
		default:
			return fmt.Errorf("processes %v do not die", pids)
		}
	}
}

// KillIf kills a process that is still what is asked for.
func KillIf(pid int, is func(pid int) bool) error { return SignalIf(pid, unix.SIGKILL, is) }

// SignalIf sends a signal to a process that is still what is asked for. Its number may belong
// to another one by now.
func SignalIf(pid int, signal unix.Signal, is func(pid int) bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // gone already
	}
	defer unix.Close(fd)
	if !is(pid) {
		return nil // another process has its number
	}
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("%s to process %d: %w", unix.SignalName(signal), pid, err)
	}
	return nil
}

// Stat returns the fields of /proc/PID/stat from the third on, see proc_pid_stat(5): what
// stands before, the name in parentheses, may itself hold spaces and parentheses.
func Stat(stat []byte) [][]byte { return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) }

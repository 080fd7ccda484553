package progress

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// sysmonLooks is how often all threads are looked at for the one that sleeps as the monitor does: where many
// programs start at once, it may be awake, and wait for a core. It is the one that has been seen so
// sysmonSeen times, for others of the runtime sleep for 3 us now and then.
const (
	sysmonLooks = 200
	sysmonSeen  = 3
)

// DeferSysmon has the kernel run the monitor thread of Go's runtime (sysmon in runtime/proc.go)
// when that takes no core from a rank. After each time that the whole process was idle the monitor
// wakes up 50 times or more, 20 us apart, on the core to which the rank is bound, and may
// preempt the rank each time, for 10 to 20 us on a virtual machine: many short messages. A thread of
// SCHED_BATCH preempts no other one when it wakes up (sched(7)). What the monitor is for, preemption after
// 10 ms and the processors of blocked system calls, comes later by a slice of the kernel's scheduler.
//
// It still runs when a rank yields, where more ranks than cores wait for each other: a burst of short
// collectives after a wait took three times as long. So its timers may be monitorSlack late, where this
// process may say so (CAP_SYS_NICE), which leaves one look in that time.
//
// Threads that the monitor starts have its policy and slack: see Restore. It returns the monitor. An error, as of
// processes that were started with another policy, changes nothing but speed.
func DeferSysmon() (thread int, err error) {
	thread, err = sysmon()
	if err != nil {
		return 0, err
	}
	if policyOf(unix.Getpid()) != unix.SCHED_NORMAL {
		return 0, errors.New("progress: the process has a scheduling policy already")
	}
	if err := setPolicy(thread, unix.SCHED_BATCH); err != nil {
		return 0, fmt.Errorf("progress: policy of thread %d: %w", thread, err)
	}
	if slack, err := slackOf(thread); err == nil && slack < monitorSlack { // that of C programs has more
		_ = os.WriteFile(slackFile(thread), strconv.AppendInt(nil, monitorSlack, 10), 0) // it may not: it looks more often
	}
	return thread, nil
}

// monitorSlack is how late timers of the monitor may be, in nanoseconds. Of threads that it has started
// they may be so, too, until Restore.
const monitorSlack = 1_000_000

// slackOf returns how late timers of a thread may be, in nanoseconds.
func slackOf(thread int) (uint64, error) {
	text, err := os.ReadFile(slackFile(thread))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 63)
}

func slackFile(thread int) string { return fmt.Sprintf("/proc/%d/timerslack_ns", thread) }

// sysmon finds the monitor thread, which is never the first one. Threads of Go sleep in nanosleep(2)
// and do not ask for what is left; libraries of C call clock_nanosleep(2).
func sysmon() (thread int, err error) {
	const threads = "/proc/self/task"
	prefix := strconv.AppendInt(nil, unix.SYS_NANOSLEEP, 10)
	if _, err := os.ReadFile("/proc/self/syscall"); err != nil { // not in this kernel, or not allowed
		return 0, err
	}
	first, seen := strconv.Itoa(unix.Getpid()), map[string]int{}
	for range sysmonLooks {
		entries, err := os.ReadDir(threads)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			call, err := os.ReadFile(threads + "/" + e.Name() + "/syscall") // its number and arguments, if it is in one
			f := bytes.Fields(call)
			if err != nil || e.Name() == first || len(f) < 3 || !bytes.Equal(f[0], prefix) || !bytes.Equal(f[2], []byte("0x0")) {
				continue
			}
			if seen[e.Name()]++; seen[e.Name()] == sysmonSeen {
				return strconv.Atoi(e.Name())
			}
		}
		Yield()
	}
	return 0, errors.New("progress: no thread of this process sleeps as Go's monitor does")
}

// Restore gives the calling thread the policy of the process back, which is that of its first thread, and the
// slack of its timers, where the monitor has started it. What it starts then has that, too.
func Restore() {
	if policyOf(0) != unix.SCHED_BATCH || policyOf(unix.Getpid()) != unix.SCHED_NORMAL {
		return
	}
	_ = setPolicy(0, unix.SCHED_NORMAL)
	if slack, err := slackOf(unix.Getpid()); err == nil {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
	}
}

// policyOf returns the scheduling policy of a thread, 0 for the calling one, or less than 0.
func policyOf(thread int) int {
	policy, _, _ := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(thread), 0, 0)
	return int(policy)
}

// setPolicy changes the policy of a thread and leaves it as nice as it is.
func setPolicy(thread int, policy uint32) error {
	attr, err := unix.SchedGetAttr(thread, 0)
	if err != nil {
		return err
	}
	return unix.SchedSetAttr(thread, &unix.SchedAttr{Policy: policy, Nice: attr.Nice}, 0)
}

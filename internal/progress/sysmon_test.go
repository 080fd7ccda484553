package progress

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// It finds the thread of the runtime, and no other one, and once more when it is deferred already.
func TestDeferSysmon(t *testing.T) {
	ordinary(t)
	var threads [2]int
	for i := range threads {
		var err error
		if threads[i], err = DeferSysmon(); err != nil {
			t.Fatal(err)
		}
	}
	if threads[0] != threads[1] || threads[0] == unix.Getpid() {
		t.Errorf("threads %v of process %d: want the same one twice, and not the first of the process", threads, unix.Getpid())
	}
	if got := policyOf(threads[0]); got != unix.SCHED_BATCH {
		t.Errorf("policy of the monitor %d: want %d", got, unix.SCHED_BATCH)
	}
	if got := policyOf(unix.Getpid()); got != unix.SCHED_NORMAL {
		t.Errorf("policy of the process %d: want %d", got, unix.SCHED_NORMAL)
	}
	if err := os.WriteFile(slackFile(threads[0]), []byte("50000"), 0); err != nil {
		t.Skipf("the process may not say how late timers of its monitor may be (CAP_SYS_NICE): %v", err)
	}
	if _, err := DeferSysmon(); err != nil || slack(t, threads[0]) != monitorSlack || slack(t, unix.Getpid()) == monitorSlack {
		t.Errorf("timers of the monitor may be %d ns late, of the process %d, %v: want %d of the first alone",
			slack(t, threads[0]), slack(t, unix.Getpid()), err, monitorSlack)
	}
	const more = "10000000" // of the libraries for C
	if err := os.WriteFile(slackFile(threads[0]), []byte(more), 0); err != nil {
		t.Error(err)
	}
	if _, err := DeferSysmon(); err != nil || slack(t, threads[0]) <= monitorSlack {
		t.Errorf("more slack became %d ns, %v", slack(t, threads[0]), err)
	}
}

// A thread that has the monitor's policy has it no more, and one of another policy keeps it.
func TestRestore(t *testing.T) {
	ordinary(t)
	onThread(func() {
		for _, c := range []struct{ policy, want int }{{unix.SCHED_BATCH, unix.SCHED_NORMAL}, {unix.SCHED_IDLE, unix.SCHED_IDLE}} {
			if err := setPolicy(0, uint32(c.policy)); err != nil {
				t.Error(err)
			}
			const late = 123_000
			if err := unix.Prctl(unix.PR_SET_TIMERSLACK, late, 0, 0, 0); err != nil {
				t.Error(err)
			}
			if Restore(); policyOf(0) != c.want || (slack(t, unix.Gettid()) != late) != (c.want == unix.SCHED_NORMAL) {
				t.Errorf("policy %d: %d is left, want %d, and timers that may be %d ns late", c.policy, policyOf(0), c.want, slack(t, unix.Gettid()))
			}
		}
	})
}

// onThread runs f on a thread that ends with it, which the first one of the process would not.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // and the thread with it
		}
		onThread(f)
		runtime.UnlockOSThread()
	}()
	<-done
}

// slack returns how late timers of a thread may be, in nanoseconds.
func slack(t *testing.T, thread int) uint64 {
	n, err := slackOf(thread)
	if err != nil {
		t.Skipf("this kernel does not say how late timers of a thread may be: %v", err)
	}
	return n
}

func ordinary(t *testing.T) {
	if policyOf(unix.Getpid()) != unix.SCHED_NORMAL {
		t.Skip("the tests were started with a scheduling policy of their own (chrt)")
	}
}

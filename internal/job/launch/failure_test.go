package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"

	"github.com/xwarp/xwarp/internal/job/boot"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
		text string
	}{
		{nil, 0, "<nil>"},
		{errors.New("x"), 125, "x"},
		{&ConfigError{"bad"}, 125, "bad"},
		{&HostError{"a", errors.New("gone")}, 125, "host a: gone"},
		{ErrKilled, 125, "killed by a second signal"},
		{&RankError{Rank: 1, PID: 7, Host: "a", Status: 3}, 3, "rank 1 (process 7 on a) exited with status 3"},
		{&RankError{Rank: 1, PID: 7, Host: "a", Signal: unix.SIGSEGV, Core: true}, 139, "rank 1 (process 7 on a) was killed by signal 11 (SIGSEGV) and dumped core"},
		{&RankError{Rank: 1, PID: 7, Host: "a", Why: "without Finalize"}, 1, "rank 1 (process 7 on a) exited with status 0 without Finalize"},
		{&RankError{Rank: 1, PID: 7, Host: "a", Why: "without Finalize", Interrupt: unix.SIGINT}, 130, "rank 1 (process 7 on a) exited with status 0 without Finalize after SIGINT"},
		{&AbortError{Rank: 2, Host: "a", Code: 256, Why: "no"}, 1, "rank 2 on a aborted the job with code 256: no"},
		{&AbortError{Rank: 2, Host: "a", Code: 258}, 2, "rank 2 on a aborted the job with code 258"},
		{&StartError{"a", "p", true, "no"}, 127, "cannot run p on a: no"},
		{&StartError{"a", "p", false, "no"}, 126, "cannot run p on a: no"},
		{fmt.Errorf("wrapped: %w", &TimeoutError{After: time.Second, Missing: []int{3}, Arrived: 1}), 124,
			"wrapped: rank 3 has not reached the start of the job after 1s, while 1 rank waits: give more time with --start-timeout, or see what keeps the missing"},
		{&TimeoutError{After: time.Second, Missing: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, Arrived: 2}, 124,
			"ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more have not reached the start of the job after 1s, while 2 ranks wait: give more time with --start-timeout, or see what keeps the missing"},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
		if got := fmt.Sprint(c.err); got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
	}
}

// A rank that notices the death of another one may be heard of first. The cause is the
// death that nobody asked for, with or without others that go on.
func TestJob_cause(t *testing.T) {
	follows := report{Op: opExit, Rank: 1, Status: 1}
	killed := report{Op: opExit, Rank: 0, Signal: int(unix.SIGKILL)}
	for name, c := range map[string]struct {
		reports []report
		want    int // exit status
	}{
		"killed first":           {[]report{killed, follows}, 137},
		"killed, heard of later": {[]report{follows, {Op: opExit, Rank: 2, Status: 1}, killed}, 137},
		"an abort that follows":  {[]report{{Op: opBoot, Rank: 1, Request: &boot.Request{Op: boot.OpAbort, Code: 5}}, killed}, 137},
		"told to end":            {[]report{follows, {Op: opExit, Rank: 0, Signal: int(unix.SIGTERM), Told: true}}, 1},
		"aborts by itself":       {[]report{follows, {Op: opExit, Rank: 0, Signal: int(unix.SIGABRT)}}, 1},
		"no Finalize":            {[]report{{Op: opExit, Rank: 1, Status: 5}, {Op: opExit, Rank: 0}}, 1},
		"the first status":       {[]report{{Op: opExit, Rank: 0, Status: 3}, follows}, 3},
		"the first signal":       {[]report{killed, {Op: opExit, Rank: 1, Signal: int(unix.SIGSEGV)}}, 137},
	} {
		for _, goOn := range []bool{false, true} {
			p, err := makePlan(Config{Program: "p", Ranks: 3}, machine{cpus: 1})
			if err != nil {
				t.Fatal(err)
			}
			j := newJob(Config{KeepGoing: goOn}, p, &outputFiles{})
			j.rankTable.begun = true
			for i := range j.rankTable.ranks {
				j.rankTable.ranks[i].joined = true
			}
			for _, r := range c.reports {
				j.handleReport(&link{}, r)
			}
			j.stdin.close()
			if got := ExitCode(cmp.Or(j.failure, j.borne)); got != c.want {
				t.Errorf("%s, going on %v: exit status %d, want %d", name, goOn, got, c.want)
			}
		}
	}
}

// A ghost that was killed is the cause though all ranks have ended because of it before it was
// heard of. One that was told to end with them is none, and neither is one of a job that has
// ended well.
func TestJob_causeIsGhost(t *testing.T) {
	for _, c := range []struct {
		status int // of the ranks
		told   bool
		want   int
	}{{1, false, 137}, {1, true, 1}, {0, false, 0}} {
		for _, goOn := range []bool{false, true} {
			p, err := makePlan(Config{Program: "p", Ranks: 2, Ghosts: 1}, machine{cpus: 1})
			if err != nil {
				t.Fatal(err)
			}
			j := newJob(Config{KeepGoing: goOn}, p, &outputFiles{})
			j.rankTable.begun = true
			for rank := range 2 {
				j.handleReport(&link{}, report{Op: opExit, Rank: rank, Status: c.status})
			}
			j.finish()
			j.handleReport(&link{}, report{Op: opExit, Rank: 2, Signal: int(unix.SIGKILL), Told: c.told})
			j.stdin.close()
			if got := ExitCode(cmp.Or(j.failure, j.borne)); got != c.want {
				t.Errorf("%+v, going on %v: exit status %d", c, goOn, got)
			}
		}
	}
}

// That a ghost was killed is told, once, also where all ranks have ended well before it was heard of:
// the last ones may not have needed it any more. One that ended with them is no loss.
func TestJob_tellsOfLateGhost(t *testing.T) {
	for _, failure := range config.GhostFailures {
		for _, c := range []struct {
			report
			want string
		}{
			{report{Signal: int(unix.SIGKILL)}, "killed by signal 9"},
			{report{Status: 2}, "exited with status 2"},
			{report{Signal: int(unix.SIGKILL), Told: true}, ""},
			{report{Status: 1, Told: true}, ""},
			{report{}, ""},
		} {
			p, err := makePlan(Config{Program: "p", Ranks: 2, Ghosts: 1}, machine{cpus: 1})
			if err != nil {
				t.Fatal(err)
			}
			var errOut safeBuffer
			j := newJob(Config{Env: []string{config.EnvGhostFailure + "=" + failure.Name}, Stderr: &errOut}, p, &outputFiles{})
			j.rankTable.begun = true
			for rank := range 2 {
				j.handleReport(&link{}, report{Op: opExit, Rank: rank})
			}
			j.finish()
			c.Op, c.Rank = opExit, 2
			j.handleReport(&link{}, c.report)
			j.handleReport(&link{}, c.report)
			j.stdin.close()
			text := errOut.String()
			if told := strings.Count(text, "xrun: ghost 0 "); j.failure != nil || told != min(len(c.want), 1) || !strings.Contains(text, c.want) {
				t.Errorf("%s, %+v: %v, %q", failure.Name, c.report, j.failure, text)
			}
		}
	}
}

// A process that was killed need not have died yet when its agent ends all: it was not told to end. That of
// the test stands still on its way out, as one does that has no processor.
func TestRank_killedBeforeItIsTold(t *testing.T) {
	runtime.LockOSThread() // which traces the process
	defer runtime.UnlockOSThread()
	for _, killed := range []bool{true, false} {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Ptrace: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		stops := func() {
			if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		stops() // at the start of the program
		if err := errors.Join(unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACEEXIT), unix.PtraceCont(pid, 0)); err != nil {
			t.Fatal(err)
		}
		if killed {
			_ = unix.Kill(pid, unix.SIGKILL)
			stops() // on its way out
		}
		r := &rank{cmd: cmd}
		r.end(unix.SIGKILL)
		if !killed {
			stops()
		}
		if err := unix.PtraceDetach(pid); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != unix.SIGKILL || (r.told == 0) != killed {
			t.Errorf("killed %v: told to end with signal %d, %v", killed, int(r.told), cmd.ProcessState)
		}
	}
}

// A ghost that was killed does not end a job whose ranks may serve themselves: they are told, and
// it is not the cause of what comes later.
func TestJob_outlivesGhost(t *testing.T) {
	c := Config{Program: "p", Ranks: 2, Ghosts: 1, Env: []string{config.EnvGhostFailure + "=fallback"}}
	p, err := makePlan(c, machine{cpus: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, begun := range []bool{true, false} {
		j := newJob(c, p, &outputFiles{})
		j.rankTable.begun = begun
		j.handleReport(&link{}, report{Op: opExit, Rank: 2, Signal: int(unix.SIGKILL)})
		if (j.failure == nil) != begun {
			t.Errorf("begun %v: %v", begun, j.failure)
		}
		j.stdin.close()
	}
}

// The host of a rank that was killed is slow to say so, and a rank on another host is not.
func TestRun_causeOnASlowHost(t *testing.T) {
	const script = `
		if [ $XWARP_RANK = 0 ]; then echo $PPID $$ > "$0"; exec sleep 1000; fi
		until read agent victim < "$0"; do sleep 0.01; done 2>/dev/null
		kill -STOP $agent; kill -KILL $victim
		env -u XWARP_JOB -u XWARP_TEST_MARK setsid sh -c "while kill -0 $$; do sleep 0.01; done; kill -CONT $agent" >/dev/null 2>&1 &
		exit 1`
	c := Config{Program: "sh", Args: []string{"-c", script, filepath.Join(t.TempDir(), "up")}}
	c.Hosts, c.Launcher = []Host{{Name: "a"}, {Name: "b"}}, []string{self, "as-launcher"}
	c.Agent, c.Device, c.Fabric = []string{self, AgentArg}, "lo", "udp"
	_, err := runJob(t, c)
	if re, ok := errors.AsType[*RankError](err); !ok || re.Rank != 0 || re.Signal != unix.SIGKILL {
		t.Error(err)
	}
}

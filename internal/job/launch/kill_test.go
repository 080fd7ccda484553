package launch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

// controller is a process that runs a job.
type controller struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *bufio.Reader
	pipe *os.File // that out reads
	err  safeBuffer
	mark string
}

func startController(t *testing.T, c Config, uid uint32) *controller {
	t.Helper()
	ctl := &controller{t: t, mark: setMark(t)}
	config, err := json.Marshal(jobSpec{c.Program, c.Args, c.Ranks, c.Testbed, c.Hosts, c.Device, c.Fabric, c.Queues, c.Launcher, c.Agent})
	if err != nil {
		t.Fatal(err)
	}
	ctl.cmd = exec.Command(self, "as-controller", string(config))
	ctl.cmd.Dir = "/"
	ctl.cmd.Stderr = &ctl.err
	ctl.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid != 0 {
		ctl.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	out, err := ctl.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	ctl.out, ctl.pipe = bufio.NewReader(out), out.(*os.File)
	in, err := ctl.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ctl.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() }) // ends it, as the end of the test process does
	return ctl
}

// expect reads n lines of output.
func (c *controller) expect(n int, want string) {
	c.t.Helper()
	for range n {
		line, err := c.out.ReadString('\n')
		if err != nil || line != want+"\n" {
			c.t.Fatalf("got %q, %v; want %q; %s", line, err, want, c.err.String())
		}
	}
}

func (c *controller) signal(sig unix.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// wait waits for the end, and for nothing to be left, and returns the exit
// status as a shell shows it.
func (c *controller) wait() int {
	c.t.Helper()
	_, _ = io.Copy(io.Discard, c.out)
	_ = c.cmd.Wait()
	awaitNone(c.mark)
	for namespaces(c.cmd.Process.Pid) > 0 {
		time.Sleep(time.Millisecond)
	}
	ws := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// namespaces counts the namespaces of testbeds that a process has made.
func namespaces(pid int) int {
	entries, _ := os.ReadDir("/run/netns")
	n := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), fmt.Sprintf("xwarp-%d-", pid)) {
			n++
		}
	}
	return n
}

// find returns the processes of the job that play a part.
func (c *controller) find(part string) []int {
	var pids []int
	for _, p := range withMark(c.mark) {
		var pid int
		if _, err := fmt.Sscan(p, &pid); err == nil && strings.HasPrefix(p, fmt.Sprintf("%d %s %s ", pid, self, part)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// places are the ways to run that must all clean up.
func places(t *testing.T, ranks int, mode string, fn func(*testing.T, Config)) {
	c := rankConfig(ranks, mode, "wait")
	t.Run("local", func(t *testing.T) { fn(t, c) })
	t.Run("testbed", func(t *testing.T) {
		testenv.NeedRoot(t)
		c := c
		c.Testbed = 2
		fn(t, c)
	})
	t.Run("shared", func(t *testing.T) {
		testenv.NeedRoot(t)
		c := c
		c.Testbed, c.Queues = 2, QueuesShared
		fn(t, c)
	})
	t.Run("hosts", func(t *testing.T) {
		c := c
		c.Hosts, c.Launcher = []Host{{Name: "a", Slots: 0}, {Name: "b", Slots: 0}}, []string{self, "as-launcher"}
		c.Agent, c.Device, c.Fabric = []string{self, AgentArg}, "lo", "udp"
		fn(t, c)
	})
}

func TestKill_controller(t *testing.T) {
	places(t, 3, "leavechild", func(t *testing.T, c Config) {
		ctl := startController(t, c, 0)
		ctl.expect(3, "up")
		if c.Testbed > 0 && namespaces(ctl.cmd.Process.Pid) == 0 {
			t.Error("no namespaces while the job runs")
		}
		ctl.signal(unix.SIGKILL)
		if status := ctl.wait(); status != 137 {
			t.Errorf("status %d", status)
		}
	})
}

func TestKill_agent(t *testing.T) {
	places(t, 3, "leavechild", func(t *testing.T, c Config) {
		if c.Hosts != nil {
			// Nobody is left on that machine to kill what the ranks have
			// started themselves.
			c.Args = []string{"as-rank", "signals"}
		}
		ctl := startController(t, c, 0)
		ctl.expect(3, "up")
		agents := ctl.find(AgentArg)
		if len(agents) == 0 {
			t.Fatal("no agents")
		}
		if err := unix.Kill(agents[0], unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if status := ctl.wait(); status != ExitLauncher || !strings.Contains(ctl.err.String(), "lost its agent (signal: killed)") {
			t.Errorf("status %d, %s", status, ctl.err.String())
		}
	})
}

func TestKill_rank(t *testing.T) {
	places(t, 3, "leavechild", func(t *testing.T, c Config) {
		ctl := startController(t, c, 0)
		ctl.expect(3, "up")
		ranks := ctl.find("as-rank leavechild")
		if len(ranks) != 3 {
			t.Fatalf("ranks %v", ranks)
		}
		victim := ranks[1]
		if err := unix.Kill(victim, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("(process %d on ", victim)
		if status := ctl.wait(); status != 137 || !strings.Contains(ctl.err.String(), want) {
			t.Errorf("status %d, %s; want %s", status, ctl.err.String(), want)
		}
	})
}

func TestSignal_endsTheJob(t *testing.T) {
	places(t, 3, "leavechild", func(t *testing.T, c Config) {
		for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
			ctl := startController(t, c, 0)
			ctl.expect(3, "up")
			ctl.signal(sig)
			if status := ctl.wait(); status != 128+int(sig) || !strings.Contains(ctl.err.String(), "after "+unix.SignalName(sig)) {
				t.Errorf("%v: status %d, %s", sig, status, ctl.err.String())
			}
		}
	})
}

func TestSignal_isPassedOn(t *testing.T) {
	places(t, 2, "signals", func(t *testing.T, c Config) {
		ctl := startController(t, c, 0)
		ctl.expect(2, "up")
		ctl.signal(unix.SIGUSR1)
		ctl.expect(2, "got user defined signal 1")
		ctl.signal(unix.SIGINT) // which these ranks handle
		ctl.expect(2, "got interrupt")
		ctl.signal(unix.SIGUSR2)
		ctl.expect(2, "got user defined signal 2")
		if status := ctl.wait(); status != 0 {
			t.Errorf("status %d, %s", status, ctl.err.String())
		}
	})
}

// At SIGQUIT it is said what the ranks do, and the job goes on.
func TestSignal_quit(t *testing.T) {
	places(t, 2, "signals", func(t *testing.T, c Config) {
		ctl := startController(t, c, 0)
		ctl.expect(2, "up")
		for n := 1; n <= 2; n++ {
			ctl.signal(unix.SIGQUIT)
			for strings.Count(ctl.err.String(), "as-rank signals") < 2*n {
				time.Sleep(time.Millisecond)
			}
		}
		ctl.signal(unix.SIGUSR2)
		ctl.expect(2, "got user defined signal 2")
		status, text := ctl.wait(), ctl.err.String()
		if status != 0 || strings.Count(text, "xrun: what the ranks do ") != 2 || strings.Count(text, "no rank of MPI, or not yet\n") != 4 {
			t.Errorf("status %d, %s", status, text)
		}
	})
}

// Ctrl-Z and fg: the ranks stop before their launcher, and go on with it.
func TestSignal_stopsAndContinues(t *testing.T) {
	places(t, 2, "signals", func(t *testing.T, c Config) {
		ctl := startController(t, c, 0)
		ctl.expect(2, "up")
		for range 2 {
			ctl.signal(unix.SIGTSTP)
			awaitState(t, ctl.cmd.Process.Pid, 'T')
			ranks := ctl.find("as-rank")
			if len(ranks) != 2 {
				t.Errorf("%d ranks", len(ranks))
			}
			for _, pid := range ranks {
				awaitState(t, pid, 'T')
			}
			ctl.signal(unix.SIGCONT)
			ctl.signal(unix.SIGUSR1)
			ctl.expect(2, "got user defined signal 1")
		}
		ctl.signal(unix.SIGTSTP)
		awaitState(t, ctl.cmd.Process.Pid, 'T')
		ctl.signal(unix.SIGTERM)
		ctl.signal(unix.SIGCONT)
		if status := ctl.wait(); status != 128+15 {
			t.Errorf("status %d, %s", status, ctl.err.String())
		}
	})
}

// awaitState waits until a process is in a state, as proc(5) has it.
func awaitState(t *testing.T, pid int, state byte) {
	t.Helper()
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if b = b[bytes.LastIndexByte(b, ')')+2:]; b[0] == state {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestSignal_secondOneKills(t *testing.T) {
	places(t, 2, "signals", func(t *testing.T, c Config) {
		ctl := startController(t, c, 0)
		ctl.expect(2, "up")
		ctl.signal(unix.SIGINT)
		ctl.expect(2, "got interrupt")
		ctl.signal(unix.SIGINT)
		if status := ctl.wait(); status != ExitLauncher || !strings.Contains(ctl.err.String(), ErrKilled.Error()) {
			t.Errorf("status %d, %s", status, ctl.err.String())
		}
	})
}

func TestSignal_whileStarting(t *testing.T) {
	c := rankConfig(2, "signals")
	c.Hosts, c.Launcher = []Host{{Name: "a", Slots: 0}, {Name: "silent", Slots: 0}}, []string{self, "as-launcher"}
	c.Agent, c.Device, c.Fabric = []string{self, AgentArg}, "lo", fabricUDP // for which no host waits for another
	ctl := startController(t, c, 0)
	ctl.expect(1, "up")
	ctl.signal(unix.SIGINT)
	if status := ctl.wait(); status != 130 || !strings.Contains(ctl.err.String(), "interrupted by SIGINT while") {
		t.Errorf("status %d, %s", status, ctl.err.String())
	}
}

func TestRun_rankIgnoresSIGTERM(t *testing.T) {
	c := Config{Ranks: 2, Program: "sh", Args: []string{"-c", `[ $XWARP_RANK = 1 ] && exit 4; trap "" TERM; while :; do sleep 1; done`}}
	if _, err := runJob(t, c); ExitCode(err) != 4 {
		t.Errorf("%v", err)
	}
}

func TestRun_asAnOrdinaryUser(t *testing.T) {
	const nobody = 65534
	uid := uint32(nobody)
	if os.Geteuid() != 0 {
		uid = 0 // stay who we are
	}
	for _, c := range []Config{
		{Ranks: 3},
		{Ranks: 4, Testbed: 2},
	} {
		c.Program, c.Args = self, []string{"as-rank", "exchange"}
		ctl := startController(t, c, uid)
		lines := 0
		for ; ; lines++ {
			if _, err := ctl.out.ReadString('\n'); err != nil {
				break
			}
		}
		if status := ctl.wait(); status != 0 || lines != c.Ranks {
			t.Errorf("status %d, %d lines, %s", status, lines, ctl.err.String())
		}
		notice := strings.TrimSpace(ctl.err.String())
		if strings.Contains(notice, "\n") || !strings.Contains(notice, "on this host") || (c.Testbed > 0) != strings.Contains(notice, "not root") {
			t.Errorf("notice %q", notice)
		}
	}
}

// Nobody reads what the job prints. Ctrl-C ends it all the same, if it is pressed again.
func TestSignal_withoutAReader(t *testing.T) {
	places(t, 2, "", func(t *testing.T, c Config) {
		c.Program, c.Args = "yes", nil
		ctl := startController(t, c, 0)
		for pending := 0; pending < 32<<10; { // of 64 KiB
			var err error
			if pending, err = unix.IoctlGetInt(int(ctl.pipe.Fd()), unix.TIOCINQ); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		ended := make(chan struct{})
		go func() {
			_ = ctl.cmd.Wait()
			close(ended)
		}()
		for more := true; more; {
			_ = ctl.cmd.Process.Signal(unix.SIGINT)
			select {
			case <-ended:
				more = false
			case <-time.After(10 * time.Millisecond):
			}
		}
		if status := ctl.wait(); status != ExitLauncher && status != 128+int(unix.SIGINT) {
			t.Errorf("status %d, %s", status, ctl.err.String())
		}
	})
}

package mpi_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// Real processes that really die, and networks that really are down for a while.

// Arguments that make the test binary a rank that survives others, and xrun.
const (
	asSurvivor   = "as-survivor"
	asController = "as-controller"
)

// Environment of a survivor.
const (
	envVictim = "XWARP_TEST_VICTIM" // the rank that does it
	envDoes   = "XWARP_TEST_DOES"   // what: see deeds
	envAfter  = "XWARP_TEST_AFTER"  // when: microseconds after it has joined
	envRounds = "XWARP_TEST_ROUNDS" // how many rounds all work
	envMet    = "XWARP_TEST_MET"    // "1": not before all have joined
)

func envInt(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

// survivor is a rank that goes on when others die. Meanwhile one of them does
// something bad.
func survivor(p *mpi.Proc) error {
	if os.Getenv(envMet) == "1" {
		if err := p.World().Barrier(); err != nil {
			return err
		}
	}
	work, rounds := turns, envInt(envRounds)
	if p.World().Rank() == envInt(envVictim) {
		does := os.Getenv(envDoes)
		done := make(chan struct{})
		time.AfterFunc(time.Duration(envInt(envAfter))*time.Microsecond, func() {
			deeds[does]()
			if !strings.HasPrefix(does, "kill ") { // the kernel takes a moment to kill
				close(done)
			}
		})
		work = func(c *mpi.Comm, round int) error {
			if round == rounds-1 {
				<-done // however late the deed comes, the job is not over before
			}
			return turns(c, round)
		}
	}
	c, err := survive(func(string) {}, p.World(), rounds, work, minutes{})
	if err != nil {
		return fmt.Errorf("rank %d: %w", p.World().Rank(), err)
	}
	fmt.Printf("%d are left\n", c.Size())
	return nil
}

// turns is a round of work that takes turns, for machines with fewer processors
// than ranks: messages go round, and all agree on what came of it.
func turns(c *mpi.Comm, round int) error { return sums(c, round%3) }

// deeds are what may happen to a job.
var deeds = map[string]func(){
	"kill rank":  func() { kill(os.Getpid()) },
	"kill agent": func() { kill(os.Getppid()) },
	"kill xrun":  func() { kill(parentOf(os.Getppid())) },
	"link":       func() { flap(10 * time.Millisecond) },
	"second":     func() { flap(time.Second) },
	"minute":     func() { flap(time.Minute) },
}

func kill(pid int) {
	if pid < 2 {
		panic("no process " + strconv.Itoa(pid))
	}
	_ = unix.Kill(pid, unix.SIGKILL)
}

// parentOf returns the parent of a process, or 0 if that is gone.
func parentOf(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "PPid:\t")
	line, _, _ := strings.Cut(rest, "\n")
	parent, _ := strconv.Atoi(line)
	return parent
}

// flap sets the network device of this host down for a while.
func flap(d time.Duration) {
	err := setLink(false)
	time.Sleep(d)
	if err = errors.Join(err, setLink(true)); err != nil {
		panic(err)
	}
}

func setLink(up bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(os.Getenv(config.EnvDevice))
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	flags := req.Uint16() &^ unix.IFF_UP
	if up {
		flags |= unix.IFF_UP
	}
	req.SetUint16(flags)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// survivors describes a job of survivors.
func survivors(victim int, does string, after time.Duration, rounds int) launch.Config {
	return launch.Config{
		Program: "/proc/self/exe", Args: []string{asSurvivor}, Ranks: 4, KeepGoing: true,
		Agent: []string{"/proc/self/exe", launch.AgentArg},
		Env: []string{
			fmt.Sprintf("%s=%d", envVictim, victim), envDoes + "=" + does,
			fmt.Sprintf("%s=%d", envAfter, after.Microseconds()), fmt.Sprintf("%s=%d", envRounds, rounds),
		},
	}
}

// networks are where real jobs are put to the test.
func networks(t *testing.T, fn func(t *testing.T, c launch.Config)) { networksBut("", t, fn) }

// ghostNetworks are those of jobs with ghosts, which share a queue over AF_XDP in any case: see launchJob.
func ghostNetworks(t *testing.T, fn func(t *testing.T, c launch.Config)) {
	networksBut("shared queue", t, fn)
}

func networksBut(but string, t *testing.T, fn func(t *testing.T, c launch.Config)) {
	for _, n := range []struct {
		name string
		c    launch.Config
	}{
		{"local", launch.Config{Fabric: "udp"}},
		{"udp", launch.Config{Fabric: "udp", Testbed: 2}},
		{"xdp", launch.Config{Fabric: "xdp", Testbed: 2, Queues: launch.QueuesPerRank}},
		{"shared queue", launch.Config{Fabric: "xdp", Testbed: 2, Queues: launch.QueuesShared}},
	} {
		if n.name == but || slow && n.name != "local" && n.name != "xdp" { // what lies beneath has no goroutines
			continue
		}
		t.Run(n.name, func(t *testing.T) {
			if n.c.Testbed > 0 {
				testenv.NeedRoot(t)
			}
			fn(t, n.c)
		})
	}
}

// launchJob runs a job and sees to it that nothing is left of it.
func launchJob(t *testing.T, c launch.Config, on launch.Config) (stdout, stderr string, err error) {
	t.Helper()
	mark := "XWARP_TEST_MARK=" + rand.Text()
	c.Fabric, c.Testbed, c.Queues, c.Ghosts = on.Fabric, on.Testbed, on.Queues, on.Ghosts
	if c.Ghosts > 0 && c.Queues == launch.QueuesPerRank {
		c.Queues = launch.QueuesShared // ghosts and the ranks of their host have memory in common
	}
	c.Env = append(append(c.Env, mark), on.Env...)
	var out, errOut lockedBuffer
	c.Stdout, c.Stderr = &out, &errOut
	stop := tellWhereJobStands(t, mark)
	err = launch.Run(c)
	if !stop() { // at once: what a test has logged is lost when go test gives up
		_, _ = fmt.Fprint(os.Stderr, t.Name(), " stood still: ", err, "\n", out.String(), errOut.String())
		t.FailNow()
	}
	nothingLeft(t, mark, os.Getpid())
	return out.String(), errOut.String(), err
}

// tellWhereJobStands has the processes of a job print their stacks shortly before go test gives up, which
// shows that this process waits for them, and not what they wait for. It ends them: first the ranks, then
// the agents, if these wait for something else.
func tellWhereJobStands(t *testing.T, mark string) (stop func() bool) {
	deadline, ok := t.Deadline()
	if !ok {
		return func() bool { return true }
	}
	left := time.Until(deadline)
	before := min(left/10, time.Minute)
	timer := time.AfterFunc(left-before, func() {
		for _, agents := range []bool{false, true} {
			for _, pid := range processesOf(mark) {
				args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				if bytes.Contains(args, []byte(launch.AgentArg)) == agents {
					_ = unix.Kill(pid, unix.SIGQUIT)
				}
			}
			time.Sleep(before / 3)
		}
	})
	return timer.Stop
}

// nothingLeft waits for the end of all processes with the mark and of all
// namespaces of an owner. They go by themselves, and soon.
func nothingLeft(t *testing.T, mark string, owner int) {
	t.Helper()
	for first := true; ; first = false {
		left := leftOf(mark, owner)
		if len(left) == 0 {
			return
		}
		if first {
			t.Logf("still there: %v", left)
		}
		time.Sleep(time.Millisecond)
	}
}

// processesOf returns the processes that have the mark in their environment, but this one.
func processesOf(mark string) (pids []int) {
	processes, _ := os.ReadDir("/proc")
	for _, e := range processes {
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && bytes.Contains(env, []byte(mark)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func leftOf(mark string, owner int) (left []string) {
	for _, pid := range processesOf(mark) {
		left = append(left, fmt.Sprint("process ", pid))
	}
	spaces, _ := os.ReadDir("/run/netns")
	for _, e := range spaces {
		if strings.HasPrefix(e.Name(), fmt.Sprintf("xwarp-%d-", owner)) {
			left = append(left, "namespace "+e.Name())
		}
	}
	return left
}

// lockedBuffer is written to by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// moments are when a deed is done: early, late, and between.
func moments(n int) (after []time.Duration) {
	for i := range n {
		after = append(after, time.Duration(i*i)*time.Millisecond)
	}
	return after
}

// TestProcess_rankIsKilled: the others go on to the end, and xrun tells of it.
func TestProcess_rankIsKilled(t *testing.T) {
	networks(t, func(t *testing.T, on launch.Config) {
		for i, after := range moments(4) {
			victim := i % 4
			if i == 2 { // large messages are read
				on.Env = append(on.Env, mpi.EnvRendezvous+"=read")
			}
			out, errOut, err := launchJob(t, survivors(victim, "kill rank", after, 60), on)
			var re *launch.RankError
			if !errors.As(err, &re) || re.Rank != victim || re.Signal != unix.SIGKILL || out != strings.Repeat("3 are left\n", 3) {
				t.Errorf("rank %d is killed after %v: %v, %q, %s", victim, after, err, out, errOut)
			}
		}
	})
}

// TestProcess_rankEndsTheJob is the same for those who do not ask to survive.
func TestProcess_rankEndsTheJob(t *testing.T) {
	networks(t, func(t *testing.T, on launch.Config) {
		for i, after := range moments(3) {
			c := survivors(i, "kill rank", after, 1_000_000)
			c.KeepGoing = false
			_, errOut, err := launchJob(t, c, on)
			var re *launch.RankError
			if !errors.As(err, &re) || re.Rank != i || re.Signal != unix.SIGKILL {
				t.Errorf("rank %d is killed after %v: %v, %s", i, after, err, errOut)
			}
		}
	})
}

// TestProcess_agentIsKilled: its ranks die with it, the others go on.
func TestProcess_agentIsKilled(t *testing.T) {
	networks(t, func(t *testing.T, on launch.Config) {
		for i, after := range moments(3) {
			out, errOut, err := launchJob(t, survivors(i, "kill agent", after, 60), on)
			var he *launch.HostError
			left := strings.Count(out, "\n") // how many ranks one agent has depends on the network
			want := strings.Repeat(fmt.Sprintf("%d are left\n", left), left)
			if !errors.As(err, &he) || out != want || (left > 0) != (on.Testbed > 0) || left > 3 {
				t.Errorf("the agent of rank %d is killed after %v: %v, %q, %s", i, after, err, out, errOut)
			}
		}
	})
}

// controllerMain is xrun for survivors with an environment, a fabric and a testbed.
func controllerMain() int {
	var env []string
	if err := json.Unmarshal([]byte(os.Args[2]), &env); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := survivors(0, "", 0, 0)
	c.Env, c.Fabric = env, os.Args[3]
	c.Testbed, _ = strconv.Atoi(os.Args[4])
	c.Queues = launch.Queues(os.Args[5])
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	go func() { // nothing is left of a test that dies
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	return launch.ExitCode(launch.Run(c))
}

// TestProcess_xrunIsKilled: nothing is left of the job.
func TestProcess_xrunIsKilled(t *testing.T) {
	networks(t, func(t *testing.T, on launch.Config) {
		for i, after := range moments(3) {
			c := survivors(i, "kill xrun", after, 1_000_000)
			mark := "XWARP_TEST_MARK=" + rand.Text()
			env, err := json.Marshal(append(c.Env, mark))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/proc/self/exe", asController, string(env), on.Fabric, strconv.Itoa(on.Testbed), string(on.Queues))
			var errOut lockedBuffer
			cmd.Stderr = &errOut
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			in.Close()
			nothingLeft(t, mark, cmd.Process.Pid)
			if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != unix.SIGKILL {
				t.Errorf("xrun is killed after %v: it ended with %v, %s", after, cmd.ProcessState, errOut.String())
			}
		}
	})
}

// TestProcess_linkIsDown sets the network device of one host down, for a moment and
// for a second: nobody notices but by the clock. XWARP_LONG=1 does it for a minute.
// All have joined by then: Init needs a way to all hosts, and says so when there is none.
func TestProcess_linkIsDown(t *testing.T) {
	times := []string{"link", "second"}
	if os.Getenv("XWARP_LONG") == "1" {
		times = append(times, "minute")
	}
	networks(t, func(t *testing.T, on launch.Config) {
		if on.Testbed == 0 {
			t.Skip("the device of this machine stays up")
		}
		for _, does := range times {
			start := time.Now()
			c := survivors(3, does, 5*time.Millisecond, 300)
			c.Env = append(c.Env, envMet+"=1")
			out, errOut, err := launchJob(t, c, on)
			if err != nil || out != strings.Repeat("4 are left\n", 4) {
				t.Errorf("%s: %v, %q, %s", does, err, out, errOut)
			}
			t.Logf("%s: the job took %v", does, time.Since(start))
		}
	})
}

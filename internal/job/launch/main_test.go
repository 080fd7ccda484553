package launch

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/boot/pmi"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// The test binary plays all parts: agent, rank, launcher and controller.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case AgentArg:
			os.Exit(AgentMain(os.Stdin, os.Stdout))
		case "as-rank":
			os.Exit(rankMain(os.Args[2], os.Args[3:]))
		case "as-launcher":
			os.Exit(launcherMain(os.Args[2], os.Args[3:]))
		case "as-inside":
			os.Exit(insideMain(os.Args[2], os.Args[3], os.Args[4:]))
		case "as-polling":
			os.Exit(pollMain(os.Args[2], os.Args[3]))
		case "as-controller":
			os.Exit(controllerMain(os.Args[2]))
		}
	}
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector's second at every exit adds up
	}
	heedSignals()
	os.Exit(m.Run())
}

// heedSignals sees to it that children die of signals that this process ignores, as
// nohup(1) and shells let it that run it in the background.
func heedSignals() {
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig) // a handler does not outlive exec(2)
		}
	}
}

// self is the program that agents run as rank. It works for every user, where
// the path of the test binary may not.
const self = "/proc/self/exe"

// rankMain is a rank. What it does is mode.
func rankMain(mode string, args []string) int {
	number, _ := strconv.Atoi(os.Getenv(config.EnvRank))
	victim := -1
	if len(args) > 0 {
		victim, _ = strconv.Atoi(args[0])
	}
	switch mode {
	case "exchange":
		return exchangeMain(boot.Join())
	case "pmiexchange":
		return exchangeMain(pmi.Join(os.Stderr))
	case "pmiabort", "pmidie", "pmileave", "pmigarbage", "pmistay":
		return pmiMain(mode, number == victim)
	case "env":
		fmt.Println(os.Getenv(args[0]))
	case "lines":
		for i := range 500 {
			fmt.Printf("<%d %d %s>\n", number, i, strings.Repeat("x", i))
		}
	case "noeol":
		fmt.Print("no newline")
	case "longline":
		return longLineMain(number == victim, args[1])
	case "diewithout":
		if number != victim {
			forever()
		}
		fmt.Print("no newline")
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case "die": // before joining
		return dieMain(number, victim, args[1])
	case "joinandleave", "joinanddie", "abort", "fencealone", "garbage", "hang":
		return joinedMain(mode, number, victim)
	case "outlive", "missing":
		return outliveMain(mode, number, victim)
	case "signals":
		return signalsMain()
	case "stdin":
		n := 0
		buf := make([]byte, 1000)
		for {
			k, err := os.Stdin.Read(buf)
			n += k
			if err != nil {
				break
			}
		}
		fmt.Println("read", n)
	case "leavechild":
		child := exec.Command(self, "as-rank", "sleep")
		child.Stdout = os.Stdout
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return 1
		}
		if len(args) > 0 {
			fmt.Println("up")
			forever()
		}
	case "sleep":
		for {
			time.Sleep(time.Hour)
		}
	case "cpus":
		var set unix.CPUSet
		_ = unix.SchedGetaffinity(0, &set)
		var cpus []int
		for cpu := range maxCPUs {
			if set.IsSet(cpu) {
				cpus = append(cpus, cpu)
			}
		}
		fmt.Println("cpus", cpus)
	}
	return 0
}

// pmiMain is a rank that speaks PMI-1, and the victim how it fails.
func pmiMain(mode string, victim bool) int {
	j, err := pmi.Join(os.Stderr)
	switch {
	case err != nil:
		fmt.Println(err)
		return 1
	case mode == "pmistay":
		forever()
	case !victim:
		_ = j.Fence()
		return 1 // nobody completes it
	case mode == "pmiabort":
		j.Abort(77, "because")
	case mode == "pmidie":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case mode == "pmigarbage":
		_, _ = unix.Write(bootFD, []byte("cmd=dance\n"))
		forever()
	}
	return 0
}

func exchangeMain(j boot.Job, err error) int {
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for round := range 3 {
		key := fmt.Sprint("key", round)
		if err := j.Put(key, fmt.Sprintf("%d\x00\xff%d", j.Rank(), round)); err != nil {
			fmt.Println(err)
			return 1
		}
		if err := j.Fence(); err != nil {
			fmt.Println(err)
			return 1
		}
		for r := range j.Size() {
			if v, ok := j.Get(r, key); !ok || v != fmt.Sprintf("%d\x00\xff%d", r, round) {
				fmt.Printf("round %d: rank %d put %q\n", round, r, v)
				return 1
			}
		}
	}
	host, local := j.Host()
	fmt.Printf("rank %d of %d on %d.%d key %x\n", j.Rank(), j.Size(), host, local, j.Key())
	if err := j.Finalize(); err != nil {
		return 1
	}
	return 0
}

func dieMain(number, victim int, how string) int {
	if number != victim {
		forever()
	}
	fmt.Println("last words")
	status, err := strconv.Atoi(how)
	if err == nil {
		return status
	}
	_ = unix.Kill(os.Getpid(), unix.SignalNum(how))
	return forever()
}

// longLineMain writes one line in pieces, or many.
func longLineMain(long bool, size string) int {
	if !long {
		for range 5000 {
			fmt.Println("short")
		}
		return 0
	}
	n, _ := strconv.Atoi(size)
	piece := []byte(strings.Repeat("x", 10_000))
	for n > 0 {
		k, err := os.Stdout.Write(piece[:min(n, len(piece))])
		if err != nil {
			return 1
		}
		n -= k
	}
	fmt.Println()
	return 0
}

func joinedMain(mode string, number, victim int) int {
	j, err := boot.Join()
	if err != nil {
		return 1
	}
	if number == victim {
		switch mode {
		case "joinandleave":
			return 0
		case "joinanddie":
			return 5
		case "abort":
			j.Abort(77, "because")
		case "garbage":
			_ = j.Put("k", "v")
			_, _ = unix.Write(bootFD, []byte("garbage\n"))
		}
		forever()
	}
	if mode != "hang" {
		_ = j.Fence()
	}
	return forever()
}

// outliveMain is a rank that goes on when the victim dies.
func outliveMain(mode string, number, victim int) int {
	j, err := boot.Join()
	if err != nil || j.Fence() != nil {
		return 1
	}
	if number == victim {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		forever()
	}
	if mode == "missing" {
		_ = j.Fence() // which the victim would have to come to
		return 1
	}
	w := j.(boot.Witness)
	for len(w.Deaths(0)) == 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("told of", w.Deaths(0)[0], w.Deaths(1)) // others may have ended since
	if j.Finalize() != nil {
		return 1
	}
	return 0
}

func signalsMain() int {
	c := make(chan os.Signal, 8)
	signal.Notify(c, unix.SIGUSR1, unix.SIGUSR2, unix.SIGINT)
	fmt.Println("up")
	for s := range c {
		fmt.Println("got", s)
		if s == unix.SIGUSR2 {
			return 0
		}
	}
	return 1
}

// insideMain stands in for an ssh to hosts of a testbed, by their addresses.
func insideMain(prefix, host string, argv []string) int {
	last := host[strings.LastIndexAny(host, ".:")+1:]
	number, err := strconv.Atoi(last)
	if err == nil {
		err = testbed.DoIn(fmt.Sprintf("%s-h%d", prefix, number-1), func() error { return syscall.Exec(argv[0], argv, os.Environ()) })
	}
	fmt.Fprintln(os.Stderr, err)
	return 255
}

// forever does not return. A select without cases would end the process in a build without
// cgo, as where there is no C compiler: the runtime sees that nothing can ever wake it.
func forever() int {
	for {
		time.Sleep(time.Hour)
	}
}

// launcherMain stands in for ssh.
func launcherMain(host string, argv []string) int {
	switch {
	case strings.HasPrefix(host, "silent"):
		forever()
	case strings.HasPrefix(host, "broken"):
		return 255
	case strings.HasPrefix(host, "welcome"):
		fmt.Print("Welcome!\n\nYou have mail.\n")
	}
	err := syscall.Exec(argv[0], argv, append(os.Environ(), "ON_HOST="+host))
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, fs.ErrNotExist) {
		return 127 // as the shell there
	}
	return 255
}

// jobSpec is what a controller process is told of its Config.
type jobSpec struct {
	Program         string
	Args            []string
	Ranks, Testbed  int
	Hosts           []Host
	Device, Fabric  string
	Queues          Queues
	Launcher, Agent []string
}

// controllerMain runs a job that is given as JSON, with signals as cmd/xrun.
func controllerMain(config string) int {
	var s jobSpec
	if err := json.Unmarshal([]byte(config), &s); err != nil {
		return 125
	}
	c := Config{
		Program: s.Program, Args: s.Args, Ranks: s.Ranks, Testbed: s.Testbed,
		Hosts: s.Hosts, Device: s.Device, Fabric: s.Fabric, Queues: s.Queues, Launcher: s.Launcher, Agent: s.Agent,
	}
	c.Stdout, c.Stderr, c.Notice = os.Stdout, os.Stderr, os.Stderr
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGCONT)
	c.Signals = signals
	c.Suspend = func() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }
	go func() { // nothing is left of a test that dies
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	err := Run(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return ExitCode(err)
}

func rankConfig(n int, mode string, args ...string) Config {
	return Config{Program: self, Args: append([]string{"as-rank", mode}, args...), Ranks: n}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// runJob runs a job in this process and checks that nothing is left of it.
func runJob(t *testing.T, c Config) (stdout string, err error) {
	t.Helper()
	mark := setMark(t)
	var out, errOut safeBuffer
	c.Stdout, c.Stderr, c.Notice = &out, &errOut, &errOut
	err = Run(c)
	if left := withMark(mark); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if errOut.String() != "" {
		t.Logf("%s", errOut.String())
	}
	return out.String(), err
}

const markEnv = "XWARP_TEST_MARK"

// setMark makes all processes that the test starts from now on findable.
func setMark(t *testing.T) string {
	mark := rand.Text()
	t.Setenv(markEnv, mark)
	return markEnv + "=" + mark
}

// withMark describes the processes that carry the mark.
func withMark(mark string) []string {
	var found []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if strings.Contains(string(env), mark) {
			cmdline, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

func awaitNone(mark string) {
	for len(withMark(mark)) > 0 {
		time.Sleep(time.Millisecond)
	}
}

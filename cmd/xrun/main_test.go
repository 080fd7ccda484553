package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/mpi"
)

// The test binary is xrun when it is told to be, or when xrun starts it again
// as agent.
const xrunEnv = "XWARP_TEST_XRUN"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		mains := map[string]func() error{
			asRank: onWorld(rankMain), asDown: onWorld(downMain), asKiller: onWorld(killerMain), asSpread: onWorld(spreadMain),
			asPairs: onWorld(pairsMain), asLasting: onWorld(lastingMain), asLauncher: launcherMain, asHostile: hostileMain,
			asServed: onWorld(servedMain),
		}
		if rank := mains[os.Args[1]]; rank != nil {
			if err := rank(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	if what := os.Getenv(ringEnv); what != "" && (len(os.Args) < 2 || os.Args[1] != launch.GhostArg) {
		if err := ringMain(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(xrunEnv) != "" {
		limitData()
		main()
	}
	for _, name := range []string{"HYDRA_HOST_FILE", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "LSB_MCPU_HOSTS", "LSB_HOSTS", "PE_HOSTFILE", "PBS_NODEFILE"} {
		_ = os.Unsetenv(name) // the tests may run in an allocation, and are for this machine
	}
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector's second at every exit adds up
	}
	os.Exit(m.Run())
}

// onWorld is a rank that does something with all others.
func onWorld(fn func(*mpi.Comm) error) func() error {
	return func() error {
		p, err := mpi.Init()
		if err != nil {
			return err
		}
		if err := fn(p.World()); err != nil {
			return err
		}
		return p.Finalize()
	}
}

const self = "/proc/self/exe"

// launcher is what reaches the hosts of a testbed: the test binary, which goes there
// and becomes the command.
const (
	launcher   = self + " " + asLauncher
	asLauncher = "in-host"
)

func launcherMain() error {
	host, command := os.Args[2], os.Args[3:]
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return testbed.DoIn(host, func() error { return syscall.Exec(program, command, os.Environ()) })
}

// forever does not return. A select without cases would end the process in a build without
// cgo, as where there is no C compiler, if the runtime sees that nothing can wake it.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// xrun runs xrun and returns its output and exit status.
func xrun(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return finish(t, command(args...))
}

func command(args ...string) *exec.Cmd {
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), xrunEnv+"=1")
	return cmd
}

func finish(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, status int) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

func TestXrun_help(t *testing.T) {
	for _, arg := range []string{"-h", "--help", "-help"} {
		out, errOut, status := xrun(t, arg)
		if out != usage() || errOut != "" || status != 0 {
			t.Errorf("%s: status %d, %q", arg, status, errOut)
		}
	}
}

func TestXrun_saysWhatItUses(t *testing.T) {
	out, errOut, status := xrun(t, "-n", "2", "echo", "-n", "hi")
	if status != 0 || strings.ReplaceAll(out, "\n", "") != "hihi" {
		t.Errorf("status %d, %q", status, out)
	}
	if strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "xrun: 2 ranks on this host through shared memory (for AF_XDP: ") {
		t.Errorf("%q", errOut)
	}
	if _, errOut, _ := xrun(t, "--quiet", "true"); errOut != "" {
		t.Errorf("quiet: %q", errOut)
	}
}

func TestXrun_exitStatus(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		text   string
	}{
		{[]string{"sh", "-c", "exit 7"}, 7, "rank 0 (process "},
		{[]string{"-n", "3", "sh", "-c", "[ $XWARP_RANK != 2 ] || kill -TERM $$; sleep 1000"}, 143, "xrun: rank 2 (process "},
		{[]string{"--timeout", "100ms", "-n", "2", "sleep", "1000"}, 124, "has not ended after 100ms"},
		{[]string{"no-such-program-anywhere"}, 127, "no such program in PATH"},
		{[]string{"/etc/passwd"}, 126, "permission denied"},
		{[]string{}, 125, "no program to run\nxrun: see xrun --help"},
		{[]string{"--fabric", "carrier-pigeon", "true"}, 125, "unknown fabric"},
		{[]string{"--hosts", "h", "--launcher-exec", "sh -c cat>/dev/null", "--start-timeout", "100ms", "true"}, 124, "no answer from h after 100ms"},
		{[]string{"--hosts", "h", "--launcher-exec", "false", "true"}, 125, "host h: its agent did not start (exit status 1): try \"false h "},
	} {
		_, errOut, status := xrun(t, c.args...)
		if status != c.status || !strings.Contains(errOut, c.text) {
			t.Errorf("%q: status %d, %q; want %d, %q", c.args, status, errOut, c.status, c.text)
		}
	}
}

func TestXrun_stdin(t *testing.T) {
	cmd := command("-n", "2", "--tag-output", "cat")
	cmd.Stdin = strings.NewReader("a\nb\n")
	out, errOut, status := finish(t, cmd)
	if status != 0 || out != "[0] a\n[0] b\n" {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
}

// A line that a rank begins is not cut by those of others where there is no terminal,
// however long its end takes.
func TestXrun_wholeLines(t *testing.T) {
	over := t.TempDir() + "/over"
	if err := unix.Mkfifo(over, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "if [ $XWARP_RANK = 0 ]; then printf abc; read x <" + over + "; echo def; else sleep 0.5; echo x; echo >" + over + "; fi"
	out, errOut, status := xrun(t, "--quiet", "-n", "2", "bash", "-c", script)
	if status != 0 || out != "x\nabcdef\n" && out != "abcdef\nx\n" {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
}

func TestXrun_orderedOutput(t *testing.T) {
	out, errOut, status := xrun(t, "-n", "3", "-l", "--ordered-output", "--wdir", "/", "sh", "-c", "sleep 0.$((2-XWARP_RANK)); pwd; echo $XWARP_RANK")
	if status != 0 || out != "[0] /\n[0] 0\n[1] /\n[1] 1\n[2] /\n[2] 2\n" {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
}

func TestXrun_severalPrograms(t *testing.T) {
	say := func(name string) []string {
		return []string{"sh", "-c", "echo " + name + " $OWN $ALL $XWARP_RANK/$XWARP_SIZE"}
	}
	args := slices.Concat([]string{"--quiet", "--ordered-output", "-n", "2", "-env", "OWN", "x", "-genv", "ALL", "y"}, say("first"),
		[]string{":"}, say("second"), []string{":", "-n", "2", "-env", "OWN=z"}, say("third"))
	out, errOut, status := xrun(t, args...)
	if status != 0 || out != "first x y 0/5\nfirst x y 1/5\nsecond y 2/5\nthird z y 3/5\nthird z y 4/5\n" {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
	_, errOut, status = xrun(t, "--quiet", "sleep", "1000", ":", "no-such-program-anywhere")
	if status != 127 || !strings.Contains(errOut, "cannot run no-such-program-anywhere on ") {
		t.Errorf("status %d, %q", status, errOut)
	}
	_, errOut, status = xrun(t, "--quiet", "-n", "2", "sleep", "1000", ":", "sh", "-c", "exit 9")
	if status != 9 || !strings.Contains(errOut, "rank 2 (process ") {
		t.Errorf("status %d, %q", status, errOut)
	}
}

// Each program starts where it is told to, and is found from there.
func TestXrun_directories(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/sub/here", []byte("#!/bin/sh\npwd\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, errOut, status := xrun(t, "--quiet", "--ordered-output", "--wdir", dir, "pwd", ":", "-wdir", "sub", "./here", ":", "-wdir", "/", "pwd")
	if want := dir + "\n" + dir + "/sub\n/\n"; status != 0 || out != want {
		t.Errorf("status %d, %q, %q; want %q", status, out, errOut, want)
	}
}

func TestXrun_reportBindings(t *testing.T) {
	out, errOut, status := xrun(t, "-n", "2", "--bind-to", "core", "--report-bindings", "--ordered-output", "sh", "-c", "taskset -pc $$ | sed 's/.*: //'")
	for rank, cpus := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.Contains(errOut, fmt.Sprintf("xrun: rank %d on ", rank)) || !strings.Contains(errOut, " "+cpus+"\n") {
			t.Errorf("rank %d runs on %s, and it says %q", rank, cpus, errOut)
		}
	}
	if status != 0 || strings.Count(errOut, ": bound to processor") != 2 {
		t.Errorf("status %d, %q", status, errOut)
	}
}

func TestXrun_version(t *testing.T) {
	if out, errOut, status := xrun(t, "--version"); status != 0 || errOut != "" || !strings.HasPrefix(out, "xrun of xwarp, ") {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
}

// As in `xrun ... | head -1`: xrun ends like every other program.
func TestXrun_closedOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := command("-n", "2", "yes")
	cmd.Stdout = w
	if err := cmd.Run(); err == nil {
		t.Fatal("no error")
	}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGPIPE {
		t.Errorf("%v, want SIGPIPE", cmd.ProcessState)
	}
}

func TestXrun_asAnOrdinaryUser(t *testing.T) {
	cmd := command("-n", "4", "--testbed", "2", "--tag-output", "sh", "-c", "echo $XWARP_HOST $XWARP_FABRIC $XWARP_DEVICE")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	cmd.Dir = "/"
	out, errOut, status := finish(t, cmd)
	for rank, want := range []string{"0", "0", "1", "1"} {
		if line := fmt.Sprintf("[%d] %s udp lo\n", rank, want); !strings.Contains(out, line) {
			t.Errorf("no %q in %q", line, out)
		}
	}
	if status != 0 || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "not root, so no --testbed") {
		t.Errorf("status %d, %q", status, errOut)
	}
}

// As in a container without privileges.
func TestXrun_rootWithoutCapabilities(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give capabilities up")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("needs setpriv to give capabilities up")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command("-n", "2", "--testbed", "2", "sh", "-c", "echo $XWARP_FABRIC")
	cmd.Path, cmd.Args = setpriv, append([]string{setpriv, "--bounding-set=-sys_admin,-net_admin", exe}, cmd.Args[1:]...)
	out, errOut, status := finish(t, cmd)
	if status != 0 || out != "udp\nudp\n" || !strings.Contains(errOut, "no --testbed") {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
}

// This machine needs no ssh, whichever of its names is used.
func TestXrun_localhost(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	hostfile := t.TempDir() + "/hosts"
	if err := os.WriteFile(hostfile, []byte("localhost slots=2 max_slots=3\n"+name+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, status := xrun(t, "-n", "5", "--oversubscribe", "--hostfile", hostfile, "-l", "--fabric", "udp", "--device", "lo", "sh", "-c", "echo $XWARP_HOST.$XWARP_LOCAL_RANK")
	for rank, place := range []string{"0.0", "0.1", "0.2", "1.0", "1.1"} {
		if !strings.Contains(out, fmt.Sprintf("[%d] %s\n", rank, place)) {
			t.Errorf("rank %d is not at %s:\n%s", rank, place, out)
		}
	}
	if status != 0 {
		t.Errorf("status %d, %q", status, errOut)
	}
}

// Namespaces stand in for other machines.
func TestXrun_hosts(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	out, errOut, status := xrun(t, "-n", "2", "--tag-output", "--fabric", "udp", "--device", "xw0",
		"--hosts", tb.Hosts[0].Name+","+tb.Hosts[1].Name, "--launcher-exec", launcher, "-genv", "GREETING", "hello",
		"sh", "-c", "echo $GREETING $XWARP_HOST.$XWARP_LOCAL_RANK $XWARP_DEVICE; cat /proc/net/fib_trie")
	if status != 0 {
		t.Fatalf("status %d, %s", status, errOut)
	}
	for i, h := range tb.Hosts {
		if !strings.Contains(out, fmt.Sprintf("[%d] hello %d.0 xw0\n", i, i)) || !strings.Contains(out, h.Addr.String()) {
			t.Errorf("rank %d is not on %s:\n%s", i, h.Name, out)
		}
	}
}

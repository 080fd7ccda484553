package testbed

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/proc"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// The test binary executed again with this variable owns a testbed, prints its
// name and waits to be killed.
const ownerEnv = "XWARP_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) != "" {
		ownTestbed()
	}
	// nohup(1), and shells that run us in the background, let this process ignore
	// signals. Its children must die of them; a handler does not outlive exec(2).
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Exit(m.Run())
}

func ownTestbed() {
	tb, err := New(Config{Hosts: 3})
	if err == nil {
		err = tb.Hosts[2].Start(exec.Command("sleep", "1000"))
	}
	if err == nil {
		var dir string
		dir, err = tb.Memory()
		err = errors.Join(err, os.WriteFile(dir+"/file", []byte("shared"), 0o600))
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	if os.Getenv(ownerEnv) == "no janitor" {
		err = tb.janitor.cmd.Process.Kill()
		_ = tb.janitor.cmd.Wait()
	}
	fmt.Println(tb.Name, err)
	signal.Ignore(syscall.SIGPIPE)
	for {
		time.Sleep(time.Hour)
	}
}

// startOwner starts a process that owns a testbed and returns its name.
func startOwner(t *testing.T, mode string) (*exec.Cmd, string) {
	t.Helper()
	testenv.NeedRoot(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), ownerEnv+"="+mode)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	name, result, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || result != "<nil>" {
		t.Fatalf("the owner says %q, %v", line, err)
	}
	if left, _ := netnsNames(name); len(left) != 4 { // three hosts and a switch
		t.Fatalf("%s has namespaces %v", name, left)
	}
	return cmd, name
}

func awaitGone(name string) {
	for {
		left, err := netnsNames(name)
		memory, memoryErr := memoryNames(name)
		if err == nil && memoryErr == nil && len(left)+len(memory) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestJanitor_ownerDies(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd, name := startOwner(t, "1")
			inside := pidsIn(t, name)
			if len(inside) != 1 {
				t.Fatalf("processes %v in %s, want the sleeping one", inside, name)
			}
			// The whole process group, as a terminal does.
			if err := syscall.Kill(-cmd.Process.Pid, sig); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			awaitGone(name)
			if o, err := ownerOf(inside[0]); err == nil {
				t.Errorf("process %v outlived the testbed", o)
			}
		})
	}
}

func pidsIn(t *testing.T, name string) []int {
	t.Helper()
	names, err := netnsNames(name)
	if err != nil {
		t.Fatal(err)
	}
	return proc.That(isIn(names))
}

func TestClean_afterOwnerAndJanitorDied(t *testing.T) {
	cmd, name := startOwner(t, "no janitor")
	alive := open(t, Config{})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	inside := pidsIn(t, name)
	if _, err := Clean(); err != nil { // what it returns: somebody else may clean, too
		t.Error(err)
	}
	if left, _ := memoryNames(name); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := netnsNames(name); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, pid := range inside {
		if _, err := ownerOf(pid); err == nil {
			t.Errorf("process %d outlived the testbed", pid)
		}
	}
	exchange(t, alive.Hosts[0], alive.Hosts[1])
}

func TestRemove_tellsWhatItRemoved(t *testing.T) {
	tb := open(t, Config{Hosts: 3})
	if _, err := tb.Memory(); err != nil {
		t.Fatal(err)
	}
	removed, err := remove(tb.Name, tb.janitor.cmd.Process.Pid)
	if got := strings.Count(strings.Join(removed, " "), tb.Name); err != nil || got != 5 || len(removed) != 5 {
		t.Errorf("removed %v, %v; want the four namespaces of %s and its memory", removed, err, tb.Name)
	}
}

func TestClean_leavesTheLivingAlone(t *testing.T) {
	tb := open(t, Config{})
	if _, err := Clean(); err != nil {
		t.Error(err)
	}
	exchange(t, tb.Hosts[0], tb.Hosts[1])
}

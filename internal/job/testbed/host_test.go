package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/proc"
)

func TestDo_leavesTheProcessWhereItWas(t *testing.T) {
	tb := open(t, Config{})
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	// Many at once, so that the main thread is among those asked.
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_ = tb.Hosts[i%2].Do(func() error {
				if inside, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || inside == before {
					t.Errorf("inside: %s, %v", inside, err)
				}
				return nil
			})
		}()
	}
	wg.Wait()
	for threadsOutside(t, before) > len(tb.Hosts) { // the starters stay; the others need a moment to end
		time.Sleep(time.Millisecond)
	}
	after, err := os.Readlink("/proc/self/ns/net")
	if err != nil || after != before {
		t.Errorf("the process moved from %s to %s, %v", before, after, err)
	}
}

// threadsOutside counts the threads that are in another network namespace than ns.
func threadsOutside(t *testing.T, ns string) (n int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		is, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/net")
		if err == nil && is != ns {
			n++
		}
	}
	return n
}

func TestDoIn(t *testing.T) {
	tb := open(t, Config{})
	inside := func(do func(func() error) error) (ns string) {
		err := do(func() (err error) {
			ns, err = os.Readlink("/proc/thread-self/ns/net")
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return ns
	}
	byName := inside(func(fn func() error) error { return DoIn(tb.Hosts[1].Name, fn) })
	if want := inside(tb.Hosts[1].Do); byName != want {
		t.Errorf("in %s, want %s", byName, want)
	}
	if err := DoIn("xwarp-nobody", func() error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a host that is none: %v", err)
	}
}

func TestDo_returnsTheError(t *testing.T) {
	tb := open(t, Config{})
	want := errors.New("mine")
	if err := tb.Hosts[1].Do(func() error { return want }); err != want {
		t.Errorf("error %v", err)
	}
}

func TestDo_passesOnAFatalTest(t *testing.T) {
	tb := open(t, Config{})
	returned := make(chan bool, 1)
	go func() {
		defer close(returned)
		_ = tb.Hosts[0].Do(func() error {
			(&testing.T{}).SkipNow()
			return nil
		})
		returned <- true
	}()
	if <-returned {
		t.Error("Do returned from a function that did not")
	}
}

// output runs a command inside the host and returns what it printed.
func output(h *Host, name string, args ...string) ([]byte, error) {
	var b bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := h.Start(cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return b.Bytes(), err
}

func TestStart_runsInside(t *testing.T) {
	tb := open(t, Config{})
	for _, h := range tb.Hosts {
		out, err := output(h, "cat", "/proc/net/fib_trie")
		if err != nil || !strings.Contains(string(out), h.Addr.String()) {
			t.Errorf("%s: %v\n%s", h.Name, err, out)
		}
		out, err = output(h, "cat", "/proc/net/dev")
		if err != nil || !strings.Contains(string(out), h.Dev) {
			t.Errorf("%s: %v\n%s", h.Name, err, out)
		}
	}
}

// A signal stops what runs inside, and what makes it go on is seen, too.
func TestSignal(t *testing.T) {
	tb := open(t, Config{})
	cmd := exec.Command("sleep", "1000")
	if err := tb.Hosts[1].Start(cmd); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		signal syscall.Signal
		state  string
	}{{syscall.SIGSTOP, "T"}, {syscall.SIGCONT, "S"}} {
		if err := tb.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		for state := ""; state != c.state; {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			state = string(proc.Stat(stat)[0])
		}
	}
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func TestClose_killsWhatRunsInside(t *testing.T) {
	tb := open(t, Config{})
	cmd := exec.Command("sleep", "1000")
	if err := tb.Hosts[1].Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
		t.Errorf("sleep ended with %v", cmd.ProcessState)
	}
}

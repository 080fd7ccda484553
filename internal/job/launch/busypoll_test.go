package launch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/xdp"
)

// pollMain changes the settings of a device until its input ends.
func pollMain(dir, before string) int {
	var n xdp.NAPI
	err := json.Unmarshal([]byte(before), &n)
	var end func()
	if err == nil {
		end, err = pollWith(dir, n)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("polling")
	_, _ = io.Copy(io.Discard, os.Stdin)
	end()
	return 0
}

// polling is a process that has changed the settings of a device.
type polling struct {
	*exec.Cmd
	in io.Closer
}

// startPolling starts one in a host.
func startPolling(t *testing.T, h *testbed.Host, dir string, before xdp.NAPI) polling {
	t.Helper()
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "as-polling", dir, string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		t.Fatal(inErr, outErr)
	}
	if err := h.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "polling\n" {
		t.Fatalf("it says %q", line)
	}
	return polling{cmd, in}
}

// However the process ends that has changed the settings of a device, they are set back;
// one that finds them as they are to be leaves them so.
func TestBusyPoll_isUndone(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	h, before := tb.Hosts[0], xdp.NAPI{Device: testbed.Device}
	in := func(fn func() error) {
		t.Helper()
		if err := h.Do(fn); err != nil {
			t.Fatal(err)
		}
	}
	in(func() error {
		link, err := net.InterfaceByName(testbed.Device)
		if err == nil {
			before.Ifindex = link.Index
		}
		return err
	})
	now := func() (n xdp.NAPI) {
		in(func() (err error) { n, err = before.Now(); return err })
		return n
	}
	dir := t.TempDir()
	for name, end := range map[string]func(polling){
		"ended":  func(p polling) { p.in.Close() },
		"killed": func(p polling) { _ = p.Process.Kill() },
	} {
		p := startPolling(t, h, dir, before)
		if now() != before.Busy() || len(notes(t, dir)) != 1 {
			t.Fatalf("%s: %+v, and %d notes", name, now(), len(notes(t, dir)))
		}
		second := startPolling(t, h, dir, before.Busy())
		second.in.Close()
		if err := second.Wait(); err != nil || now() != before.Busy() {
			t.Fatalf("%s: beside another: %v, %+v", name, err, now())
		}
		end(p)
		for len(notes(t, dir)) > 0 { // the janitor needs its time
			time.Sleep(time.Millisecond)
		}
		if now() != before {
			t.Errorf("%s: left %+v", name, now())
		}
		_ = p.Wait()
	}
	// Both killed: the note is left.
	in(before.Busy().Set)
	in(func() error {
		ns, err := netnsInode()
		text, _ := json.Marshal(changes{NAPI: &before, Netns: ns})
		writeNote(t, dir, string(text))
		return err
	})
	if _, err := cleanNotes(dir); err == nil || !strings.Contains(err.Error(), "another network namespace") {
		t.Errorf("cleaned from elsewhere: %v", err)
	}
	in(func() error {
		done, err := cleanNotes(dir)
		if len(done) != 1 || !strings.Contains(done[0], "gro_flush_timeout of "+testbed.Device) || now() != before {
			t.Errorf("cleaned: %q, left %+v", done, now())
		}
		return err
	})
	in(func() error {
		if !testbed.Inside() {
			t.Error("a host of a testbed is not known as one")
		}
		return nil
	})
	if testbed.Inside() {
		t.Error("this namespace is taken for a host of a testbed")
	}
}

package mono

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestAwait(t *testing.T) {
	c := make(chan int, 1)
	if v, came := Await(c, Millisecond); came {
		t.Errorf("%d came out of nothing", v)
	}
	c <- 7
	if v, came := Await(c, Second); !came || v != 7 {
		t.Errorf("%d, %v; want 7", v, came)
	}
	close(c)
	if v, came := Await(c, Second); !came || v != 0 {
		t.Errorf("%d, %v of a closed channel", v, came)
	}
}

// awaitEnv makes the test binary a process that stops itself while it waits.
const awaitEnv = "XWARP_TEST_AWAIT"

// Who stood still for longer than it was to wait has not waited in vain.
func TestAwait_stopped(t *testing.T) {
	const most = 500 * Millisecond
	if os.Getenv(awaitEnv) != "" {
		c := make(chan struct{})
		go func() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			time.Sleep(most / 20) // what it waits for needs its time after that, too
			close(c)
		}()
		if _, came := Await(c, most); !came {
			t.Error("gave up")
		}
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestAwait_stopped$")
	cmd.Env = append(os.Environ(), awaitEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var ws syscall.WaitStatus
	for !ws.Stopped() && !ws.Exited() {
		if _, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil && err != syscall.EINTR {
			t.Fatal(err)
		}
	}
	time.Sleep(most + most/10)
	_ = cmd.Process.Signal(syscall.SIGCONT)
	text := make([]byte, 4096)
	n, _ := out.Read(text)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, text[:n])
	}
}

package launch

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/xwarp/xwarp/internal/base/config"
)

// What a process says about itself may be of any length.
func TestReadSome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "environ")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]int{10: 10, 100: 100, 1000: 100} {
		if b, err := readSome(path, limit); err != nil || len(b) != want {
			t.Errorf("%d bytes of up to %d: %v", len(b), limit, err)
		}
	}
}

// An agent kills what is left of its own ranks, and nothing of another one's on the same machine; their
// controller kills it all.
func TestKillMarked_otherHosts(t *testing.T) {
	job := rand.Text()
	for _, c := range []struct {
		host int
		want []bool // what is left, by host
	}{{1, []bool{true, false}}, {allHosts, []bool{false, false}}} {
		var left []*exec.Cmd
		for host := range c.want {
			cmd := exec.Command("sleep", "1000")
			cmd.Env = []string{config.EnvJob + "=" + job, fmt.Sprint(config.EnvHost, "=", host)}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			left = append(left, cmd)
		}
		if err := killMarked(job, c.host); err != nil {
			t.Error(err)
		}
		for host, cmd := range left {
			if is := !doomed(cmd.Process.Pid); is != c.want[host] {
				t.Errorf("host %d: what was left of host %d is there: %v", c.host, host, is)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}

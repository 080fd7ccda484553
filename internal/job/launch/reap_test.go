package launch

import (
	"bytes"
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

// Who has the number of a process that was to be killed is not killed for it.
func TestKillIf_isAskedAgain(t *testing.T) {
	cmd := exec.Command("cat")
	cmd.Env = []string{config.EnvJob + "=of-this-test"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killIf(cmd.Process.Pid, func(pid int) bool { return hasMark(pid, "of-another-test") })
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it was killed: %v", err)
	}
}

package hosttest

import (
	"bytes"
	"os/exec"

	"github.com/xwarp/xwarp/internal/job/testbed"
)

// Output runs a command inside the host and returns what it wrote to standard output
// and standard error.
func Output(h *testbed.Host, name string, args ...string) ([]byte, error) {
	var b bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := h.Start(cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return b.Bytes(), err
}

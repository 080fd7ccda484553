package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Whatever cannot be opened for want of descriptors: it says which limit that is, and how
// to raise it.
func TestXrun_tooFewDescriptors(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string][]string{"16 ranks": {"-n", "16", "sleep", "1000"}}
	if os.Geteuid() == 0 {
		jobs["16 agents"] = []string{"-n", "16", "--testbed", "2", "--queues", "per-rank", "sleep", "1000"}
		jobs["a queue for each"] = []string{"-n", "16", "--testbed", "2", "--queues", "steered", "sleep", "1000"}
		jobs["16 slots"] = []string{"-n", "16", "--testbed", "2", "--queues", "shared", "sleep", "1000"}
	}
	for name, args := range jobs {
		cmd := exec.Command("sh", append([]string{"-c", `ulimit -n 64; exec "$0" "$@"`, exe}, args...)...)
		cmd.Env = append(os.Environ(), xrunEnv+"=1")
		_, errOut, status := finish(t, cmd)
		if status == 0 || !strings.Contains(errOut, "too many open files: a process may have 64 here, and xrun needs about 8 for each rank on a host: raise that (ulimit -n 1024;") {
			t.Errorf("%s: status %d, %s", name, status, errOut)
		}
	}
}

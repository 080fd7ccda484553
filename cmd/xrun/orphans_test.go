package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

// A rank of another user leaves nothing behind, even if it hides: in a session of its
// own, with nothing in its environment, and with parents that have ended.
func TestXrun_orphansOfAnotherUser(t *testing.T) {
	testenv.NeedRoot(t)
	const mark = "98765.4321" // seconds
	script := `env -i setsid sh -c "sleep ` + mark + ` & sleep ` + mark + ` &" & sleep 0.2; kill -KILL $$`
	_, errOut, status := xrun(t, "--quiet", "-n", "2", "--user", "nobody", "--wdir", "/", "sh", "-c", script)
	if status != 137 {
		t.Errorf("status %d, %s", status, errOut)
	}
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if command, _ := os.ReadFile(path); bytes.Contains(command, []byte(mark)) {
			t.Errorf("%s: %q is left", path, command)
		}
	}
}

// Nor does it take up numbers of processes that have ended. (It waits until none is left.)
func TestXrun_orphansAreReaped(t *testing.T) {
	testenv.NeedRoot(t)
	script := `for i in 1 2 3 4 5 6 7 8; do (sleep 0.01 & sleep 0.01 &); done; sleep 0.3
		while grep -q ") Z $PPID " /proc/[0-9]*/stat 2>/dev/null; do sleep 0.05; done; echo none`
	out, errOut, status := xrun(t, "--quiet", "--user", "nobody", "--wdir", "/", "sh", "-c", script)
	if status != 0 || out != "none\n" {
		t.Errorf("status %d, %q, %s", status, out, errOut)
	}
}

// Ranks of another user get none of the files that xrun has by chance.
func TestXrun_filesOfAnotherUser(t *testing.T) {
	testenv.NeedRoot(t)
	secret, err := os.Open("/etc/shadow")
	if err != nil {
		t.Skipf("a file that is not for everybody: %v", err)
	}
	defer secret.Close()
	cmd := command("--quiet", "--user", "nobody", "--wdir", "/", "ls", "-l", "/proc/self/fd")
	cmd.ExtraFiles = slices.Repeat([]*os.File{secret}, 20) // some are where a rank finds others
	out, errOut, status := finish(t, cmd)
	if status != 0 || strings.Contains(out, "shadow") || !strings.Contains(out, "socket:") {
		t.Errorf("status %d, %s, %s", status, out, errOut)
	}
}

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

// TestXrun_survivors runs the example that loses ranks and goes on: with xrun's
// consent it prints the answer, without it the job ends at once. Both times the
// exit status tells how the first rank died.
func TestXrun_survivors(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs go to build the example")
	}
	program := filepath.Join(t.TempDir(), "ulfm")
	if out, err := exec.Command(goTool, "build", "-buildvcs=false", "-o", program, "../../examples/ulfm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, tt := range []struct {
		args []string
		left string
		root bool
	}{
		{[]string{"-n", "4", "--disable-auto-cleanup", program, "--kill", "2"}, "3 of 4 ranks left", false},
		{[]string{"-n", "5", "--disable-auto-cleanup", program, "--kill", "0,4,1"}, "2 of 5 ranks left", false},
		{[]string{"-n", "4", "--testbed", "2", "--disable-auto-cleanup", program, "--kill", "1,3"}, "2 of 4 ranks left", true},
		{[]string{"-n", "4", "--testbed", "2", "--queues", "steered", "--disable-auto-cleanup", program, "--kill", "1,3"}, "2 of 4 ranks left", true},
		// Rows enough that the others are still at it when xrun ends them.
		{[]string{"-n", "3", program, "--rows", "1000000", "--kill", "1"}, "", false},
	} {
		t.Run(fmt.Sprint(tt.args), func(t *testing.T) {
			if tt.root {
				testenv.NeedRoot(t)
			}
			out, errOut, status := xrun(t, tt.args...)
			if status != 128+9 || !strings.Contains(errOut, "was killed by signal 9 (SIGKILL)") {
				t.Errorf("status %d, %s", status, errOut)
			}
			if tt.left == "" && out != "" || !strings.Contains(out, tt.left) {
				t.Errorf("%q, want %q in it; %s", out, tt.left, errOut)
			}
		})
	}
}

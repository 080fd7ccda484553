package pmi

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// hydra runs this program under MPICH's launcher and returns what it writes
// and its exit status.
func hydra(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	mpiexec, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		t.Skip("MPICH's launcher is not installed (Debian: mpich)")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range args {
		if args[i] == "self" {
			args[i] = exe
		}
	}
	cmd := exec.Command(mpiexec, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

func TestHydra_exchange(t *testing.T) {
	const two = "-genv XWARP_PMI 2 "
	for name, c := range map[string]struct {
		args  string
		ranks int
		on    string // where the last rank is
	}{
		"one":      {"-n 1", 1, "0.0"},
		"four":     {"-n 4", 4, "0.3"},
		"many":     {"-n 16", 16, "0.15"},
		"port":     {"-pmi-port -n 3", 3, "0.2"},
		"hosts":    {"-launcher fork -hosts localhost:2,127.0.0.1:3 -n 5", 5, "1.2"},
		"v2":       {two + "-n 16", 16, "0.15"},
		"v2 port":  {two + "-pmi-port -n 3", 3, "0.2"},
		"v2 hosts": {two + "-launcher fork -hosts localhost:2,127.0.0.1:3 -n 5", 5, "1.2"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, status := hydra(t, append(strings.Fields(c.args), "self", "as-rank", "exchange")...)
			if status != 0 || strings.Count(out, "\n") != c.ranks || !strings.Contains(out, " on "+c.on+" ") {
				t.Fatalf("status %d\n%s%s", status, out, errOut)
			}
			keys := map[string]bool{}
			for line := range strings.Lines(out) {
				keys[line[strings.LastIndex(line, " "):]] = true
			}
			if len(keys) != 1 {
				t.Errorf("ranks have different keys:\n%s", out)
			}
		})
	}
}

// The others wait for the end of their launcher, and are not left behind. In version
// 2 hydra (4.0) does not know an abort, and may fall over a rank that has died: either
// ends the job.
func TestHydra_failures(t *testing.T) {
	const any = -1 // hydra may count those that it kills, too
	for _, c := range []struct {
		version, mode string
		want          int
	}{{"1", "abort", 77}, {"1", "die", 9}, {"1", "leave", any}, {"2", "abort", any}, {"2", "die", any}, {"2", "leave", any}} {
		out, errOut, status := hydra(t, "-genv", EnvVersion, c.version, "-n", "3", "self", "as-rank", c.mode)
		if status != c.want && (c.want != any || status == 0) {
			t.Errorf("%+v: status %d\n%s%s", c, status, out, errOut)
		}
	}
}

package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// fake stands for a machine with a device that has all, one that has not what
// is needed, and one that could be better.
func fake(name string) (xdp.Report, error) {
	r := xdp.Report{Device: name, Driver: "ixgbe", Up: true, MTU: 9000, Queues: 4, Modes: []string{"generic", "driver"}, ZeroCopy: true, MultiBuffer: true}
	r.Findings = []xdp.Finding{{Name: "kernel", OK: true, Needed: true, Detail: "6.18"}}
	switch name {
	case "good":
	case "bad", "worse":
		r.Findings = append(r.Findings, xdp.Finding{Name: "permission", Needed: true, Detail: "missing CAP_BPF", Remedy: "run as root"})
	case "slow":
		r.ZeroCopy = false
		r.Findings = append(r.Findings, xdp.Finding{Name: "zero-copy", Detail: "not supported by veth", Remedy: "use a card"})
	default:
		return xdp.Report{}, errors.New("no such device: " + name)
	}
	return r, nil
}

func TestRun(t *testing.T) {
	tests := []struct {
		args string
		code int
		want []string // each in the output or the errors
	}{
		{"--help", exitOK, []string{"usage: xinfo", "Examples"}},
		{"good", exitOK, []string{"good (driver ixgbe, MTU 9000)", "ok  kernel  6.18", "good: AF_XDP can be used"}},
		{"--check good", exitOK, []string{"good: AF_XDP can be used"}},
		{"--check slow", exitOK, []string{"-> use a card", "slow: AF_XDP can be used"}},
		{"--check bad", exitFailed, []string{"MISSING  permission  missing CAP_BPF", "-> run as root", "bad: AF_XDP cannot be used (permission: missing CAP_BPF)"}},
		{"bad", exitOK, []string{"AF_XDP cannot be used"}},
		{"--check nosuch", exitFailed, []string{"no such device: nosuch"}},
		{"nosuch", exitFailed, []string{"no such device: nosuch"}},
		{"--check=", exitUsage, []string{"--check needs the name of a device"}},
		{"--check good bad", exitUsage, []string{"one device"}},
		{"--clean --json", exitUsage, []string{"--clean goes alone"}},
		{"--nosuch", exitUsage, []string{"xinfo --help"}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var out strings.Builder
			if code := run(strings.Fields(tt.args), &out, &out, fake); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, w := range tt.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("no %q in:\n%s", w, out.String())
				}
			}
		})
	}
}

// What several devices miss alike is told once.
func TestWriteTable(t *testing.T) {
	var reports []xdp.Report
	for _, name := range []string{"good", "bad", "slow", "worse"} {
		r, err := fake(name)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	var out strings.Builder
	if err := writeTable(&out, reports); err != nil {
		t.Fatal(err)
	}
	want := `DEVICE  DRIVER  LINK  MTU   QUEUES  MODES           ZERO-COPY  MULTI-BUFFER  AF_XDP
good    ixgbe   up    9000  4       generic,driver  yes        yes           yes
bad     ixgbe   up    9000  4       generic,driver  yes        yes           no
slow    ixgbe   up    9000  4       generic,driver  no         yes           yes
worse   ixgbe   up    9000  4       generic,driver  yes        yes           no

Missing:
  bad, worse: permission: missing CAP_BPF
    -> run as root

Would be better:
  slow: zero-copy: not supported by veth
    -> use a card
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

func TestRun_json(t *testing.T) {
	var out strings.Builder
	if code := run([]string{"--json", "good", "bad"}, &out, &out, fake); code != exitOK {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	usable := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		var r struct {
			Device string
			Usable bool
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		usable[r.Device] = r.Usable
	}
	if len(usable) != 2 || !usable["good"] || usable["bad"] {
		t.Errorf("got %v from:\n%s", usable, out.String())
	}
}

// On a device of the kernel, as people use it.
func TestRun_testbed(t *testing.T) {
	required := os.Getenv("XWARP_REQUIRE_XDP") == "1"
	if os.Geteuid() != 0 && !required {
		t.Skip("a testbed needs root")
	}
	tb, err := testbed.New(testbed.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	var out strings.Builder
	var table, check int
	err = tb.Hosts[0].Do(func() error {
		table = run(nil, &out, &out, xdp.Probe)
		check = run([]string{"--check", testbed.Device}, &out, &out, xdp.Probe)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if check != exitOK && !required {
		t.Skipf("no AF_XDP here: %s", out.String())
	}
	if table != exitOK || check != exitOK || !strings.Contains(out.String(), testbed.Device+"     veth") {
		t.Errorf("exit codes %d and %d:\n%s", table, check, out.String())
	}
	t.Log(out.String())
}

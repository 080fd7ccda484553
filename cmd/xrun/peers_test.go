package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Options of others do here what they do there.
func TestXrun_outputAsOpenMPI(t *testing.T) {
	const say = "echo out $PMI_RANK; echo err $PMI_RANK >&2; echo end $PMI_RANK"
	dir := filepath.Join(t.TempDir(), "100%")
	out, errOut, status := xrun(t, "-n", "11", "--output-filename", dir, "sh", "-c", say)
	if status != 0 || out != "" || !strings.Contains(errOut, "the output of the ranks goes into files below "+dir) {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
	for name, want := range map[string]string{"1/rank.00/stdout": "out 0\nend 0\n", "1/rank.10/stdout": "out 10\nend 10\n", "1/rank.10/stderr": "err 10\n"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; want %q", name, text, err, want)
		}
	}
	out, errOut, status = xrun(t, "-q", "-n", "2", "--ordered-output", "-prepend-rank", "--merge-stderr-to-stdout", "sh", "-c", say)
	if want := "[0] out 0\n[0] err 0\n[0] end 0\n[1] out 1\n[1] err 1\n[1] end 1\n"; status != 0 || errOut != "" || out != want {
		t.Errorf("status %d, %q, %q; want %q", status, out, errOut, want)
	}
}

func TestXrun_inputToAll(t *testing.T) {
	cmd := command("-q", "-s", "all", "-n", "2", "--ordered-output", "-l", "cat")
	cmd.Stdin = strings.NewReader("a\n")
	if out, errOut, status := finish(t, cmd); status != 0 || out != "[0] a\n[1] a\n" {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
}

func TestXrun_places(t *testing.T) {
	const where = "taskset -pc $$ | sed 's/.*: //'"
	hostfile := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hostfile, []byte("localhost:2 binding=user:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args      []string
		out, note string
	}{
		{[]string{"--cpu-set", "0", "sh", "-c", where}, "0\n", ""},
		{[]string{"--bind-to", "user:0", "--display-map", "sh", "-c", where}, "0\n", ": bound to processor 0\n"},
		{[]string{"--cpu-set", "0", "--print-rank-map", "true"}, "", "rank 0 on "},
		{[]string{"-f", hostfile, "sh", "-c", where}, "0\n0\n", "warning: 2 ranks on "},
		{[]string{"-n", "2", "--cpu-set", "0", "--bind-to", "core", "true"}, "", "are bound to 1 core, so some share one: use fewer"},
	} {
		out, errOut, status := xrun(t, c.args...)
		if strings.Contains(errOut, "processor 0 cannot be used") {
			t.Skip("this test may not use processor 0")
		}
		if status != 0 || out != c.out || !strings.Contains(errOut, c.note) {
			t.Errorf("%q: status %d, %q, %q", c.args, status, out, errOut)
		}
		if warned := strings.Count(errOut, "warning"); warned != strings.Count(c.note, "share one")+strings.Count(c.note, "warning") {
			t.Errorf("%q: %d warnings, %q", c.args, warned, errOut)
		}
	}
	for want, args := range map[string][]string{
		"999 cores for each rank, and this host has": {"--bind-to", "core:999", "true"},
		"--cpu-set: processor 1000 cannot be used":   {"--cpu-set", "0,1000", "true"},
		"--bind-to user: processor 1000 cannot be":   {"--bind-to", "user:1000", "true"},
		"%q stands for nothing":                      {"--outfile-pattern", "x.%q", "true"},
	} {
		if out, errOut, status := xrun(t, args...); status == 0 || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%q: status %d, %q, %q", args, status, out, errOut)
		}
	}
}

// In an allocation there is a rank for each place of it.
func TestXrun_inAnAllocation(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLURM_JOB_NODELIST", host)
	t.Setenv("SLURM_TASKS_PER_NODE", "3")
	out, errOut, status := xrun(t, "echo", "hi")
	if status != 0 || out != "hi\nhi\nhi\n" || !strings.Contains(errOut, "xrun: the hosts are those of SLURM_JOB_NODELIST (--hosts names others)\nxrun: 3 ranks on "+host) {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
	if _, errOut, status := xrun(t, "--hosts", "localhost", "-n", "1", "true"); status != 0 || strings.Contains(errOut, "SLURM") {
		t.Errorf("status %d, %q", status, errOut)
	}
	t.Setenv("SLURM_TASKS_PER_NODE", "x")
	if _, errOut, status := xrun(t, "true"); status != 125 || !strings.Contains(errOut, "or unset SLURM_JOB_NODELIST to run here") {
		t.Errorf("status %d, %q", status, errOut)
	}
}

func TestXrun_configFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("# two programs\n-n 1 echo first\n-n 2 -env A 'x y' sh -c 'echo $A'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, option := range []string{"-configfile", "--app"} {
		out, errOut, status := xrun(t, "-q", "-l", "--ordered-output", option, file)
		if want := "[0] first\n[1] x y\n[2] x y\n"; status != 0 || out != want {
			t.Errorf("%s: status %d, %q, %q; want %q", option, status, out, errOut, want)
		}
	}
	for text, want := range map[string]string{"-n 1 'a": "a quote is not closed", "-configfile x a": "it names another one", "--nosuch a": "there is no option -nosuch"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errOut, status := xrun(t, "--configfile", file); status != 125 || !strings.Contains(errOut, want) {
			t.Errorf("%q: status %d, %q; want %q", text, status, errOut, want)
		}
	}
}

package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A library is measured only where its programs and its header are.
func TestPeer_missing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	p := Peers()[1]
	for _, step := range []struct{ program, does, want string }{
		{p.launcher, "exit 0", p.compiler},
		{p.compiler, "exit 1", "ip"},
		{"ip", "exit 0", "unshare"},
		{"unshare", "exit 0", "finds no mpi.h"},
		{p.compiler, "exit 0", ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, step.program), []byte("#!/bin/sh\n"+step.does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		got := p.Missing()
		if (got == "") != (step.want == "") || !strings.Contains(got, step.want) || got != "" && !strings.Contains(got, p.install) {
			t.Errorf("with %s (%s): %q, want %q and how to get it", step.program, step.does, got, step.want)
		}
	}
}

// The tests are compiled once for each command.
func TestPrograms_in(t *testing.T) {
	dir := t.TempDir()
	compiler, log := filepath.Join(dir, "cc"), filepath.Join(dir, "log")
	script := fmt.Sprintf("#!/bin/sh\necho $1 >>%s\nwhile [ $1 != -o ]; do shift; done\necho compiled >$2\n", log)
	if err := os.WriteFile(compiler, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	made := programs{}
	for _, option := range []string{"-a", "-b", "-a", "-b"} {
		program, err := made.in(t.TempDir(), compiler, option)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(program); string(b) != "compiled\n" {
			t.Errorf("the program is %q, %v", b, err)
		}
	}
	if b, err := os.ReadFile(log); string(b) != "-a\n-b\n" {
		t.Errorf("compiled %q, %v", b, err)
	}
}

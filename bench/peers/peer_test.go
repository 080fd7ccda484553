package peers

import (
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

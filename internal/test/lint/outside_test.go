package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program of another module can do with the public packages what they are for.
func TestOutside(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copyTo := func(name, from string, edit func(string) string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(edit(string(b))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	same := func(s string) string { return s }
	copyTo("main.go", "testdata/outside/main.go", same)
	copyTo("go.sum", filepath.Join(root, "go.sum"), same)
	copyTo("go.mod", filepath.Join(root, "go.mod"), func(s string) string { // the same versions of everything: nothing is fetched
		s = strings.Replace(s, "module "+Module, "module example.org/outside", 1)
		return s + "\nrequire " + Module + " v0.0.0\n\nreplace " + Module + " => " + root + "\n"
	})
	cmd := exec.Command("go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if want := "hello\nagain\n7\n"; string(out) != want {
		t.Errorf("it prints %q, not %q", out, want)
	}
}

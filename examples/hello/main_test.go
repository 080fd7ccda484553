package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test binary is also the program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hello" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Ranks also start under MPICH's launcher, more of them than there are cores.
func TestHello_underHydra(t *testing.T) {
	mpiexec, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		t.Skip("MPICH's launcher is not installed (Debian: mpich)")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for n, last := range map[string]string{"4": "rank 3 of 4: greetings from rank 2", "16": "rank 15 of 16: greetings from rank 14"} {
		out, err := exec.Command(mpiexec, "-n", n, exe, "hello").CombinedOutput()
		if err != nil || !strings.Contains(string(out), last) {
			t.Errorf("%s ranks: %v\n%s", n, err, out)
		}
	}
}

// Without a launcher it greets itself.
func TestHello_alone(t *testing.T) {
	out, err := exec.Command("/proc/self/exe", "hello").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "rank 0 of 1: greetings from rank 0, process ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The README shows this program; it must not show another one.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+string(code)+"```\n") {
		t.Error("README.md does not show examples/hello/main.go as it is: copy it there")
	}
}

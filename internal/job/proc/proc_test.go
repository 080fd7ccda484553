package proc

import (
	"os/exec"
	"slices"
	"testing"
)

// start starts a process that lives until it is killed or its input is closed.
func start(t *testing.T) (cmd *exec.Cmd, end func() error) {
	t.Helper()
	cmd = exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, func() error {
		in.Close()
		return cmd.Wait()
	}
}

// What has the number of a process that was to be killed is not killed for it.
func TestKillIf_isAskedAgain(t *testing.T) {
	cmd, end := start(t)
	if err := KillIf(cmd.Process.Pid, func(int) bool { return false }); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Errorf("it was killed: %v", err)
	}
}

func TestKillAll(t *testing.T) {
	spared, end := start(t)
	killed, _ := start(t)
	gone := make(chan error)
	go func() { gone <- killed.Wait() }()
	if err := KillAll(func(pid int) bool { return pid == killed.Process.Pid }); err != nil {
		t.Error(err)
	}
	if err := <-gone; err == nil {
		t.Error("it was not killed")
	}
	want := []int{spared.Process.Pid}
	if pids := That(func(pid int) bool { return slices.Contains(want, pid) }); !slices.Equal(pids, want) {
		t.Errorf("That() = %v, want the other process %v", pids, want)
	}
	if err := end(); err != nil {
		t.Errorf("the other one was killed: %v", err)
	}
}

func TestStat_nameWithParentheses(t *testing.T) {
	if got := Stat([]byte("7 (a ) b) S 1 2")); len(got) != 3 || string(got[0]) != "S" {
		t.Errorf("Stat() = %q", got)
	}
	if got := Stat(nil); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}

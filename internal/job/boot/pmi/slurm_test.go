package pmi

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cluster is Slurm with this machine as its only node, in a folder and on ports of
// its own.
type cluster struct{ conf string }

const slurmConf = `ClusterName=xwarp
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[2]d
SlurmdPort=%[3]d
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation=%[4]s
SlurmdSpoolDir=%[4]s
SlurmctldPidFile=%[4]s/slurmctld.pid
SlurmdPidFile=%[4]s/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=%[1]s Default=YES MaxTime=INFINITE State=UP
`

// newCluster starts Slurm and ends it with the test.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to start Slurm's daemons")
	}
	for _, program := range []string{"slurmctld", "slurmd", "srun", "sinfo"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian: slurmctld, slurmd, slurm-client)", program)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	dir := t.TempDir()
	c := &cluster{filepath.Join(dir, "slurm.conf")}
	conf := fmt.Sprintf(slurmConf, host, freePort(t), freePort(t), dir)
	if err := os.WriteFile(c.conf, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	var logs [2]bytes.Buffer
	ended := make(chan string, 2)
	for i, args := range [][]string{{"slurmctld", "-D"}, {"slurmd", "-D", "-N", host}} {
		cmd := c.command(args...)
		cmd.Stdout, cmd.Stderr = &logs[i], &logs[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			ended <- args[0] + ": " + logs[i].String()
			close(gone)
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-gone
		})
	}
	for {
		if out, _ := c.command("sinfo", "--noheader").Output(); bytes.Contains(out, []byte(" idle ")) {
			return c
		}
		select {
		case log := <-ended:
			t.Skip("Slurm does not run here: " + log)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// freePort returns a port that nobody uses now.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// command is a program of Slurm's, in this cluster and not in one that the test may
// itself be run by.
func (c *cluster) command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"SLURM_CONF=" + c.conf}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SLURM_") && !strings.HasPrefix(v, "PMI_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// run runs this program on n ranks and returns what it writes and srun's status. It
// tries again when Slurm could not start it: its daemons give each other up soon if
// one is kept from the processors.
func (c *cluster) run(t *testing.T, plugin, version string, n int, mode string) (out string, status int) {
	t.Helper()
	for range 5 {
		if out, status = c.try(t, plugin, version, n, mode); status == 0 || started(out) {
			return out, status
		}
		t.Logf("Slurm did not start it: %s", out)
	}
	t.Skip("Slurm does not get to start jobs here")
	return "", 0
}

// started reports whether a failed srun has had a task: it says how each ended, or
// that they were cancelled.
func started(out string) bool {
	return strings.Contains(out, ": task") || strings.Contains(out, "StepId=")
}

// try is one srun, which ends the job when a rank fails if it is told to.
func (c *cluster) try(t *testing.T, plugin, version string, n int, mode string) (out string, status int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.command("srun", "--mpi="+plugin, "--kill-on-bad-exit", "--overcommit", "-n", fmt.Sprint(n), exe, "as-rank", mode)
	cmd.Env = append(cmd.Env, EnvVersion+"="+version)
	b, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

func TestSlurm(t *testing.T) {
	c := newCluster(t)
	for _, version := range []string{"1", "2", "auto"} {
		out, status := c.run(t, "pmi2", version, 6, "exchange")
		if status != 0 || strings.Count(out, "rank ") != 6 || !strings.Contains(out, "rank 5 of 6 on 0.5 key ") {
			t.Errorf("version %s: status %d\n%s", version, status, out)
		}
	}
	for _, mode := range []string{"abort", "die", "leave"} {
		for _, version := range []string{"1", "2"} {
			if out, status := c.run(t, "pmi2", version, 3, mode); status == 0 || mode == "abort" && !strings.Contains(out, "because") {
				t.Errorf("%s in version %s: status %d\n%s", mode, version, status, out)
			}
		}
	}
	if out, status := c.run(t, "none", "auto", 2, "exchange"); status == 0 || !strings.Contains(out, "use srun --mpi=pmi2") {
		t.Errorf("without PMI: status %d\n%s", status, out)
	}
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// asRank makes the test binary a rank of an MPI job.
const asRank = "as-mpi-rank"

// rankMain exchanges messages of some sizes with every other rank and says what
// its privileges are.
func rankMain(w *mpi.Comm) error {
	for _, size := range []int{1, 5000, 300_000} {
		out, in := make([]byte, size), make([]byte, size)
		for step := 1; step < w.Size(); step++ {
			to, from := (w.Rank()+step)%w.Size(), (w.Rank()-step+w.Size())%w.Size()
			fillWith(out, w.Rank()+to)
			if _, err := mpi.Sendrecv(w, out, to, 1, in, from, 1); err != nil {
				return err
			}
			fillWith(out, from+w.Rank())
			if !bytes.Equal(in, out) {
				return fmt.Errorf("%d bytes from rank %d are not what it sent", size, from)
			}
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	caps, _, _ := strings.Cut(string(status[bytes.Index(status, []byte("CapEff:")):]), "\n")
	fmt.Println(os.Geteuid(), strings.Join(strings.Fields(caps), " "))
	return nil
}

func fillWith(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
}

// Ranks whose queues the agent opens, one for all or some for each, need no
// privileges at all, and reach each other across hosts and on their own, with and
// without memory that they share.
func TestXrun_queuesWithoutPrivileges(t *testing.T) {
	testenv.NeedRoot(t)
	for _, c := range []struct{ queues, notice string }{
		{"shared", "those of a host on one queue"}, {"steered", "each with queues of its own"},
	} {
		for _, fabric := range []string{"xdp:generic", "xdp:driver"} {
			for _, shared := range []string{"0", "1"} {
				out, errOut, status := xrun(t, "-n", "5", "--testbed", "2", "--fabric", fabric, "--queues", c.queues, "--user", "nobody",
					"-x", "XWARP_SHARED="+shared, "--wdir", "/", self, asRank)
				want := slices.Repeat([]string{"65534 CapEff: 0000000000000000"}, 5)
				if got := strings.Split(strings.TrimSpace(out), "\n"); status != 0 || !slices.Equal(got, want) {
					t.Errorf("%s, %s, shared memory %s: status %d, %q, %s", c.queues, fabric, shared, status, out, errOut)
				}
				if !strings.Contains(errOut, c.notice) {
					t.Errorf("it does not say what it uses: %s", errOut)
				}
			}
		}
	}
}

// Connections find the queue of the rank that they lead to.
func TestXrun_steeredConnections(t *testing.T) {
	testenv.NeedRoot(t)
	out, errOut, status := xrun(t, "-n", "6", "--testbed", "2", "--queues", "steered", "--transport", "rc", self, asRank)
	if status != 0 || strings.Count(out, "\n") != 6 {
		t.Errorf("status %d, %q, %s", status, out, errOut)
	}
}

// A NIC does not send to itself, and TCP has no way beside it.
func TestXrun_connectionsOnASharedQueue(t *testing.T) {
	testenv.NeedRoot(t)
	args := []string{"-n", "4", "--testbed", "2", "--queues", "shared", "--transport", "rc", self, asRank}
	if _, errOut, status := xrun(t, args...); status != 0 {
		t.Errorf("with shared memory: status %d, %s", status, errOut)
	}
	_, errOut, status := xrun(t, append([]string{"-x", "XWARP_SHARED=0"}, args...)...)
	if status != 1 || !strings.Contains(errOut, "cannot connect through it: do not set XWARP_SHARED=0") {
		t.Errorf("without: status %d, %s", status, errOut)
	}
}

func TestXrun_noSuchUser(t *testing.T) {
	testenv.NeedRoot(t)
	_, errOut, status := xrun(t, "--user", "nobody-of-that-name", "true")
	if status != 126 || !strings.Contains(errOut, `no user "nobody-of-that-name" on this host`) {
		t.Errorf("status %d, %s", status, errOut)
	}
}

// Where a device cannot steer, the ranks of the host share a queue, and xrun says
// why.
func TestXrun_steeredFallsBack(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	cmd := exec.Command(self, "-n", "2", "--device", testbed.Device, "--fabric", "xdp", "--queues", "steered", self, asRank)
	cmd.Env = append(os.Environ(), xrunEnv+"=1")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := tb.Hosts[0].Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%v: %q, %s", err, out.String(), errOut.String())
	}
	if got := errOut.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "the ranks of host 0 share one queue: xdp: xw0: it cannot steer") {
		t.Errorf("it says %q", got)
	}
}

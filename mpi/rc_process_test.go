package mpi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// connectedJobs are jobs over connections: TCP of the kernel and in user space, and
// datagrams that become TCP soon.
var connectedJobs = []struct {
	name string
	c    launch.Config
}{
	{"rc, local", launch.Config{Fabric: "udp", Env: []string{"XWARP_TRANSPORT=rc", "XWARP_SHARED=0"}}},
	{"rc, udp", launch.Config{Fabric: "udp", Testbed: 2, Env: []string{"XWARP_TRANSPORT=rc"}}},
	{"rc, xdp", launch.Config{Fabric: "xdp", Testbed: 2, Queues: launch.QueuesPerRank, Env: []string{"XWARP_TRANSPORT=rc"}}},
	{"hybrid, xdp", launch.Config{Fabric: "xdp", Testbed: 2, Env: []string{"XWARP_TRANSPORT=hybrid", "XWARP_PROMOTE=10"}}},
}

// withDatagrams says that Init needs a way to all hosts: connections look for one
// when they are made, and again while there is none.
func withDatagrams(c launch.Config) bool { return slices.Contains(c.Env, "XWARP_TRANSPORT=hybrid") }

// TestProcess_connectedRankIsKilled kills ranks, with connections and before they
// have any: the others go on to the end.
func TestProcess_connectedRankIsKilled(t *testing.T) {
	for i, job := range connectedJobs {
		if slow && i%2 != 0 {
			continue
		}
		t.Run(job.name, func(t *testing.T) {
			if job.c.Testbed > 0 {
				testenv.NeedRoot(t)
			}
			for i, after := range moments(4) {
				out, errOut, err := launchJob(t, survivors(i, "kill rank", after, 60), job.c)
				var re *launch.RankError
				if !errors.As(err, &re) || re.Rank != i || re.Signal != unix.SIGKILL || out != strings.Repeat("3 are left\n", 3) {
					t.Errorf("rank %d is killed after %v: %v, %q, %s", i, after, err, out, errOut)
				}
			}
		})
	}
}

// TestProcess_connectedLinkIsDown sets the network device of one host down for a
// moment and for a second: TCP sends again what is lost, and nobody notices.
func TestProcess_connectedLinkIsDown(t *testing.T) {
	for i, job := range connectedJobs {
		if slow && i%2 != 0 {
			continue
		}
		t.Run(job.name, func(t *testing.T) {
			if job.c.Testbed == 0 {
				t.Skip("there is no device to set down")
			}
			if job.c.Testbed > 0 {
				testenv.NeedRoot(t)
			}
			for i, does := range []string{"link", "second"} {
				c := survivors(i, does, moments(2)[i], 60)
				if withDatagrams(job.c) {
					c.Env = append(c.Env, envMet+"=1")
				}
				out, errOut, err := launchJob(t, c, job.c)
				if err != nil || out != strings.Repeat("4 are left\n", 4) {
					t.Errorf("the link of rank %d is down (%s): %v, %q, %s", i, does, err, out, errOut)
				}
			}
		})
	}
}

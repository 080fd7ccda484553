package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/mpi"
)

// asOneSided makes the test binary a rank of TestWin_processes.
const asOneSided = "as-one-sided"

func oneSidedRank(p *mpi.Proc) error {
	x := trial{rounds: 12}
	if envInt("XWARP_GHOSTS") > 0 {
		x.async = os.Getenv(mpi.EnvAsync)
	}
	if os.Getenv(mpi.EnvThreads) != "" {
		x.both = bothAtATime
	}
	err := x.run(p, uint64(envInt(envSeed)))
	if err == nil {
		err = linearProcesses(p, x.async)
	}
	if err == nil {
		fmt.Println("accepted")
	}
	return err
}

const envSeed = "XWARP_TEST_SEED"

func bothAtATime(f [2]func() error) error {
	var errs [2]error
	var group sync.WaitGroup
	for i := range f {
		group.Go(func() { errs[i] = f[i]() })
	}
	group.Wait()
	return errors.Join(errs[:]...)
}

// way is how a job does one-sided communication.
type way struct {
	ghosts int
	env    []string
}

// ways are all of them: without ghosts, through shared memory and without it; with ghosts that nobody
// asks; and with each binding, of one ghost where that does not matter, and each way to adapt.
func ways() []way {
	all := []way{{}, {env: []string{mpi.EnvShared + "=0"}}, {ghosts: 1, env: []string{mpi.EnvAsync + "=off"}}}
	for _, async := range []string{"on", "auto", "auto-ghosts"} {
		for i, binding := range config.GhostBindings {
			all = append(all, way{1 + min(i, 1), []string{mpi.EnvAsync + "=" + async, mpi.EnvAsyncTime + "=10ms", mpi.EnvGhostBinding + "=" + binding.Name}})
		}
	}
	return all
}

// Real processes do all that is on the list, and have linearizable histories, on each network:
// without ghosts and in some ways with them, and in all ways with XWARP_LONG=1. In some of them two
// goroutines make windows at a time.
func TestWin_processes(t *testing.T) {
	turn := -1
	networks(t, func(t *testing.T, on launch.Config) {
		turn++
		for i, how := range ways() {
			every := 4
			if how.ghosts == 0 {
				every = 2
			} else if slow {
				every = 8
			}
			if os.Getenv("XWARP_LONG") != "1" && i%every != turn%every {
				continue
			}
			on.Env, on.Ghosts = how.env, how.ghosts
			job := launch.Config{
				Program: "/proc/self/exe", Args: []string{asOneSided}, Ranks: 4,
				Agent: []string{"/proc/self/exe", launch.AgentArg}, Env: []string{fmt.Sprintf("%s=%d", envSeed, i+turn)},
			}
			if (i+turn)%3 == 0 {
				job.Env = append(job.Env, mpi.EnvThreads+"=multiple")
			}
			if stdout, stderr, err := launchJob(t, job, on); err != nil || stdout != strings.Repeat("accepted\n", 4) {
				t.Errorf("%d ghosts, %v: %v\n%s%s", how.ghosts, how.env, err, stdout, stderr)
			}
		}
	})
}

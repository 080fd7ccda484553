package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// asSession makes the test binary a rank without the world model.
const asSession = "as-session"

func sessionRank() error {
	level, err := mpi.NewInfo("thread_level", "MPI_THREAD_MULTIPLE")
	if err != nil {
		return err
	}
	s, err := mpi.SessionInit(level, mpi.SessionErrorsAreFatal)
	if err != nil {
		return err
	}
	p := s.Proc()
	if p.World() != nil || p.Self() != nil || p.QueryThread() != mpi.ThreadMultiple {
		return errors.New("there is a world, or only one thread")
	}
	if err := wantClass(p.Finalize(), mpi.ErrOther); err != nil {
		return err
	}
	library, err := p.SessionInit(nil, nil)
	if err != nil {
		return err
	}
	c, err := from(library, mpi.PsetWorld, "library")
	if err != nil {
		return err
	}
	if err := works(c); err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Printf("%d ranks\n", c.Size())
	}
	if c.Rank()%2 == 1 { // they leave early, and take part in nothing that follows
		return errors.Join(c.Free(), library.Finalize(), s.Finalize())
	}
	if err := errors.Join(c.Free(), library.Finalize()); err != nil {
		return err
	}
	all, err := s.GroupFromPset(mpi.PsetWorld)
	if err != nil {
		return err
	}
	even, err := all.RangeIncl(mpi.Range{First: 0, Last: all.Size() - 1, Stride: 2})
	if err != nil {
		return err
	}
	for range 20 {
		c, err := s.CommCreateFromGroup(even, "even", nil, nil)
		if err != nil {
			return err
		}
		if err := errors.Join(works(c), c.Free()); err != nil {
			return err
		}
	}
	return s.Finalize()
}

func TestSession_processes(t *testing.T) {
	for _, job := range []struct {
		name string
		c    launch.Config
	}{
		{"1 rank", launch.Config{Ranks: 1, Fabric: "udp"}},
		{"shared memory", launch.Config{Ranks: 4, Fabric: "udp"}},
		{"rd", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0"}}},
		{"rc", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=rc"}}},
		{"ud", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=ud"}}},
		{"xdp", launch.Config{Ranks: 4, Fabric: "xdp", Testbed: 2}},
	} {
		t.Run(job.name, func(t *testing.T) {
			if job.c.Testbed > 0 {
				testenv.NeedRoot(t)
			}
			c := launch.Config{Ranks: job.c.Ranks, Program: "/proc/self/exe", Args: []string{asSession}}
			out, errOut, err := launchJob(t, c, job.c)
			if want := fmt.Sprintf("%d ranks\n", job.c.Ranks); err != nil || out != want {
				t.Errorf("%v: %q, want %q; %s", err, out, want, errOut)
			}
		})
	}
}

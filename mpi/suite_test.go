package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// The suite is run by real processes, over each carrier and each transport: what
// the other tests have one process do, and the simulator.

// asRank is the argument that makes the test binary a rank of the suite.
const asRank = "as-rank"

// TestMain makes the test binary whatever its first argument says: a process of a job that
// a test has started.
func TestMain(m *testing.M) {
	mains := map[string]func() int{
		launch.AgentArg: func() int { return launch.AgentMain(os.Stdin, os.Stdout) }, asController: controllerMain,
		launch.GhostArg: status(mpi.Ghost), asSession: status(sessionRank),
		asRank: onProc(suite), asLinked: onProc(linkedJob), asSurvivor: onProc(survivor), asRecorded: onProc(everyMessage),
		asLocked: onProc(outliveLocks), asSlots: status(slotsRank), asOutlasting: onProc(outlastingRank),
		asOneSided: onProc(oneSidedRank), asGhosted: ghostedMain, asDelegating: onProc(delegatingRank), asInviting: onProc(invitingRank),
	}
	if len(os.Args) > 1 && mains[os.Args[1]] != nil {
		os.Exit(mains[os.Args[1]]())
	}
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector's second at every exit adds up
	}
	os.Exit(m.Run())
}

// onProc is a rank that does something.
func onProc(body func(*mpi.Proc) error) func() int {
	return status(func() error {
		p, err := mpi.Init()
		if err == nil {
			err = body(p)
		}
		if err == nil {
			err = p.Finalize()
		}
		return err
	})
}

// status is a program whose error it prints.
func status(program func() error) func() int {
	return func() int {
		if err := program(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

// suite is what all ranks do.
func suite(p *mpi.Proc) error {
	for _, part := range []struct {
		name string
		run  func(*mpi.Proc) error
	}{
		{"exercise", exercise{seed: 5, messages: 1500, maxLen: 300_000, tags: 4, wild: 0.3}.run},
		{"collectives", suiteCollectives},
		{"communicators", suiteCommunicators},
		{"data", suiteData},
		{"windows", winTraffic{seed: 7, rounds: 12, ops: 20, block: 8000, long: true, flavor: mpi.FlavorCreate}.run},
		{"windows with their memory", winTraffic{seed: 8, rounds: 24, ops: 20, block: 1000, flavor: mpi.FlavorAllocate}.run},
		{"shared windows", suiteSharedWindows},
	} {
		if err := part.run(p); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if err := p.World().Barrier(); err != nil {
			return fmt.Errorf("the barrier after %s: %w", part.name, err)
		}
		if p.World().Rank() == 0 {
			fmt.Println("suite:", part.name)
		}
	}
	return nil
}

func suiteCollectives(p *mpi.Proc) error {
	c := p.World()
	for _, f := range []form{blocking, nonblocking, persistent} {
		for _, n := range []int{0, 1, 9} {
			if err := (oracle[int32]{c, n, f}).all(); err != nil {
				return err
			}
		}
	}
	return errors.Join((oracle[float64]{c, 5000, blocking}).all(), inOrder(c, 40))
}

// suiteCommunicators reduces on halves, on halves in reverse order, and across
// them, one after the other and both at a time, and sends messages in partitions.
func suiteCommunicators(p *mpi.Proc) error {
	world := p.World()
	half, err := world.Split(world.Rank()%2, -world.Rank())
	if err != nil {
		return err
	}
	dup, made, err := world.Idup()
	if err == nil {
		_, err = made.Wait()
	}
	if err == nil && world.Size() > 1 && world.Rank() < 2 {
		err = partitionRounds(dup, 6, 4, 50)
	}
	if err != nil {
		return err
	}
	mine, all := []int64{int64(world.Rank())}, []int64{int64(world.Rank())}
	first, err := mpi.Iallreduce(half, nil, mine, mpi.Sum)
	if err != nil {
		return err
	}
	second, err := mpi.Iallreduce(dup, nil, all, mpi.Sum)
	if err != nil {
		return err
	}
	if err := mpi.Waitall([]mpi.Request{second, first}); err != nil {
		return err
	}
	var want [2]int64
	for r := range world.Size() {
		want[r%2] += int64(r)
	}
	if mine[0] != want[world.Rank()%2] || all[0] != want[0]+want[1] {
		return fmt.Errorf("rank %d: sums are %d and %d, want %d and %d", world.Rank(), mine[0], all[0], want[world.Rank()%2], want[0]+want[1])
	}
	if last := half.Size() - 1; half.Rank() != last-world.Rank()/2 {
		return fmt.Errorf("rank %d is rank %d of its half, want %d", world.Rank(), half.Rank(), last-world.Rank()/2)
	}
	return errors.Join(half.Free(), dup.Free())
}

// suiteSharedWindows has a shared window on each host.
func suiteSharedWindows(p *mpi.Proc) error {
	if os.Getenv(mpi.EnvShared) == "0" && p.World().Size() > 1 {
		_, _, err := mpi.WinAllocateShared[byte](p.World(), 1, nil)
		return wantClass(err, mpi.ErrRMAShared)
	}
	host, err := p.World().SplitType(mpi.TypeShared, 0)
	if err != nil {
		return err
	}
	return errors.Join(sharedByAll(host, 100, false), sharedByAll(host, 5000, true), host.Free())
}

// suiteRuns are the jobs.
var suiteRuns = []struct {
	name   string
	config launch.Config
}{
	{"1 rank", launch.Config{Ranks: 1, Fabric: "udp"}},
	{"udp", launch.Config{Ranks: 4, Fabric: "udp"}},
	{"udp, 16 ranks", launch.Config{Ranks: 16, Fabric: "udp"}},
	{"xdp", launch.Config{Ranks: 2, Testbed: 2, Fabric: "xdp"}},
	{"xdp, MTU 1500", launch.Config{Ranks: 2, Testbed: 2, Fabric: "xdp", MTU: 1500}},
	{"xdp, 5 ranks on 3 hosts", launch.Config{Ranks: 5, Testbed: 3, Fabric: "xdp"}},
	{"xdp, 8 ranks on 2 hosts", launch.Config{Ranks: 8, Testbed: 2, Fabric: "xdp", Queues: launch.QueuesPerRank}},
	{"shared queue, 8 ranks on 2 hosts", launch.Config{Ranks: 8, Testbed: 2, Fabric: "xdp", Queues: launch.QueuesShared, User: "nobody"}},
	{"shared queue, 5 ranks on 3 hosts, all through the network", launch.Config{Ranks: 5, Testbed: 3, Fabric: "xdp:driver", Queues: launch.QueuesShared, Env: []string{"XWARP_SHARED=0"}}},
	{"shared queue, MTU 1500, with faults", launch.Config{Ranks: 4, Testbed: 2, Fabric: "xdp", MTU: 1500, Queues: launch.QueuesShared, Env: []string{"XWARP_SHARED=0", "XWARP_FAULTS=loss=0.03,dup=0.03,reorder=0.05,corrupt=0.01"}}},
	{"shared queue, rc", launch.Config{Ranks: 5, Testbed: 2, Fabric: "xdp", Queues: launch.QueuesShared, Env: []string{"XWARP_TRANSPORT=rc"}}},
	{"shared queue, hybrid", launch.Config{Ranks: 5, Testbed: 2, Fabric: "xdp", Queues: launch.QueuesShared, Env: []string{"XWARP_TRANSPORT=hybrid", "XWARP_PROMOTE=40"}}},
	{"shared queue, ud", launch.Config{Ranks: 4, Testbed: 2, Fabric: "xdp", Queues: launch.QueuesShared, Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=ud"}}},
	{"rc", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=rc"}}},
	{"rc between hosts", launch.Config{Ranks: 5, Testbed: 3, Fabric: "udp", Env: []string{"XWARP_TRANSPORT=rc"}}},
	{"xdp, 5 ranks on 3 hosts, read, with faults", launch.Config{Ranks: 5, Testbed: 3, Fabric: "xdp", Env: []string{"XWARP_RENDEZVOUS=read", "XWARP_FAULTS=loss=0.03,dup=0.03,reorder=0.05,corrupt=0.01"}}},
	{"hybrid, read", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=hybrid", "XWARP_PROMOTE=40", "XWARP_RENDEZVOUS=read"}}},
	{"rc on xdp, read", launch.Config{Ranks: 3, Testbed: 3, Fabric: "xdp", Env: []string{"XWARP_TRANSPORT=rc", "XWARP_RENDEZVOUS=read"}}},
	{"rc on xdp", launch.Config{Ranks: 3, Testbed: 3, Fabric: "xdp", Env: []string{"XWARP_TRANSPORT=rc"}}},
	{"hybrid", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=hybrid", "XWARP_PROMOTE=40"}}},
	{"hybrid with faults", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=hybrid", "XWARP_PROMOTE=40", "XWARP_FAULTS=loss=0.03,dup=0.03,reorder=0.05,corrupt=0.01"}}},
	{"hybrid on xdp", launch.Config{Ranks: 3, Testbed: 3, Fabric: "xdp", Env: []string{"XWARP_TRANSPORT=hybrid", "XWARP_PROMOTE=40"}}},
	{"ud", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=ud"}}},
	{"ud with faults", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=ud", "XWARP_FAULTS=loss=0.03,dup=0.03,reorder=0.05,corrupt=0.01"}}},
	{"ud between hosts, shared memory inside", launch.Config{Ranks: 6, Testbed: 2, Fabric: "xdp", Env: []string{"XWARP_TRANSPORT=ud"}}},
	{"ud on xdp", launch.Config{Ranks: 5, Testbed: 3, Fabric: "xdp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=ud"}}},
	{"ud on xdp, MTU 1500, with faults", launch.Config{Ranks: 2, Testbed: 2, Fabric: "xdp", MTU: 1500, Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=ud", "XWARP_FAULTS=loss=0.03,dup=0.03,reorder=0.05,corrupt=0.01"}}},
}

func TestSuite(t *testing.T) {
	for i, run := range suiteRuns {
		if slow && i%3 != 0 {
			continue
		}
		t.Run(run.name, func(t *testing.T) {
			if run.config.Testbed > 0 {
				testenv.NeedRoot(t)
			}
			var stdout, stderr bytes.Buffer
			c := run.config
			c.Program, c.Args = "/proc/self/exe", []string{asRank}
			c.Stdout, c.Stderr = &stdout, &stderr
			if err := launch.Run(c); err != nil {
				t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
			}
			if n := strings.Count(stdout.String(), "suite:"); n != 7 {
				t.Errorf("%d parts of the suite have ended, want 7:\n%s%s", n, stdout.String(), stderr.String())
			}
		})
	}
}

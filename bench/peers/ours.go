package peers

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/mpi"
)

// oursLibrary is what ours is called in results.
const oursLibrary = "xwarp"

// arenaRoom is what the arena of a rank holds besides the messages of a test.
const arenaRoom = 64 << 20

// Ours starts ranks of xwarp. program is the command of a rank, which calls
// Rank; the program that calls Ours starts agents as internal/job/launch wants it.
// largest is the longest message of the tests in bytes. env is more environment.
func Ours(program []string, w Where, fabric string, largest int, env ...string) (*Job, error) {
	orders, feed := io.Pipe()
	answers, say := io.Pipe()
	complaints := &bench.Tail{}
	config := launch.Config{
		Program: program[0], Args: program[1:], Ranks: w.Ranks, Testbed: w.Hosts, MTU: w.MTU,
		Fabric: fabric, Ghosts: w.Ghosts,
		Env:   append(slices.Concat(env, w.Env), fmt.Sprintf("%s=%d", mpi.EnvArena, arenaRoom+2*largest*w.Ranks)),
		Stdin: orders, Stdout: say, Stderr: complaints,
	}
	if fabric == onHost { // whatever they have besides, ranks of one host do not use it
		config.Fabric = "udp"
	}
	if w.Progress != "" {
		config.Env = append(config.Env, mpi.EnvProgress+"="+w.Progress)
	}
	if w.Ranks > w.Hosts || w.Ghosts > 0 { // as on a host with one NIC
		config.Queues = launch.QueuesShared
	}
	ended := make(chan error, 1)
	go func() {
		err := launch.Run(config)
		// A goroutine that waits for an answer, or has an order to give, learns that
		// the job is over.
		why := cmp.Or(err, io.EOF)
		say.CloseWithError(why)
		orders.CloseWithError(why)
		ended <- err
	}()
	j := &Job{Library: w.ours(), Carrier: carrierName(fabric), orders: feed, answers: bufio.NewReader(answers), complaints: complaints}
	j.end = func() error {
		// The output is not read any more.
		go func() { _, _ = io.Copy(io.Discard, answers) }()
		return <-ended
	}
	if err := j.begin(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// ours returns what ours is called with such ghosts, or such a thread.
func (w Where) ours() string {
	switch {
	case w.Name != "":
		return w.Name
	case w.Progress != "":
		return w.Progress
	case w.Ghosts == 0:
		return oursLibrary
	case w.Ghosts == 1:
		return "1 ghost"
	}
	return fmt.Sprintf("%d ghosts", w.Ghosts)
}

// onHost is the fabric of ranks on one host.
const onHost = "shm"

func carrierName(fabric string) string {
	switch fabric {
	case "udp":
		return "UDP"
	case onHost:
		return "shared memory"
	}
	return "AF_XDP"
}

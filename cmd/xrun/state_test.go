package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// stuckMain is a rank of four that never ends: one receives what nobody sends, one is in
// a collective without the others, one computes, and one sends what nobody receives.
func stuckMain() error {
	p, err := mpi.Init()
	if err != nil {
		return err
	}
	c := p.World()
	if err := c.Barrier(); err != nil {
		return err
	}
	switch c.Rank() {
	case 0:
		_, err = mpi.Recv(c, make([]float64, 100), 2, 7)
	case 1:
		err = c.Barrier()
	case 2:
		compute()
	case 3:
		err = mpi.Send(c, make([]byte, 1<<20), 2, 9)
	}
	if err != nil {
		forever() // xrun ends the job: it is not this rank that is to blame
	}
	return nil
}

func compute() {
	_, _ = os.Stdout.WriteString("up\n")
	for n := 1; n != 0; {
		n |= 1
	}
}

// states are what is said about the ranks of stuckMain: the line of each, and a function
// that is in its stacks.
var states = []struct{ line, stack string }{
	{`rank 0 \(process \d+ on .*\): in Recv for [\d.]+m?s, waits for a message of up to 800 bytes from rank 2 with tag 7\n`, ".stuckMain("},
	{`rank 1 \(process \d+ on .*\): in Comm.Barrier for [\d.]+m?s, waits for a message of up to \d+ bytes from rank \d inside of a collective\n`, ".stuckMain("},
	{`rank 2 \(process \d+ on .*\): in no call of MPI for [\d.]+m?s`, ".compute("},
	{`rank 3 \(process \d+ on .*\): in Send for [\d.]+m?s, waits for (the receive of|room to send) a message of 1048576 bytes to rank 2 with tag 9\n`, ".stuckMain("},
}

// checkStates says what is missing in what is said about the ranks.
func checkStates(text string) error {
	parts := regexp.MustCompile(`(?m)^rank \d `).FindAllStringIndex(text, -1)
	if len(parts) != len(states) {
		return fmt.Errorf("%d ranks are told of in\n%s", len(parts), text)
	}
	for rank, want := range states {
		part := text[parts[rank][0]:]
		if rank+1 < len(parts) {
			part = text[parts[rank][0]:parts[rank+1][0]]
		}
		if !regexp.MustCompile("^"+want.line).MatchString(part) || !strings.Contains(part, want.stack) {
			return fmt.Errorf("rank %d: want %q and %s in\n%s", rank, want.line, want.stack, part)
		}
	}
	return nil
}

// At SIGQUIT it is said what the ranks do, and the job goes on; at a failure it is said
// to who has asked for it.
func TestXrun_state(t *testing.T) {
	for name, args := range map[string][]string{
		"channels": nil,
		"network":  {"-x", mpi.EnvShared + "=0"},
		"threads":  {"-x", mpi.EnvThreads + "=multiple"},
		"testbed":  {"--testbed", "2"},
		"ghosts":   {"--ghosts", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "testbed" {
				testenv.NeedRoot(t)
			}
			cmd := command(append(args, "--quiet", "--report-state", "-n", "4", "-x", ringEnv+"=stuck", self)...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			errOut := &said{grew: make(chan struct{}, 1)}
			cmd.Stderr = errOut
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(out, make([]byte, len("up\n"))); err != nil {
				t.Fatal(err)
			}
			for { // until the others are where they stay
				if err := cmd.Process.Signal(unix.SIGQUIT); err != nil {
					t.Fatal(err)
				}
				if err = checkStates(errOut.next()); err == nil {
					break
				}
				t.Log(err)
			}
			victim := regexp.MustCompile(`rank 2 \(process (\d+)`).FindStringSubmatch(errOut.last)
			pid, err := strconv.Atoi(victim[1])
			if err == nil {
				err = unix.Kill(pid, unix.SIGKILL)
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			text := errOut.text
			if status := cmd.ProcessState.ExitCode(); status != 137 || !strings.Contains(text, "xrun: what the ranks do ") ||
				(name == "ghosts") != strings.Contains(text, "\nghost 0 (process ") || !strings.Contains(text, "\nrank 1 (process ") || strings.Contains(text, "\nrank 2 (") || !strings.Contains(text, "xrun: rank 2 (process ") {
				t.Errorf("status %d, %s", status, text)
			}
		})
	}
}

// said is error output that a test waits for.
type said struct {
	mu   sync.Mutex
	text string
	last string // that next has returned
	grew chan struct{}
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += string(b)
	select {
	case s.grew <- struct{}{}:
	default:
	}
	return len(b), nil
}

// next waits for what is said about all ranks, up to the function that the last of them
// has begun with, and takes it.
func (s *said) next() string {
	for ; ; <-s.grew {
		s.mu.Lock()
		_, after, _ := strings.Cut(s.text, "\nrank 3 (")
		end := strings.Index(after, "main.main(")
		if end >= 0 {
			s.last, s.text = s.text, ""
			s.mu.Unlock()
			return s.last
		}
		s.mu.Unlock()
	}
}

// The same is said when the time is over, with the options of Open MPI, too.
func TestXrun_stateAtTimeout(t *testing.T) {
	_, errOut, status := xrun(t, "--quiet", "--report-state-on-timeout", "--get-stack-traces", "--timeout", "1", "-n", "2", "sleep", "1000")
	if status != 124 || !strings.Contains(errOut, "xrun: what the ranks do ") || !strings.Contains(errOut, ": sleep 1000\n") ||
		!strings.Contains(errOut, "xrun: the job has not ended after 1s") {
		t.Errorf("status %d, %s", status, errOut)
	}
}

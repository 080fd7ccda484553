package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// When the time is over it is said what the ranks do, those too that cannot answer.
func TestRun_stateAtTimeout(t *testing.T) {
	mark := setMark(t)
	for name, c := range map[string]struct {
		config Config
		want   []string
	}{
		"others":  {Config{Program: "sh", Args: []string{"-c", "sleep 1000 & wait"}}, []string{"no rank of MPI, or not yet\n", ": sh -c ", ": sleep 1000\n", " sleeps"}},
		"silent":  {rankConfig(1, "hang"), []string{"does not answer\n", "as-rank hang\n"}},
		"stopped": {Config{Program: "sh", Args: []string{"-c", "kill -STOP $$"}}, []string{" is stopped", ": sh -c kill -STOP"}},
		"pmi":     {rankConfig(1, "pmistay"), []string{"a program of another MPI, whose calls xrun does not see\n", "as-rank pmistay\n"}},
	} {
		text := ""
		for limit := time.Second; limit < 2*time.Minute && !strings.Contains(text, "rank 1 (process "); limit *= 2 { // a slow machine has not started both by then
			var errOut safeBuffer
			c.config.Ranks, c.config.Timeout, c.config.Stderr = 2, limit, &errOut
			err := Run(c.config)
			if _, ok := errors.AsType[*LimitError](err); !ok || ExitCode(err) != ExitTimeout {
				t.Errorf("%s: %v", name, err)
			}
			text = errOut.String()
		}
		for _, want := range append(c.want, "xrun: what the ranks do ", "rank 0 (process ", "rank 1 (process ") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
	awaitNone(mark)
}

// Who asks for it is told what the others do when a rank fails.
func TestRun_stateAtFailure(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		var errOut safeBuffer
		script := `[ $XWARP_RANK = 0 ] && echo $$ > $0 && exec sleep 1000; until [ -s $0 ] && [ "$(cat /proc/$(cat $0)/comm)" = sleep ]; do :; done; exit 3`
		c := Config{Program: "sh", Args: []string{"-c", script, filepath.Join(t.TempDir(), "pid")}, Ranks: 2, Stderr: &errOut, ReportState: wanted}
		err := Run(c)
		text := errOut.String()
		if ExitCode(err) != 3 || strings.Contains(text, ": sleep 1000\n") != wanted || strings.Contains(text, "rank 1 (") {
			t.Errorf("%v: %v\n%s", wanted, err, text)
		}
	}
}

// Ghosts are asked, too, and not waited for once they have ended with the ranks.
func TestJob_stateOfGhosts(t *testing.T) {
	p, err := makePlan(Config{Program: "p", Ranks: 2, Ghosts: 1}, machine{cpus: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, answers := range []bool{true, false} {
		var errOut safeBuffer
		j := newJob(Config{Stderr: &errOut}, p, &outputFiles{})
		for rank := range 3 {
			j.handleReport(&link{}, report{Op: opStarted, Rank: rank, PID: 100 + rank})
		}
		j.ask()
		j.handleReport(&link{}, report{Op: opDoing, Rank: 0, Data: []byte("in Recv\n")})
		if answers {
			j.handleReport(&link{}, report{Op: opDoing, Rank: 2, Data: []byte("in Ghost\n")})
		}
		j.handleReport(&link{}, report{Op: opExit, Rank: 1})
		j.handleReport(&link{}, report{Op: opExit, Rank: 0})
		j.finish()
		j.handleReport(&link{}, report{Op: opExit, Rank: 2, Signal: int(unix.SIGKILL), Told: true})
		j.stdin.close()
		_, text, _ := strings.Cut(errOut.String(), "start:\n")
		want := "rank 0 (process 100 on " + j.rankTable.ranks[0].host + "): in Recv\n"
		if answers {
			want += "ghost 0 (process 102 on " + j.rankTable.ranks[2].host + "): in Ghost\n"
		}
		if text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

func TestReadProcess(t *testing.T) {
	group, err := unix.Getpgid(0) // 0 in a container, where who leads it is outside
	if err != nil {
		t.Fatal(err)
	}
	p, ok := readProcess(os.Getpid())
	if !ok || p.pid != os.Getpid() || p.group != group || p.state != 'R' && p.state != 'S' || !strings.Contains(p.String(), "process "+strconv.Itoa(p.pid)+" ") {
		t.Errorf("%+v, %v", p, ok)
	}
	if p, ok := readProcess(1 << 30); ok {
		t.Errorf("%+v", p)
	}
}

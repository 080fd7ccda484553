package launch

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
		text string
	}{
		{nil, 0, "<nil>"},
		{errors.New("x"), 125, "x"},
		{&ConfigError{"bad"}, 125, "bad"},
		{&HostError{"a", errors.New("gone")}, 125, "host a: gone"},
		{ErrKilled, 125, "killed by a second signal"},
		{&RankError{Rank: 1, PID: 7, Host: "a", Status: 3}, 3, "rank 1 (process 7 on a) exited with status 3"},
		{&RankError{Rank: 1, PID: 7, Host: "a", Signal: unix.SIGSEGV, Core: true}, 139, "rank 1 (process 7 on a) was killed by signal 11 (SIGSEGV) and dumped core"},
		{&RankError{Rank: 1, PID: 7, Host: "a", Why: "without Finalize"}, 1, "rank 1 (process 7 on a) exited with status 0 without Finalize"},
		{&RankError{Rank: 1, PID: 7, Host: "a", Why: "without Finalize", Interrupt: unix.SIGINT}, 130, "rank 1 (process 7 on a) exited with status 0 without Finalize after SIGINT"},
		{&AbortError{Rank: 2, Host: "a", Code: 256, Why: "no"}, 1, "rank 2 on a aborted the job with code 256: no"},
		{&AbortError{Rank: 2, Host: "a", Code: 258}, 2, "rank 2 on a aborted the job with code 258"},
		{&StartError{"a", "p", true, "no"}, 127, "cannot run p on a: no"},
		{&StartError{"a", "p", false, "no"}, 126, "cannot run p on a: no"},
		{fmt.Errorf("wrapped: %w", &TimeoutError{After: time.Second, Missing: []int{3}, Arrived: 1}), 124,
			"wrapped: rank 3 has not reached the start of the job after 1s, while 1 rank waits: give more time with --start-timeout, or see what keeps the missing"},
		{&TimeoutError{After: time.Second, Missing: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, Arrived: 2}, 124,
			"ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more have not reached the start of the job after 1s, while 2 ranks wait: give more time with --start-timeout, or see what keeps the missing"},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
		if got := fmt.Sprint(c.err); got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
	}
}

package launch

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKeepGoing_othersAreTold: a rank dies, the others are told which, end as they
// like, and Run returns why it died.
func TestKeepGoing_othersAreTold(t *testing.T) {
	c := rankConfig(4, "outlive", "2")
	c.KeepGoing = true
	out, err := runJob(t, c)
	if re, ok := errors.AsType[*RankError](err); !ok || re.Rank != 2 || re.Signal != unix.SIGKILL || ExitCode(err) != 128+9 {
		t.Errorf("got %v", err)
	}
	if strings.Count(out, "told of 2 ") != 3 {
		t.Errorf("got %q", out)
	}
}

// TestKeepGoing_missing: who dies and leaves others waiting in a fence ends the job, with
// the reason for its death, be it before the others wait or after.
func TestKeepGoing_missing(t *testing.T) {
	c := rankConfig(4, "missing", "2")
	c.KeepGoing = true
	_, err := runJob(t, c)
	if re, ok := errors.AsType[*RankError](err); !ok || re.Rank != 2 || re.Signal != unix.SIGKILL || ExitCode(err) != 128+9 {
		t.Errorf("got %v", err)
	}
}

// TestKeepGoing_notBeforeTheStart: who dies before all are there ends the job, and so
// does who leaves others waiting in a fence, or calls Abort.
func TestKeepGoing_notBeforeTheStart(t *testing.T) {
	for _, mode := range []string{"joinanddie", "abort"} {
		c := rankConfig(3, mode, "1")
		c.KeepGoing = true
		_, err := runJob(t, c)
		var re *RankError
		if _, ok := errors.AsType[*AbortError](err); !errors.As(err, &re) && !ok {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

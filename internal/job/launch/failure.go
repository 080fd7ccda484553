package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// InterruptError is the end of a job that was interrupted before all its ranks
// were there.
type InterruptError struct{ Signal unix.Signal }

func (e *InterruptError) Error() string {
	return "interrupted by " + unix.SignalName(e.Signal) + " while the job was starting"
}

func (e *InterruptError) exitCode() int { return 128 + int(e.Signal) }

// ErrKilled is the end of a job that was asked to stop twice.
var ErrKilled = errors.New("killed by a second signal")

// RankError says how a rank failed. It is about the first rank that did: what
// happens to the others afterwards is a consequence.
type RankError struct {
	Rank   int
	Ghost  bool // it is not a rank but the ghost with that number
	PID    int
	Host   string
	Status int         // exit status
	Signal unix.Signal // what killed it, or 0
	Core   bool        // it left a core dump
	Why    string      // for a rank that ended with status 0
	// Interrupt is the signal that the job had been sent, or 0.
	Interrupt unix.Signal
}

func (e *RankError) Error() string {
	var b strings.Builder
	who := "rank"
	if e.Ghost {
		who = "ghost"
	}
	fmt.Fprintf(&b, "%s %d (process %d on %s) ", who, e.Rank, e.PID, e.Host)
	switch {
	case e.Signal != 0:
		fmt.Fprintf(&b, "was killed by signal %d (%s)", int(e.Signal), unix.SignalName(e.Signal))
		if e.Core {
			b.WriteString(" and dumped core")
		}
	case e.Status != 0:
		fmt.Fprintf(&b, "exited with status %d", e.Status)
	default:
		b.WriteString("exited with status 0 " + e.Why)
	}
	if e.Interrupt != 0 {
		fmt.Fprintf(&b, " after %s", unix.SignalName(e.Interrupt))
	}
	return b.String()
}

func (e *RankError) exitCode() int {
	switch {
	case e.Signal != 0:
		return 128 + int(e.Signal)
	case e.Status != 0:
		return e.Status
	case e.Interrupt != 0:
		return 128 + int(e.Interrupt)
	}
	return 1
}

// AbortError says that a rank has ended the job.
type AbortError struct {
	Rank int
	Host string
	Code int
	Why  string
}

func (e *AbortError) Error() string {
	s := fmt.Sprintf("rank %d on %s aborted the job with code %d", e.Rank, e.Host, e.Code)
	if e.Why != "" {
		s += ": " + e.Why
	}
	return s
}

// exitCode keeps what fits: an exit status has 8 bits, and an abort is never 0.
func (e *AbortError) exitCode() int {
	if code := e.Code & 0xff; code != 0 {
		return code
	}
	return 1
}

// TimeoutError names hosts or ranks that did not start in time.
type TimeoutError struct {
	After   time.Duration
	Hosts   []string // hosts without an answer
	Missing []int    // ranks that others wait for
	Arrived int      // how many ranks wait
}

func (e *TimeoutError) Error() string {
	if len(e.Hosts) > 0 {
		return fmt.Sprintf("no answer from %s after %v: check that the launcher reaches it and finds xrun there (--launcher-exec, --agent-path, --start-timeout)",
			strings.Join(e.Hosts, ", "), e.After)
	}
	return fmt.Sprintf("%s after %v, while %s: give more time with --start-timeout, or see what keeps the missing",
		plural(e.Missing, "rank %s has not reached the start of the job", "ranks %s have not reached the start of the job"),
		e.After, count(e.Arrived, "rank waits", "ranks wait"))
}

func (e *TimeoutError) exitCode() int { return ExitTimeout }

// LimitError says that the job took longer than it may.
type LimitError struct{ After time.Duration }

func (e *LimitError) Error() string {
	return fmt.Sprintf("the job has not ended after %v, which is all that --timeout gives it", e.After)
}

func (e *LimitError) exitCode() int { return ExitTimeout }

// MixedError says that two ranks are of different MPI libraries.
type MixedError struct {
	PMI, Own       int // ranks: one that speaks PMI, and one that is built with xwarp
	PMIApp, OwnApp string
}

func (e *MixedError) Error() string {
	return fmt.Sprintf("rank %d (%s) is built with another MPI library (it speaks PMI, as those of MPICH do), and rank %d (%s) with xwarp: build all programs of a job with the same one",
		e.PMI, e.PMIApp, e.Own, e.OwnApp)
}

// mixed says which of two ranks is built with what.
func (j *job) mixed(pmi, own int) error {
	if !j.rankTable.ranks[pmi].pmi {
		pmi, own = own, pmi
	}
	apps := j.config.apps()
	return &MixedError{pmi, own, apps[j.plan.appOf(pmi)].Program, apps[j.plan.appOf(own)].Program}
}

// HostError says that a host could not do its part.
type HostError struct {
	Host string
	Err  error
}

func (e *HostError) Error() string { return "host " + e.Host + ": " + e.Err.Error() }
func (e *HostError) Unwrap() error { return e.Err }

// StartError says that a program could not be run.
type StartError struct {
	Host, Program string
	NotFound      bool
	Why           string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("cannot run %s on %s: %s", e.Program, e.Host, e.Why)
}

func (e *StartError) exitCode() int {
	if e.NotFound {
		return ExitNotFound
	}
	return ExitCannotRun
}

// mayFollow reports whether a failure may come of another one: a rank that notices the
// death of others ends, by itself, and not as if nothing had happened, while a ghost whose
// ranks are gone ends with status 0.
func mayFollow(err error) bool {
	if e, ok := errors.AsType[*RankError](err); ok {
		return e.Signal == 0 && (e.Status != 0 || e.Ghost) || e.Signal == unix.SIGABRT || e.Signal == unix.SIGPIPE
	}
	_, ok := errors.AsType[*AbortError](err)
	return ok
}

// lostError describes the unexpected end of an agent's process. One on
// another host that never answered was not reached.
func (l *link) lostError(remote bool) error {
	end := "it has ended"
	if l.cmd.ProcessState != nil {
		end = l.cmd.ProcessState.String()
	}
	if !remote || l.ready {
		return fmt.Errorf("lost its agent (%s)", end)
	}
	argv := l.cmd.Args
	if state := l.cmd.ProcessState; state != nil && state.ExitCode() == ExitNotFound && len(argv) > 2 { // the shell there says so
		return fmt.Errorf("its agent did not start (%s): there is no %s: install xwarp on that host, or say with --agent-path where its xrun is", end, argv[len(argv)-2])
	}
	return fmt.Errorf("its agent did not start (%s): try %q, which has to find xrun there and ask for no password (--launcher-exec, --agent-path)",
		end, strings.Join(append(slices.Clone(argv[:len(argv)-1]), "--version"), " "))
}

// plural formats a list of ranks with the form for one or for many.
func plural(ranks []int, one, many string) string {
	const shown = 8
	var words []string
	for _, r := range ranks[:min(len(ranks), shown)] {
		words = append(words, strconv.Itoa(r))
	}
	list := strings.Join(words, ", ")
	if more := len(ranks) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if len(ranks) == 1 {
		return fmt.Sprintf(one, list)
	}
	return fmt.Sprintf(many, list)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

package mpi

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// witness tells the launcher, when it asks, what a process does: the call of MPI that
// it is in, which its stacks show, what that waits for, which the endpoint notes before
// it sleeps, and the stacks. Calls that need not sleep cost nothing by that.
type witness struct {
	ep atomic.Pointer[p2p.Endpoint] // nil until there is one
}

// witnessFor returns a witness that answers the launcher of a job, if it asks.
func witnessFor(job boot.Job) *witness {
	w := &witness{}
	if j, ok := job.(boot.Stateful); ok {
		j.OnState(w.state)
	}
	return w
}

// stackMost is how many bytes of stacks are looked at, and stackShown how many are told.
const (
	stackMost  = 1 << 20
	stackShown = 32 << 10
)

// state says what the process does: one line, and then the stacks.
func (w *witness) state() string {
	stacks := make([]byte, stackMost)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var calls []string // of MPI, one for each goroutine that is in one
	var inside, outside strings.Builder
	for stack := range strings.SplitSeq(strings.TrimSpace(string(stacks)), "\n\n") {
		switch call, from := publicCall(stack); {
		case call != "":
			calls = append(calls, call)
			head, _, _ := strings.Cut(stack, "\n")
			indent(&inside, head+"\n"+stack[from:])
		case !strings.Contains(stack, "\ncreated by "+ownModule): // ours are no news
			indent(&outside, stack)
		}
	}
	text := w.doing(calls) + "\n" + inside.String() + outside.String()
	if len(text) > stackShown {
		text = text[:stackShown] + "\n    ...\n"
	}
	return text
}

func indent(b *strings.Builder, stack string) {
	fmt.Fprintf(b, "    %s\n", strings.ReplaceAll(strings.TrimSpace(stack), "\n", "\n    "))
}

// ownPackage is where calls of MPI are, and ownModule what they use.
const (
	ownModule  = "github.com/xwarp/xwarp/internal/"
	ownPackage = "github.com/xwarp/xwarp/mpi."
)

// publicCall returns the call of this package that a goroutine is in, or "", and where
// its frame is in the stack, which has the innermost function first.
func publicCall(stack string) (name string, from int) {
	at := 0
	for line := range strings.Lines(stack) {
		if fn, own := strings.CutPrefix(line, ownPackage); own {
			if call := callName(fn); call != "" {
				name, from = call, at
			}
		}
		at += len(line)
	}
	return name, from
}

// callName makes "Comm.Barrier" of "(*Comm).Barrier(0xc0000)", and "Recv" of
// "Recv[...](...)". What is not exported is no call, nor what Run starts.
func callName(fn string) string {
	fn = strings.Replace(strings.TrimPrefix(fn, "(*"), ").", ".", 1)
	if end := strings.IndexAny(fn, "[(\n"); end >= 0 {
		fn = fn[:end]
	}
	for part := range strings.SplitSeq(fn, ".") {
		if part == "" || part == "Run" || part == "RunWith" || !unicode.IsUpper(rune(part[0])) {
			return ""
		}
	}
	return fn
}

// doing says what the calls do that the process is in.
func (w *witness) doing(calls []string) string {
	ep := w.ep.Load()
	var wait p2p.Wait
	waited := false
	if ep != nil {
		wait, waited = ep.Waiting()
	}
	var now mono.Time
	if ep != nil {
		now = ep.Engine().Clock().Now()
	}
	asleep := waited && (wait.Awake == mono.Never || now.Sub(wait.Awake) < wokenLately)
	switch {
	case ep == nil && len(calls) == 0:
		return "in no call of MPI, before Init or in it"
	case len(calls) == 0 && !waited:
		return fmt.Sprintf("in no call of MPI for %v", ago(now, ep.Engine().LastStep()))
	case len(calls) == 0:
		return fmt.Sprintf("in no call of MPI for %v; the last one that had to sleep was %s, for %s, until %v ago",
			ago(now, ep.Engine().LastStep()), waiter(wait.Calls), waitedFor(wait), ago(now, wait.Awake))
	case !asleep:
		return "in " + strings.Join(calls, ", ")
	}
	return fmt.Sprintf("in %s for %v, waits for %s", strings.Join(calls, ", "), ago(now, wait.Since), waitedFor(wait))
}

// wokenLately is longer than a rank sleeps at a time that waits.
const wokenLately = mono.Second

func ago(now, then mono.Time) time.Duration {
	if then > now {
		return 0
	}
	return now.Sub(then).Round(10 * time.Millisecond)
}

// waiter returns the call of this package that a wait was in.
func waiter(calls []uintptr) (name string) {
	name = "one"
	for frames := runtime.CallersFrames(calls); ; {
		f, more := frames.Next()
		if fn, own := strings.CutPrefix(f.Function, ownPackage); own {
			if call := callName(fn); call != "" {
				name = call
			}
		}
		if !more {
			return name
		}
	}
}

// waitedFor says what a wait is for.
func waitedFor(w p2p.Wait) string {
	switch w.For {
	case "":
		return "anything that moves"
	case p2p.ForLock, p2p.ForSegment:
		return fmt.Sprintf("%s of rank %d, after %d tries", w.For, w.Peer, w.Tries)
	}
	var b strings.Builder
	b.WriteString(w.For)
	switch {
	case w.For == "a message":
		fmt.Fprintf(&b, " of up to %d bytes", w.Bytes)
	default:
		fmt.Fprintf(&b, " of %d bytes", w.Bytes)
	}
	way := "to"
	if w.From {
		way = "from"
	}
	if w.Peer == match.Any {
		fmt.Fprintf(&b, " %s any rank", way)
	} else {
		fmt.Fprintf(&b, " %s rank %d", way, w.Peer)
	}
	switch {
	case w.Context%2 == 1:
		b.WriteString(" inside of a collective")
	case w.Tag == match.Any:
		b.WriteString(" with any tag")
	default:
		fmt.Fprintf(&b, " with tag %d", w.Tag)
	}
	switch w.Context / 2 {
	case 0:
	case selfContext / 2:
		b.WriteString(" of MPI_COMM_SELF")
	default:
		fmt.Fprintf(&b, " of the communicator with context %d", w.Context&^1)
	}
	return b.String()
}

package launch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/proc"
)

// What the ranks do is asked when a job takes too long, and when a user asks to
// know. A rank of ours answers over its socket; of others, and of those that do not
// answer, the agent tells what the kernel knows of their processes.

// How long a rank has to answer, and then its agent.
const (
	answerTimeout   = 2 * time.Second
	questionTimeout = 5 * time.Second
)

// question is what the controller waits for.
type question struct {
	limit   <-chan time.Time
	waits   map[int]bool // ranks that have not answered
	answers map[int]string
}

// over says when there is no more time; never for no question.
func (q *question) over() <-chan time.Time {
	if q == nil {
		return nil
	}
	return q.limit
}

// endAfterAsking ends the ranks, once, after they have told what they do if a user
// wants to know.
func (j *job) endAfterAsking() {
	_, limit := errors.AsType[*LimitError](j.failure)
	_, start := errors.AsType[*TimeoutError](j.failure)
	if wanted := j.config.ReportState || limit || start; wanted && !j.told && !j.ending {
		j.told = true
		j.ask()
	}
	if j.asked == nil || !j.told {
		j.end()
	}
}

// ask asks the ranks what they do.
func (j *job) ask() {
	if j.asked != nil || j.ending {
		return
	}
	j.asked = &question{limit: time.After(questionTimeout), waits: map[int]bool{}, answers: map[int]string{}}
	for rank, r := range j.rankTable.ranks {
		if r.pid != 0 && !r.exited {
			j.asked.waits[rank] = true
		}
	}
	j.broadcast(order{Op: opState})
	j.forget()
}

// answer takes what a rank does.
func (j *job) answer(r report) {
	if j.asked != nil && j.asked.waits[r.Rank] {
		j.asked.answers[r.Rank] = string(r.Data)
		j.forget(rankPlan{Rank: r.Rank})
	}
}

// forget waits no more for the answers of ranks.
func (j *job) forget(ranks ...rankPlan) {
	if j.asked == nil {
		return
	}
	for _, r := range ranks {
		delete(j.asked.waits, r.Rank)
	}
	if len(j.asked.waits) == 0 {
		j.answered()
	}
}

// answered prints what the ranks do.
func (j *job) answered() {
	q := j.asked
	j.asked = nil
	w := j.printer.errors()
	for rank := range q.waits {
		q.answers[rank] = "unknown: its agent does not answer\n"
	}
	if w == nil || len(q.answers) == 0 {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "xrun: what the ranks do %v after their start:\n", time.Since(j.began).Round(10*time.Millisecond))
	for _, rank := range slices.Sorted(maps.Keys(q.answers)) {
		s := j.rankTable.ranks[rank]
		fmt.Fprintf(&b, "%s (process %d on %s): %s", j.title(rank), s.pid, s.host, q.answers[rank])
	}
	_, _ = fmt.Fprint(w, b.String()) // a closed terminal is no reason to end the job
}

// tell reports what the rank does.
func (r *rank) tell(out *outbox) {
	text, ok := "", false
	switch {
	case r.ours.Load():
		if text, ok = r.answer(); !ok {
			text = "does not answer\n"
		}
	case r.session.Load() != nil:
		text = "a program of another MPI, whose calls xrun does not see\n"
	default:
		text = "no rank of MPI, or not yet\n"
	}
	if !ok {
		text += processes(r.cmd.Process.Pid)
	}
	out.postData(report{Op: opDoing, Rank: r.number}, []byte(text[:min(len(text), maxData)]))
}

// answer asks the rank what it does.
func (r *rank) answer() (text string, ok bool) {
	select {
	case <-r.doing: // it came too late for the question before
	default:
	}
	r.boot.post(boot.Reply{Op: boot.OpState})
	select {
	case text = <-r.doing:
		return text, true
	case <-time.After(answerTimeout):
		return "", false
	}
}

// processes tells what the kernel knows of a group of processes, which a rank leads.
func processes(group int) string {
	var b strings.Builder
	proc.That(func(pid int) bool {
		p, ok := readProcess(pid)
		if ok && p.group == group {
			b.WriteString("    " + p.String() + "\n")
		}
		return false
	})
	return b.String()
}

// process is what the kernel knows of a process.
type process struct {
	pid, parent, group int

	state   byte
	where   string // in the kernel it sleeps; or ""
	used    time.Duration
	command string
}

func readProcess(pid int) (p process, ok bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	fields := proc.Stat(stat)
	if err != nil || len(fields) < 13 {
		return p, false
	}
	p.pid, p.state = pid, fields[0][0]
	p.parent, _ = strconv.Atoi(string(fields[1]))
	p.group, _ = strconv.Atoi(string(fields[2]))
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	p.used = time.Duration(user+system) * time.Second / ticks
	if where, err := os.ReadFile(dir + "wchan"); err == nil && string(where) != "0" {
		p.where = string(where)
	}
	command, _ := readSome(dir+"cmdline", maxCommand)
	p.command = strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
	return p, true
}

// maxCommand is how much of a command is read; less of it is shown.
const maxCommand = 4096

// ticks is how many clock ticks a second has in /proc: on Linux always so many.
const ticks = 100

func (p process) String() string {
	does, ok := map[byte]string{
		'R': "runs", 'S': "sleeps", 'D': "waits for the kernel", 'T': "is stopped", 't': "is held by a debugger", 'Z': "has ended",
	}[p.state]
	if !ok {
		does = "is in state " + string(p.state)
	}
	if p.where != "" {
		does += " in " + p.where
	}
	return fmt.Sprintf("process %d %s, after %v of processor time: %.200s", p.pid, does, p.used, p.command)
}

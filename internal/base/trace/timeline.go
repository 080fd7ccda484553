package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// WriteTimeline writes the calls of all ranks in the JSON form of the Chrome trace
// format, which ui.perfetto.dev and chrome://tracing open: a process for each
// rank, a slice for each call, and an arrow for each message from the call that
// sent it to the one that received it, or from "progress" between two calls. Calls that overlap, because goroutines made
// them, are on several threads of the rank. The error is w's.
//
// Ranks are put on one time line by the clocks of their hosts. Those of different
// hosts may differ: shift, in ns by rank, is added to the times of a rank; see
// Shifts. nil adds nothing.
func WriteTimeline(w io.Writer, reports []*Report, shift []int64) error {
	first := int64(0)
	for i, r := range reports {
		for _, e := range r.Events {
			if at := r.time(e.Begin, shiftOf(shift, i)); first == 0 || at < first {
				first = at
			}
		}
	}
	b := []byte(`{"displayTimeUnit":"ns","traceEvents":[`)
	between := ""
	arrows := pairs(reports)
	for i, r := range reports {
		t := timeline{r: r, base: first - shiftOf(shift, i), arrows: arrows, b: b, between: between}
		t.write()
		if _, err := w.Write(t.b); err != nil {
			return fmt.Errorf("trace: rank %d: %w", r.Rank, err)
		}
		b, between = t.b[:0], ","
	}
	if _, err := w.Write(append(b, "\n]}\n"...)); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

func shiftOf(shift []int64, i int) int64 {
	if i < len(shift) {
		return shift[i]
	}
	return 0
}

func (r *Report) time(at, shift int64) int64 { return r.Origin + at + shift }

// message is what tells a message from all others of a job.
type message struct {
	from, to int32
	context  uint32
	tag      int32
	number   uint64
}

func (r *Report) message(e *CallEvent) message {
	m := message{from: int32(r.Rank), to: e.Peer, context: e.Context, tag: e.Tag, number: e.Number}
	if e.Kind == MessageGot {
		m.from, m.to = m.to, m.from
	}
	return m
}

// pairs numbers the messages of which both ends are known.
func pairs(reports []*Report) map[message]int {
	sent, both := map[message]bool{}, map[message]int{}
	each(reports, MessageSent, func(r *Report, e *CallEvent) { sent[r.message(e)] = true })
	each(reports, MessageGot, func(r *Report, e *CallEvent) {
		if m := r.message(e); sent[m] && both[m] == 0 {
			both[m] = len(both) + 1
		}
	})
	return both
}

// each calls f with all events of messages of a kind whose number is known.
func each(reports []*Report, kind EventKind, f func(*Report, *CallEvent)) {
	for _, r := range reports {
		for i := range r.Events {
			if e := &r.Events[i]; e.Kind == kind && e.Number != 0 {
				f(r, e)
			}
		}
	}
}

// timeline writes the events of one rank.
type timeline struct {
	r       *Report
	base    int64 // what the times of the file begin with
	arrows  map[message]int
	b       []byte
	between string
	threads [][]int64 // of each, the ends of the calls that are open
	epochs  map[epoch]int64
	count   int // of epochs
}

func (t *timeline) write() {
	r := t.r
	last := int64(0)
	for i := range r.Events {
		last = max(last, r.Events[i].Begin, r.Events[i].End)
	}
	for i := range r.Events { // calls that death has cut off end with the record
		if e := &r.Events[i]; e.Kind == CallBegun {
			e.End = last
		}
	}
	name := fmt.Sprintf("rank %d", r.Rank)
	if r.Host != "" {
		name += " on " + r.Host
	}
	if r.Lost > 0 {
		name += fmt.Sprintf(" (%d earlier events dropped)", r.Lost)
	}
	t.meta("process_name", "name", name)
	t.meta("process_sort_index", "sort_index", r.Rank)
	order := make([]int, len(r.Events))
	for i := range order {
		order[i] = i
	}
	// Outer calls before inner ones; what began at the same time, in the order
	// of the record.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Events[a].Begin, r.Events[b].Begin) })
	on := 0
	for _, i := range order {
		switch e := &r.Events[i]; e.Kind {
		case CallBegun, CallEnded:
			on = t.thread(e)
			t.slice(e, on)
			t.epoch(e)
		case MessageSent, MessageGot:
			t.message(e)
		}
	}
}

// maxThreads keeps what a rank that has gone mad has left from taking for ever.
const maxThreads = 1024

// thread returns the first thread on which a call is after, or inside, what is
// there, or the last one that there may be.
func (t *timeline) thread(e *CallEvent) int {
	for i, open := range t.threads {
		for len(open) > 0 && open[len(open)-1] <= e.Begin {
			open = open[:len(open)-1]
		}
		t.threads[i] = open
		if len(open) == 0 || e.End <= open[len(open)-1] {
			t.threads[i] = append(open, e.End)
			return i
		}
	}
	if len(t.threads) < maxThreads {
		t.threads = append(t.threads, nil)
	}
	last := len(t.threads) - 1
	t.threads[last] = append(t.threads[last], e.End)
	return last
}

// threadAt returns a thread on which a call is open when a message goes or comes.
func (t *timeline) threadAt(e *CallEvent) (on int, inside bool) {
	for i, open := range t.threads {
		if len(open) > 0 && open[len(open)-1] >= e.Begin {
			on, inside = i, true
		}
	}
	return on, inside
}

// event begins an event of the file.
func (t *timeline) event(name, phase string, thread int) {
	t.b = append(t.b, t.between...)
	t.between = ","
	t.b = append(t.b, "\n"+`{"name":`...)
	text, _ := json.Marshal(name) // a string always can
	t.b = append(t.b, text...)
	t.b = fmt.Appendf(t.b, `,"ph":%q,"pid":%d,"tid":%d`, phase, t.r.Rank, thread)
}

func (t *timeline) meta(what, key string, value any) {
	t.event(what, "M", 0)
	text, _ := json.Marshal(value) // strings and numbers always can
	t.b = fmt.Appendf(t.b, `,"args":{%q:%s}}`, key, text)
}

// at writes a time, which the format has in microseconds.
func (t *timeline) at(name string, ns int64) {
	t.b = fmt.Appendf(t.b, `,%q:`, name)
	t.b = strconv.AppendFloat(t.b, float64(ns)/1000, 'f', 3, 64)
}

func (t *timeline) slice(e *CallEvent, thread int) {
	t.event(t.r.Name(e.Op), "X", thread)
	t.at("ts", t.r.Origin+e.Begin-t.base)
	t.at("dur", max(e.End-e.Begin, 0))
	t.b = fmt.Appendf(t.b, `,"cat":"mpi","args":{"communicator":%d`, e.Context)
	if e.Peer >= 0 {
		t.b = fmt.Appendf(t.b, `,"peer":%d`, e.Peer)
	}
	if e.Tag >= 0 {
		t.b = fmt.Appendf(t.b, `,"tag":%d`, e.Tag)
	}
	t.b = fmt.Appendf(t.b, `,"bytes":%d`, e.Bytes)
	if e.Number > 0 {
		t.b = fmt.Appendf(t.b, `,"served":%q`, ServerName(int(e.Number-1)))
	}
	if e.Kind == CallBegun {
		t.b = append(t.b, `,"unfinished":true`...)
	}
	if e.Failed {
		t.b = append(t.b, `,"failed":true`...)
	}
	t.b = append(t.b, "}}"...)
}

// epoch is what epochs of a rank are told apart by.
type epoch struct {
	kind    string
	context uint32
	peer    int32
}

// epochCalls are the calls that begin epochs of windows, and those that end them.
var epochCalls = map[string]struct {
	kind       string
	begin, end bool
}{
	"Win.Fence": {"fence", true, true},
	"Win.Start": {"start", true, false}, "Win.Complete": {"start", false, true},
	"Win.Post": {"post", true, false}, "Win.Wait": {"post", false, true},
	"Win.Lock": {"lock", true, false}, "Win.Unlock": {"lock", false, true},
	"Win.LockAll": {"lock_all", true, false}, "Win.UnlockAll": {"lock_all", false, true},
}

// epoch writes an epoch when the call that ends it is there: from the end of the one that began
// it to its own.
func (t *timeline) epoch(e *CallEvent) {
	c, ok := epochCalls[t.r.Name(e.Op)]
	if !ok || e.Kind != CallEnded || e.Failed {
		return
	}
	which := epoch{c.kind, e.Context, e.Peer}
	if since, open := t.epochs[which]; open && c.end {
		t.count++
		for i, phase := range []string{"b", "e"} {
			t.event(fmt.Sprintf("epoch of %s, window %d", c.kind, e.Context), phase, 0)
			t.at("ts", t.r.Origin+[]int64{since, e.End}[i]-t.base)
			t.b = fmt.Appendf(t.b, `,"cat":"epoch","id":%d}`, t.r.Rank*MaxEvents+t.count)
		}
		delete(t.epochs, which)
	}
	if c.begin {
		if t.epochs == nil {
			t.epochs = map[epoch]int64{}
		}
		t.epochs[which] = e.End
	}
}

// message writes one end of an arrow. Viewers draw only those that begin and end in a
// slice: a message of what goes on between the calls of a program, as nonblocking
// collectives do while it asks for something else, gets a slice of its own.
func (t *timeline) message(e *CallEvent) {
	id := t.arrows[t.r.message(e)]
	if id == 0 {
		return
	}
	thread, inside := t.threadAt(e)
	if !inside {
		t.event("progress", "X", thread)
		t.at("ts", t.r.Origin+e.Begin-t.base)
		t.b = append(t.b, `,"dur":0,"cat":"mpi"}`...)
	}
	phase := "s"
	if e.Kind == MessageGot {
		phase = "f"
	}
	t.event("message", phase, thread)
	t.at("ts", t.r.Origin+e.Begin-t.base)
	t.b = fmt.Appendf(t.b, `,"cat":"message","id":%d,"args":{"bytes":%d}`, id, e.Bytes)
	if phase == "f" {
		t.b = append(t.b, `,"bp":"e"`...)
	}
	t.b = append(t.b, '}')
}

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// story tells how the tests of several packages go.
type story struct {
	out   io.Writer
	now   func() mono.Time
	start mono.Time
	total int // packages
	ended int
	said  int // ended when it was last told what runs

	running map[string]*suite
	left    map[string]map[string]bool // reason, tests that were left out for it
	failed  []string                   // packages, and their tests
	stacks  []string                   // of tests that ran when time was up, and of data races
}

// suite is a package whose tests run.
type suite struct {
	test   string              // that began last
	failed []string            // tests, and what a panic said
	output map[string][]string // by test; "" is the package's own
	order  []string            // tests that have output, in the order of their first line
}

// failedShown is how many failed tests of a package are named once more in the end.
const failedShown = 10

func newStory(out io.Writer, total int) *story {
	s := &story{out: out, now: mono.Real{}.Now, total: total, running: map[string]*suite{}, left: map[string]map[string]bool{}}
	s.start = s.now()
	return s
}

// hear takes a line of go test -json.
func (s *story) hear(line string) {
	e, ok := parse(line)
	if !ok { // go test has said something else
		fmt.Fprint(s.out, line)
		return
	}
	if e.Action == "build-output" {
		fmt.Fprint(s.out, e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	r := s.running[e.Package]
	if r == nil {
		r = &suite{output: map[string][]string{}}
		s.running[e.Package] = r
	}
	switch e.Action {
	case "run":
		r.test = e.Test
	case "output":
		r.keep(e)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.finish(e, r)
		} else if e.Action == "fail" {
			r.failed = append(r.failed, e.Test)
		} else {
			if e.Action == "skip" {
				s.leave(e, r.output[e.Test])
			}
			delete(r.output, e.Test)
		}
	}
}

// keep keeps what a test has written until it is known how it ends.
func (r *suite) keep(e event) {
	for _, noise := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(e.Output, noise) {
			return
		}
	}
	if strings.HasPrefix(e.Output, "panic: ") {
		r.failed = append(r.failed, strings.TrimSpace(e.Output))
	}
	if r.output[e.Test] == nil {
		r.order = append(r.order, e.Test)
	}
	r.output[e.Test] = append(r.output[e.Test], e.Output)
}

// leave notes that a test was skipped. The reason is the last line before the
// verdict, behind the place in the source.
func (s *story) leave(e event, output []string) {
	why := "without a reason"
	for _, line := range output {
		if _, reason, ok := strings.Cut(line, ".go:"); ok {
			_, why, _ = strings.Cut(strings.TrimSpace(reason), " ")
		}
	}
	if s.left[why] == nil {
		s.left[why] = map[string]bool{}
	}
	s.left[why][e.Package+"."+e.Test] = true
}

// finish says how a package ended.
func (s *story) finish(e event, r *suite) {
	delete(s.running, e.Package)
	s.ended++
	if e.Action == "fail" {
		s.failed = append(s.failed, strings.TrimSpace(e.Package+" "+strings.Join(r.failed[:min(len(r.failed), failedShown)], ", ")))
		for _, test := range r.order {
			for _, line := range r.output[test] {
				if !isVerdict(line) {
					fmt.Fprint(s.out, line)
				}
			}
			text := strings.Join(r.output[test], "")
			s.stacks = append(append(s.stacks, stacksOfTests(text)...), racesIn(text)...)
		}
	}
	verdict, took := "ok  ", fmt.Sprintf("%.3fs", e.Elapsed)
	switch {
	case e.Action == "fail" && e.FailedBuild != "":
		verdict, took = "FAIL", "[build failed]"
	case e.Action == "fail":
		verdict = "FAIL"
	case e.Action == "skip":
		verdict, took = "?   ", "[no test files]"
	case slices.ContainsFunc(r.output[""], func(l string) bool { return strings.Contains(l, "(cached)") }):
		took = "(cached)"
	}
	fmt.Fprintf(s.out, "%s\t%s\t%s\t[%s]\n", verdict, e.Package, took, s.progress())
}

// stacksOfTests returns, of what a test printed that stood still until its time was up, the names of the
// tests that ran and the goroutines that are in files of tests: of hundreds of others that follow
// them, an end that is cut would show the last only. Jobs of processes print theirs, too.
func stacksOfTests(text string) (stacks []string) {
	if !strings.Contains(text, "panic: test timed out") && !strings.Contains(text, " stood still: ") {
		return nil
	}
	for _, part := range strings.Split(text, "\n\n") {
		if strings.Contains(part, "running tests:") || strings.Contains(part, "_test.go:") {
			stacks = append(stacks, strings.TrimSpace(part))
		}
	}
	return stacks
}

// racesIn returns what the race detector has printed of both accesses, without where their goroutines come from.
func racesIn(text string) (races []string) {
	const begin, access = "WARNING: DATA RACE\n", 2
	for _, report := range strings.Split(text, begin)[1:] {
		parts := strings.SplitN(report, "\n\n", access+1)
		races = append(races, begin+strings.Join(parts[:min(access, len(parts))], "\n\n"))
	}
	return races
}

// isVerdict reports whether a line is go test's own about a package: finish says
// it with the progress.
func isVerdict(line string) bool {
	return line == "PASS\n" || line == "FAIL\n" || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "ok  \t")
}

func (s *story) progress() string {
	return fmt.Sprintf("%d of %d packages, %v", s.ended, s.total, s.now().Sub(s.start).Round(time.Second))
}

// tell says what runs, unless a package has ended since it was last called.
func (s *story) tell() {
	quiet := s.said == s.ended
	s.said = s.ended
	if !quiet {
		return
	}
	var running []string
	for _, p := range slices.Sorted(maps.Keys(s.running)) {
		if test := s.running[p].test; test != "" {
			running = append(running, p[strings.LastIndex(p, "/")+1:]+" "+test)
		}
	}
	what := "building"
	if len(running) > 0 {
		what = "running: " + strings.Join(running, ", ")
	}
	fmt.Fprintf(s.out, "...\t[%s] %s\n", s.progress(), what)
}

// end says what was left out, and what failed.
func (s *story) end() {
	for _, why := range slices.Sorted(maps.Keys(s.left)) {
		tests := slices.Sorted(maps.Keys(s.left[why]))
		fmt.Fprintf(s.out, "left out: %s: %s", tests[0], why)
		if n := len(tests) - 1; n > 0 {
			fmt.Fprintf(s.out, " (and %d more)", n)
		}
		fmt.Fprintln(s.out)
	}
	// A package that was running when go test died has not ended.
	for _, p := range slices.Sorted(maps.Keys(s.running)) {
		for _, lines := range s.running[p].output {
			fmt.Fprint(s.out, strings.Join(lines, ""))
		}
	}
	for _, stack := range s.stacks {
		fmt.Fprintf(s.out, "%s\n\n", stack)
	}
	if len(s.failed) > 0 {
		fmt.Fprintf(s.out, "FAIL: %s [%s]\n", strings.Join(s.failed, "; "), s.progress())
	}
}

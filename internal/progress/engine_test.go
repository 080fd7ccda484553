package progress

import (
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// manual is a clock that a test sets, and a parker that records.
type manual struct {
	now   mono.Time
	until mono.Time
	idle  []mono.Duration
	pass  mono.Duration // time that each Park takes
	woken int
}

func (m *manual) Now() mono.Time { return m.now }
func (m *manual) Wake()          { m.woken++ }
func (m *manual) Park(until mono.Time, idle mono.Duration) bool {
	m.until = until
	m.idle = append(m.idle, idle)
	m.now = m.now.Add(m.pass)
	return m.pass > 0
}

// source is work that a test puts in.
type source struct {
	work     int
	deadline mono.Time
	polled   []mono.Time
	inside   func()
}

func (s *source) Poll(now mono.Time, budget int) int {
	s.polled = append(s.polled, now)
	if s.inside != nil {
		s.inside()
	}
	n := min(s.work, budget)
	s.work -= n
	return n
}

func (s *source) Deadline() mono.Time { return s.deadline }

func TestStep_pollsAllWithOneTime(t *testing.T) {
	m := &manual{now: 42}
	e := New(m, m)
	a, b := &source{work: 3, inside: func() { m.now++ }}, &source{work: Budget + 5}
	e.Add(a)
	e.Add(b)
	if n := e.Step(); n != 3+Budget {
		t.Errorf("Step = %d", n)
	}
	if n := e.Step(); n != 5 {
		t.Errorf("second Step = %d", n)
	}
	if a.polled[0] != 42 || b.polled[0] != 42 || e.Now() != 43 {
		t.Errorf("sources saw %v and %v, engine %v", a.polled, b.polled, e.Now())
	}
	e.Remove(a)
	e.Step()
	if len(a.polled) != 2 || len(b.polled) != 3 {
		t.Errorf("after Remove: polled %d and %d times", len(a.polled), len(b.polled))
	}
}

func TestStep_panicsOnConcurrentUse(t *testing.T) {
	m := &manual{}
	e := New(m, m)
	e.Add(&source{inside: func() { e.Step() }})
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "two goroutines") {
			t.Errorf("panic %q", v)
		}
	}()
	e.Step()
}

func TestPark_earliestDeadline(t *testing.T) {
	m := &manual{}
	e := New(m, m)
	e.Step()
	e.Park()
	if m.until != mono.Never {
		t.Errorf("without sources Park waits until %d", m.until)
	}
	e.Add(&source{deadline: 900})
	e.Add(&source{deadline: 700})
	e.Add(&source{deadline: mono.Never})
	e.Park()
	if m.until != 700 {
		t.Errorf("Park waits until %d", m.until)
	}
}

func TestPark_idleCountsFromWorkOrFromTheWaitsStart(t *testing.T) {
	m := &manual{pass: 10}
	e := New(m, m)
	s := &source{deadline: mono.Never}
	e.Add(s)
	wait := func() { e.Step(); e.Park() }
	m.now = 5000 // the caller computed
	wait()
	wait()
	wait()
	s.work = 1
	wait()
	wait()
	m.now += 7000 // computed again; the step before followed a Park
	e.Step()
	m.now += 7000
	wait()
	for i, want := range []mono.Duration{0, 10, 20, 0, 10, 0} {
		if m.idle[i] != want {
			t.Errorf("Park %d: idle for %d, want %d (all: %v)", i, m.idle[i], want, m.idle)
		}
	}
}

func TestAllocs_Step(t *testing.T) {
	m := &manual{idle: make([]mono.Duration, 0, 1000)}
	e := New(m, m)
	e.Add(&idleSource{})
	e.Add(&idleSource{})
	if n := testing.AllocsPerRun(100, func() { e.Step(); e.Park() }); n != 0 {
		t.Errorf("%v allocations per step", n)
	}
}

type idleSource struct{}

func (*idleSource) Poll(mono.Time, int) int { return 0 }
func (*idleSource) Deadline() mono.Time     { return mono.Never }

func BenchmarkStep_idle(b *testing.B) {
	e := New(mono.Real{}, &manual{})
	e.Add(&idleSource{})
	e.Add(&idleSource{})
	for b.Loop() {
		e.Step()
	}
}

// sleeps counts what the engine tells it.
type sleeps struct{ begun, ended int }

func (s *sleeps) Sleep() { s.begun++ }
func (s *sleeps) Wake()  { s.ended++ }

// pausing is a parker that spins for a while.
type pausing struct {
	manual
	spin mono.Duration
}

func (n *pausing) Spin(idle mono.Duration) (spun, slept bool) { return idle < n.spin, false }

// Only waits that last are told of, and when they began.
func TestPark_tellsOfSleep(t *testing.T) {
	n := &pausing{spin: 10}
	n.now = 100
	e, s := New(n, n), &sleeps{}
	e.SetSleepHook(s)
	for range 3 {
		e.Step()
		e.Park()
	}
	if *s != (sleeps{}) {
		t.Errorf("told of %+v while it spins", *s)
	}
	n.now += 50
	for range clockEvery { // it looks at the clock now and then
		e.Step()
		e.Park()
	}
	if s.begun == 0 || s.begun != s.ended || e.Worked() != 100 || e.LastStep() != 150 {
		t.Errorf("%+v, worked at %v, last step at %v", *s, e.Worked(), e.LastStep())
	}
}

// A step that follows a wait in the kernel is told apart from those of a spinning wait.
func TestParked(t *testing.T) {
	n := &pausing{spin: 10}
	n.now = 100
	e := New(n, n)
	e.Step()
	e.Park()
	if e.Parked() {
		t.Error("parked while it spins")
	}
	n.now += 50
	for range clockEvery {
		e.Step()
		if e.Parked() {
			t.Error("parked behind a step")
		}
		e.Park()
	}
	if !e.Parked() {
		t.Error("not parked behind a wait")
	}
}

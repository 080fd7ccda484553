package progress

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

var _ Pollable = (*Poller)(nil)

// await waits on fd for ever.
func await(t testing.TB, fd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		if n == 1 {
			return
		}
	}
}

func TestSignal(t *testing.T) {
	s, err := NewSignal()
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{false, true, true, false, false, true} {
		if s.Set(on); testenv.Readable(t, s.FD()) != on {
			t.Errorf("set %v, but readable %v", on, !on)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// fd asks the poller anew, as before each wait.
func fd(t testing.TB, p *Poller, until mono.Time) int {
	t.Helper()
	fd, err := p.FD(until)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestPollerFD_input(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	before, after := eventfd(t), eventfd(t)
	p.Watch(before)
	n := fd(t, p, mono.Never)
	p.Watch(after)
	for _, input := range []int{before, after} {
		if testenv.Readable(t, fd(t, p, mono.Never)) {
			t.Error("readable without input")
		}
		signal(t, input)
		if !testenv.Readable(t, n) {
			t.Error("not readable in spite of input")
		}
		event.Bell(input).Quiet()
	}
	signal(t, before)
	p.Unwatch(before)
	if testenv.Readable(t, fd(t, p, mono.Never)) || fd(t, p, mono.Never) != n {
		t.Error("readable because of what is not watched, or another descriptor")
	}
}

func TestPollerFD_asksBells(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	b := &bell{t, eventfd(t), 0}
	p.WatchBell(b)
	event.Bell(b.fd).Quiet()
	for i := range 3 {
		if !testenv.Readable(t, fd(t, p, mono.Never)) || b.asked != 2+i {
			t.Errorf("wait %d: the bell was asked %d times, or its input does not count", i, b.asked)
		}
	}
}

func TestPollerFD_deadline(t *testing.T) {
	var clock mono.Real
	p := newPoller(t, PollerConfig{NoSpin: true})
	for _, past := range []mono.Time{0, -5, clock.Now()} {
		if !testenv.Readable(t, fd(t, p, past)) {
			t.Errorf("deadline %d has passed, but the descriptor is not readable", past)
		}
	}
	if testenv.Readable(t, fd(t, p, clock.Now().Add(1000*mono.Second))) {
		t.Error("readable long before the deadline")
	}
	end := clock.Now().Add(2 * mono.Millisecond)
	await(t, fd(t, p, end))
	if early := end.Sub(clock.Now()); early > 0 {
		t.Errorf("readable %v before the deadline", early)
	}
	if testenv.Readable(t, fd(t, p, mono.Never)) {
		t.Error("the old deadline still counts")
	}
}

// No Wake gets lost, whenever it comes, and Park still works in between.
func TestPollerFD_wake(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	p.Wake()
	if !testenv.Readable(t, fd(t, p, mono.Never)) {
		t.Error("a Wake before FD was lost")
	}
	if testenv.Readable(t, fd(t, p, mono.Never)) {
		t.Error("a Wake counts twice")
	}
	n := fd(t, p, mono.Never)
	p.Wake()
	if !testenv.Readable(t, n) {
		t.Error("a Wake after FD was lost")
	}
	p.Park(mono.Never, 0) // ends at once, since the Wake is not taken yet
	if testenv.Readable(t, fd(t, p, mono.Never)) {
		t.Error("Park did not take the Wake")
	}
	var clock mono.Real
	end := clock.Now().Add(mono.Millisecond)
	for clock.Now() < end { // FD left it asleep; that must not keep Park from waiting, nor from ending
		p.Park(end, 0)
	}
	const rounds = 2000
	turn := make(chan struct{})
	go func() {
		for range rounds {
			<-turn
			p.Wake()
		}
	}()
	for i := range rounds {
		turn <- struct{}{}
		if i%3 == 0 {
			runtime.Gosched()
		}
		if i%2 == 0 {
			await(t, fd(t, p, mono.Never)) // hangs when the Wake is lost
		} else {
			p.Park(mono.Never, 0)
		}
		// A late write may leave the descriptor readable once more; that is
		// all that may remain.
		fd(t, p, mono.Never)
	}
}

func TestWaitFD(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	input := eventfd(t)
	p.Watch(input)
	e := New(mono.Real{}, p)
	s := &source{deadline: mono.Never}
	e.Add(s)
	open := func() *WaitFD {
		w, err := e.NewWaitFD()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	a, b := open(), open()
	state := func(name string, wantA, wantB bool) {
		t.Helper()
		// Both are asked before any is waited on.
		fa, fb := a.FD(), b.FD()
		if gotA, gotB := testenv.Readable(t, fa), testenv.Readable(t, fb); gotA != wantA || gotB != wantB {
			t.Errorf("%s: readable %v and %v", name, gotA, gotB)
		}
	}
	state("nothing", false, false)
	a.Set(true)
	state("what one waits for", true, false)
	a.Set(false)
	signal(t, input)
	state("input", true, true)
	event.Bell(input).Quiet()
	s.deadline = e.clock.Now()
	state("a deadline", true, true)
	s.deadline = mono.Never
	state("nothing again", false, false)
	for _, w := range []*WaitFD{a, b} {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if w, err := New(mono.Real{}, &manual{}).NewWaitFD(); w != nil || err != nil {
		t.Errorf("a parker without a descriptor: %v, %v", w, err)
	}
}

func TestNextDeadline(t *testing.T) {
	e := New(&manual{}, &manual{})
	if got := e.NextDeadline(); got != mono.Never {
		t.Errorf("without sources: %d", got)
	}
	for _, d := range []mono.Time{900, 700, mono.Never} {
		e.Add(&source{deadline: d})
	}
	if got := e.NextDeadline(); got != 700 {
		t.Errorf("%d", got)
	}
}

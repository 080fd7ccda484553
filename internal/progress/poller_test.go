package progress

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

var (
	_ Parker = (*Poller)(nil)
	_ Waker  = (*Poller)(nil)
)

func newPoller(t testing.TB, c PollerConfig) *Poller {
	t.Helper()
	p, err := NewPoller(mono.Real{}, c)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, p)
	return p
}

// eventfd is input that a test can make.
func eventfd(t testing.TB) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func signal(t testing.TB, fd int) {
	t.Helper()
	if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
}

func TestPark_blocksUntilTheDeadline(t *testing.T) {
	var clock mono.Real
	p := newPoller(t, PollerConfig{NoSpin: true})
	for _, d := range []mono.Duration{0, -mono.Second, 50 * mono.Microsecond, 20 * mono.Millisecond} {
		end := clock.Now().Add(d)
		for n := 0; clock.Now() < end; n++ {
			p.Park(end, 0)
			if n == 1000 {
				t.Fatalf("Park(%v) returned %d times before its deadline: it does not block", d, n)
			}
		}
	}
}

func TestPark_endsOnInput(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	quiet, input := eventfd(t), eventfd(t)
	p.Watch(quiet)
	p.Watch(input)
	p.Watch(-1)
	signal(t, input)
	p.Park(mono.Never, 0) // would hang
	p.Unwatch(input)
	before := mono.Real{}.Now()
	p.Park(before.Add(2*mono.Millisecond), 0)
	p.Park(before.Add(2*mono.Millisecond), 0)
	signal(t, quiet)
	p.Park(mono.Never, 0) // Unwatch took out the right one
}

// bell counts how often it is asked for, and is readable then.
type bell struct {
	t     *testing.T
	fd    int
	asked int
}

func (b *bell) FD() int {
	b.asked++
	if b.fd >= 0 {
		signal(b.t, b.fd)
	}
	return b.fd
}

func TestPark_asksBellsBeforeWaiting(t *testing.T) {
	p := newPoller(t, PollerConfig{Spin: mono.Microsecond})
	b, none := &bell{t, eventfd(t), 0}, &bell{t, -1, 0}
	p.WatchBell(b)
	p.WatchBell(none)
	p.Park(mono.Never, 0)
	if b.asked != 1 || none.asked != 1 {
		t.Errorf("asked %d and %d times when only WatchBell needs it", b.asked, none.asked)
	}
	p.Park(mono.Never, mono.Second) // would hang
	if b.asked != 2 || none.asked != 1 {
		t.Errorf("asked %d and %d times after a wait", b.asked, none.asked)
	}
	p.Unwatch(b.fd)
	asked := b.asked
	p.Park(mono.Real{}.Now().Add(mono.Millisecond), mono.Second)
	if b.asked != asked {
		t.Error("asked after Unwatch")
	}
}

// dozer is a bell that is asked for short waits, too, and then tells of nothing.
type dozer struct {
	bell
	dozed int
}

func (d *dozer) Doze() int {
	d.dozed++
	return d.fd
}

// A wait begins as a short one, of which a bell may miss something, and goes on as one of which it does not.
func TestPark_dozes(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	d := &dozer{bell{t, eventfd(t), 0}, 0}
	p.WatchBell(d)
	if _, err := unix.Read(d.fd, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	d.asked = 0
	p.Park(mono.Real{}.Now().Add(dozeMost/2), 0)
	if d.dozed != 1 || d.asked != 0 {
		t.Errorf("before a short wait asked %d times, %d times for a long one", d.dozed, d.asked)
	}
	p.Park(mono.Never, 0) // would hang
	if d.dozed != 2 || d.asked != 1 {
		t.Errorf("before a long wait asked %d times, %d times for a long one", d.dozed-1, d.asked)
	}
	if p.Rearm(); d.dozed != 2 || d.asked != 1 || p.state.Load() != notified {
		t.Error("others during a long wait pay for another one")
	}
	if _, err := p.FD(mono.Never); err != nil || d.asked != 2 {
		t.Errorf("a caller that waits on a descriptor has bells asked %d times for a long wait: %v", d.asked-1, err)
	}
}

func TestPark_spins(t *testing.T) {
	for name, c := range map[string]PollerConfig{
		"yieldNever": {},
		"processes":  {Ranks: 1000},
		"goroutines": {Ranks: 1000, Goroutines: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoller(t, c)
			for range 2 * gosched {
				p.Park(mono.Never, 49*mono.Microsecond) // must not block
			}
			p.Wake()
			p.Park(mono.Never, 50*mono.Microsecond) // would block but for Wake
		})
	}
}

func TestNewPoller_policy(t *testing.T) {
	for _, c := range []struct {
		config PollerConfig
		spin   mono.Duration
		policy yieldPolicy
	}{
		{PollerConfig{Cores: 2}, mono.Millisecond, yieldNever},
		{PollerConfig{Cores: 2, Ranks: 2, Spin: 7}, 7, yieldNever},
		{PollerConfig{Cores: 2, Ranks: 3}, 400 * mono.Microsecond, yieldOS},
		{PollerConfig{Cores: 2, Ranks: 3, Goroutines: true}, 400 * mono.Microsecond, yieldRuntime},
		{PollerConfig{Cores: 2, Ranks: 3, NoSpin: true}, 0, yieldOS},
		{PollerConfig{}, mono.Millisecond, yieldNever},
	} {
		p := newPoller(t, c.config)
		if p.spin != c.spin || p.policy != c.policy || p.Crowded() != (c.policy != yieldNever) || New(mono.Real{}, p).Crowded() != p.Crowded() {
			t.Errorf("%+v: spins %v, yieldPolicy %d", c.config, p.spin, p.policy)
		}
	}
	if _, err := NewPoller(mono.Real{}, PollerConfig{Ranks: -1}); err == nil {
		t.Error("-1 ranks were accepted")
	}
}

func TestWake_fromAnotherGoroutine(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	done := make(chan struct{})
	const rounds = 2000
	turn := make(chan struct{})
	go func() {
		defer close(done)
		for range rounds {
			<-turn
			p.Wake()
		}
	}()
	for i := range rounds {
		turn <- struct{}{}
		if i%100 == 0 {
			time.Sleep(time.Millisecond) // so that Wake comes first now and then
		}
		p.Park(mono.Never, 0) // hangs when the Wake is lost
	}
	<-done
}

// Wakes that nobody waited for end one Park, not many.
func TestWake_isNotCounted(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	for range 100 {
		p.Wake()
	}
	var clock mono.Real
	end := clock.Now().Add(5 * mono.Millisecond)
	parks := 0
	for ; clock.Now() < end; parks++ {
		p.Park(end, 0)
	}
	if parks > 50 {
		t.Errorf("%d Parks ended early after wakes", parks)
	}
}

func TestPark_namesClosedDescriptor(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Watch(int(r.Fd()))
	r.Close()
	w.Close()
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "without Unwatch") {
			t.Errorf("panic %q", v)
		}
	}()
	p.Park(mono.Never, 0)
}

func TestPoller_Close_twice(t *testing.T) {
	p, err := NewPoller(mono.Real{}, PollerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if p.Close() == nil {
		t.Error("the second Close succeeded")
	}
}

func TestAllocs_Park(t *testing.T) {
	p := newPoller(t, PollerConfig{})
	fd := eventfd(t)
	p.Watch(fd)
	signal(t, fd)
	deadline := mono.Real{}.Now().Add(mono.Second)
	if n := testing.AllocsPerRun(100, func() {
		p.Park(mono.Never, 0)
		p.Park(deadline, mono.Second)
		p.Wake()
		p.Park(deadline, mono.Second)
	}); n != 0 {
		t.Errorf("%v allocations per Park", n)
	}
}

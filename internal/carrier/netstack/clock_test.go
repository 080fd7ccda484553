package netstack

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// hand is a clock that the test sets.
type hand struct{ now mono.Time }

func (h *hand) Now() mono.Time { return h.now }

// looks is a clock that goes on by 100 ns with each look at it, however long the machine takes in between.
type looks struct{ n atomic.Int64 }

func (l *looks) Now() mono.Time { return mono.Time(100 * l.n.Add(1)) }

func TestClock_firesInTimeAndOnce(t *testing.T) {
	h := &hand{now: 1000}
	c := &clock{}
	c.init(h, &mail{})
	var fired []int
	after := func(n int, d mono.Duration) *timer {
		return c.AfterFunc(d, func() { fired = append(fired, n) }).(*timer)
	}
	expect := func(at mono.Duration, want ...int) {
		t.Helper()
		fired = nil
		h.now = mono.Time(1000).Add(at)
		c.fire(h.now)
		if slices.Sort(fired); !slices.Equal(fired, want) {
			t.Errorf("at %v: %v fired, want %v", at, fired, want)
		}
	}
	const ms = mono.Millisecond
	one, two := after(1, 10*ms), after(2, 20*ms)
	three := after(3, 30*ms)
	after(4, -ms) // at once
	if d := c.deadline(); d > h.now.Add(10*ms) {
		t.Errorf("deadline %v behind the first timer", d)
	}
	expect(ms, 4)
	if !two.Stop() || two.Stop() {
		t.Error("Stop does not tell whether the timer was armed")
	}
	expect(15*ms, 1)
	if one.Stop() {
		t.Error("Stop of a timer that has fired")
	}
	expect(25 * ms)
	one.Reset(20 * ms) // at 45
	three.Reset(30 * ms)
	expect(44 * ms)
	expect(46*ms, 1)
	expect(60*ms, 3)
	if c.deadline() != mono.Never || len(c.unused) != len(c.armed) {
		t.Errorf("deadline %v, %d of %d numbers free, with no timer armed", c.deadline(), len(c.unused), len(c.armed))
	}
	if n := len(c.armed); n > 4 {
		t.Errorf("%d numbers for 4 timers", n)
	}
}

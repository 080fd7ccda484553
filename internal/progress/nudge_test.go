package progress

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// A nudge ends the wait that is, or the next one, and is work for one step.
func TestNudge(t *testing.T) {
	p := newPoller(t, PollerConfig{NoSpin: true})
	e := New(mono.Real{}, p)
	e.Nudge()
	e.Park() // returns at once
	if n := e.Step(); n != 1 {
		t.Errorf("%d items of work", n)
	}
	if n := e.Step(); n != 0 {
		t.Errorf("%d items of work in the step after it", n)
	}
	go e.Nudge()
	for e.Step() == 0 {
		e.Park()
	}
	if n := testing.AllocsPerRun(100, func() { e.Nudge(); e.Step() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

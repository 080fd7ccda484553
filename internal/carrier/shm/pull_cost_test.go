package shm

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// clockOf makes calls look as if they took so long, in turns.
type clockOf struct {
	at    mono.Time
	calls int
	took  func(call int) mono.Duration
}

func (c *clockOf) Now() mono.Time {
	if c.calls++; c.calls%2 == 0 { // the end of a call
		c.at = c.at.Add(c.took(c.calls/2 - 1))
	}
	return c.at
}

func TestMeasurePull(t *testing.T) {
	if _, ok := MeasurePull(mono.Real{}); !ok {
		t.Skip("process_vm_readv is not possible here, or was disturbed")
	}
	for _, c := range []struct {
		name string
		took func(call int) mono.Duration
		want PullCost
		ok   bool
	}{
		{"calm", func(call int) mono.Duration { return 1000 + mono.Duration(call%2)*(costLong-costShort) + costShort }, PullCost{1000, 1}, true},
		{"disturbed but once", func(call int) mono.Duration {
			if call/2 != 7 {
				return mono.Millisecond
			}
			return 1000 + mono.Duration(call%2)*(costLong-costShort) + costShort
		}, PullCost{1000, 1}, true},
		{"a clock that stands still", func(int) mono.Duration { return 0 }, PullCost{}, false},
		{"disturbed always", func(int) mono.Duration { return mono.Millisecond }, PullCost{}, false},
		{"longer is not slower", func(int) mono.Duration { return 1000 }, PullCost{}, false},
	} {
		if got, ok := MeasurePull(&clockOf{took: c.took}); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

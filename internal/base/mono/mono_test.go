package mono

import (
	"math"
	"testing"
)

func TestAdd(t *testing.T) {
	for _, c := range []struct {
		t    Time
		d    Duration
		want Time
	}{
		{0, 0, 0},
		{5, 10, 15},
		{5, -10, -5},
		{Never, 10, Never},
		{Never, -10, Never},
		{Never - 5, 4, Never - 1},
		{Never - 5, 5, Never},
		{Never - 5, 6, Never}, // would wrap to long ago
		{1, math.MaxInt64, Never},
		{-1, math.MaxInt64, Never - 1},
	} {
		if got := c.t.Add(c.d); got != c.want {
			t.Errorf("%d.Add(%d) = %d, want %d", c.t, c.d, got, c.want)
		}
	}
}

func TestSub(t *testing.T) {
	if d := Time(7).Sub(10); d != -3*Nanosecond {
		t.Errorf("7 - 10 = %v", d)
	}
}

func TestReal_neverGoesBack(t *testing.T) {
	var c Clock = Real{}
	last := c.Now()
	first := last
	for range 1_000_000 {
		now := c.Now()
		if now < last {
			t.Fatalf("%d came after %d", now, last)
		}
		last = now
	}
	if last == first {
		t.Error("no time passed during a million calls")
	}
	if first < 0 || last == Never {
		t.Errorf("the clock shows %d to %d", first, last)
	}
}

func TestAllocs_Real(t *testing.T) {
	var c Clock = Real{}
	if n := testing.AllocsPerRun(100, func() { c.Now() }); n != 0 {
		t.Errorf("%v allocations to read the clock", n)
	}
}

func BenchmarkReal(b *testing.B) {
	var c Clock = Real{}
	for b.Loop() {
		c.Now()
	}
}

package serial

import (
	"math"
	"math/rand/v2"
	"testing"
)

const top = U32(math.MaxUint32)

func TestLess(t *testing.T) {
	for _, c := range []struct {
		s, t U32
		less bool
		diff int32
	}{
		{0, 0, false, 0},
		{0, 1, true, -1},
		{1, 0, false, 1},
		{top, 0, true, -1},
		{0, top, false, 1},
		{top - 5, 10, true, -16},
		{0, 1<<31 - 1, true, -(1<<31 - 1)},
		{1<<31 - 1, 0, false, 1<<31 - 1},
		{1 << 31, 0, true, math.MinInt32}, // undefined by RFC 1982: fixed here
		{0, 1 << 31, true, math.MinInt32},
	} {
		if got := c.s.Less(c.t); got != c.less {
			t.Errorf("%d.Less(%d) = %v", c.s, c.t, got)
		}
		if got := c.s.LessEq(c.t); got != (c.less || c.s == c.t) {
			t.Errorf("%d.LessEq(%d) = %v", c.s, c.t, got)
		}
		if got := c.s.Diff(c.t); got != c.diff {
			t.Errorf("%d.Diff(%d) = %d, want %d", c.s, c.t, got, c.diff)
		}
	}
}

func TestAdd_wraps(t *testing.T) {
	if got := top.Add(3); got != 2 {
		t.Errorf("top+3 = %d", got)
	}
	if got := U32(2).Add(-3); got != top {
		t.Errorf("2-3 = %d", got)
	}
}

func TestIn(t *testing.T) {
	for _, c := range []struct {
		s, start U32
		size     uint32
		in       bool
	}{
		{5, 5, 1, true},
		{5, 5, 0, false},
		{4, 5, 10, false},
		{14, 5, 10, true},
		{15, 5, 10, false},
		{1, top, 3, true},
		{2, top, 3, false},
	} {
		if got := c.s.In(c.start, c.size); got != c.in {
			t.Errorf("%d.In(%d, %d) = %v", c.s, c.start, c.size, got)
		}
	}
}

// The order around any number is the order around 0.
func TestLess_translation(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		base, a, b := U32(r.Uint32()), int32(r.Uint32N(1<<30)), int32(r.Uint32N(1<<30))
		x, y := base.Add(a), base.Add(b)
		if x.Less(y) != (a < b) || x.Diff(y) != a-b {
			t.Fatalf("base %d: %d and %d compare unlike %d and %d", base, x, y, a, b)
		}
		later, earlier := x.Max(y), x.Min(y)
		if later != base.Add(max(a, b)) || earlier != base.Add(min(a, b)) {
			t.Fatalf("base %d: Max, Min of %d and %d = %d, %d", base, x, y, later, earlier)
		}
	}
}

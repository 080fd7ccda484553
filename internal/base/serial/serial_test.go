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
	}{
		{0, 0, false},
		{0, 1, true},
		{1, 0, false},
		{top, 0, true},
		{0, top, false},
		{top - 5, 10, true},
		{0, 1<<31 - 1, true},
		{1<<31 - 1, 0, false},
		{1 << 31, 0, true}, // undefined by RFC 1982: fixed here
		{0, 1 << 31, true},
	} {
		if got := c.s.Less(c.t); got != c.less {
			t.Errorf("%d.Less(%d) = %v", c.s, c.t, got)
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
		if x.Less(y) != (a < b) {
			t.Fatalf("base %d: %d and %d compare unlike %d and %d", base, x, y, a, b)
		}
		if later := x.Max(y); later != base.Add(max(a, b)) {
			t.Fatalf("base %d: Max of %d and %d = %d", base, x, y, later)
		}
	}
}

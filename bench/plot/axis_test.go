package plot

import (
	"math"
	"slices"
	"testing"
)

func labels(a axis) (out []string) {
	for _, v := range a.ticks {
		out = append(out, a.label(v))
	}
	return out
}

func TestSizeAxis(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   []string
	}{
		{1, 8, []string{"1", "2", "4", "8"}},
		{3, 5, []string{"2", "4", "8"}},
		{8, 8, []string{"4", "8", "16"}},
		{1, 8 << 20, []string{"1", "4", "16", "64", "256", "1K", "4K", "16K", "64K", "256K", "1M", "4M"}},
	} {
		a := sizeAxis(c.lo, c.hi, 0, 100)
		if got := labels(a); !slices.Equal(got, c.want) {
			t.Errorf("%v to %v: ticks %v, want %v", c.lo, c.hi, got, c.want)
		}
		if a.lo > c.lo || a.hi < c.hi {
			t.Errorf("%v to %v: axis from %v to %v", c.lo, c.hi, a.lo, a.hi)
		}
	}
}

func TestValueAxis(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   []string
	}{
		{2.3, 60, []string{"2", "5", "10", "20", "50", "100"}},
		{1, 10, []string{"1", "2", "5", "10"}},
		{3, 3, []string{"2", "5"}},
		{0.02, 0.3, []string{"0.02", "0.05", "0.1", "0.2", "0.5"}},
		{700_000, 5_500_000, []string{"500k", "1M", "2M", "5M", "10M"}},
		{0.3, 40_000, []string{"0.1", "1", "10", "100", "1k", "10k", "100k"}},
	} {
		a := valueAxis(c.lo, c.hi, 100, 0)
		if got := labels(a); !slices.Equal(got, c.want) {
			t.Errorf("%v to %v: ticks %v, want %v", c.lo, c.hi, got, c.want)
		}
		if a.lo > c.lo || a.hi < c.hi {
			t.Errorf("%v to %v: axis from %v to %v", c.lo, c.hi, a.lo, a.hi)
		}
	}
}

func TestAxis_position(t *testing.T) {
	a := sizeAxis(1, 16, 10, 50)
	for v, want := range map[float64]float64{1: 10, 4: 30, 16: 50} {
		if got := a.position(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v is at %v, want %v", v, got, want)
		}
	}
}

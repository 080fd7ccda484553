package dtype

import (
	"math"
	"testing"
)

// Flat knows elements that are one piece of memory from displacement 0 on, and Span, Contiguous and the cursors of committed types say of
// them what they say of types that are not committed, whose bounds are computed.
func TestFlat(t *testing.T) {
	shifted := must(Hindexed([]int{2}, []int{8}, Int))
	for name, x := range map[string]struct {
		typ         *Type
		count, want int
	}{
		"bytes":                {Byte, 7, 7},
		"none":                 {Byte, 0, 0},
		"fewer than none":      {Byte, -1, 0},
		"doubles":              {Double, 3, 24},
		"fewer than none of 8": {Double, -3, 0},
		"more than memory":     {Double, math.MaxInt / 4, 0},
		"bytes to the limit":   {Byte, limit, 0},
		"contiguous":           {must(Contiguous(3, must(Contiguous(2, Int)))), 5, 120},
		"a vector of one":      {must(Vector(4, 1, 1, Double)), 2, 64},
		"gaps":                 {must(Vector(2, 1, 2, Double)), 2, 0},
		"one piece, further":   {shifted, 1, 0},
		"padding":              {must(Resized(Int, 0, 8)), 1, 0},
		"nothing":              {must(Contiguous(0, Int)), 4, 0},
	} {
		other := must(Contiguous(1, x.typ))
		if got := other.Flat(x.count); got != 0 {
			t.Errorf("%s: %d bytes of a type that is not committed", name, got)
		}
		lo, hi, failed := other.Span(x.count)
		x.typ.Commit()
		if got := x.typ.Flat(x.count); got != x.want {
			t.Errorf("%s: %d bytes, want %d", name, got, x.want)
		}
		if a, b, err := x.typ.Span(x.count); a != lo || b != hi || (err == nil) != (failed == nil) {
			t.Errorf("%s: the span is %d to %d (%v), want %d to %d (%v)", name, a, b, err, lo, hi, failed)
		}
		if x.want == 0 {
			continue
		}
		mem := make([]byte, x.want+9)
		got, err := x.typ.Cursor(mem, 9, x.count)
		want, failed := other.Cursor(mem, 9, x.count)
		if err != nil || failed != nil || got.size != want.size || got.dense != want.dense || got.base != want.base || got.step*got.count != want.step*want.count {
			t.Errorf("%s: the cursor is %+v (%v), want %+v (%v)", name, got, err, want, failed)
		}
		if _, err := x.typ.Cursor(mem, 10, x.count); err == nil {
			t.Errorf("%s: elements behind the end of the buffer", name)
		}
	}
	var none *Type
	if none.Flat(1) != 0 {
		t.Error("bytes without a type")
	}
}

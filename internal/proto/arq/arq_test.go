package arq

import (
	"math"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

func TestHeld(t *testing.T) {
	for _, c := range []struct {
		d    mono.Duration
		code uint16
	}{
		{0, 0},
		{255, 0},
		{256, 1},
		{-1, 0},
		{mono.Millisecond, 3906},
		{HeldUnknown - 1, math.MaxUint16 - 1},
		{HeldUnknown, math.MaxUint16},
		{mono.Second, math.MaxUint16},
		{math.MaxInt64, math.MaxUint16},
		{math.MinInt64, 0},
	} {
		if got := HeldOf(c.d); got != c.code {
			t.Errorf("%v has code %d, want %d", c.d, got, c.code)
		}
	}
	for code := range uint16(math.MaxUint16) {
		if got := HeldOf(HeldFor(code)); got != code {
			t.Fatalf("%d became %v, which is %d", code, HeldFor(code), got)
		}
	}
}

package rping

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

func TestRTT(t *testing.T) {
	var r RTT
	if r.Avg() != 0 || r.Dev() != 0 {
		t.Errorf("of nothing: %v, %v", r.Avg(), r.Dev())
	}
	for _, us := range []mono.Duration{2, 4, 4, 4, 5, 5, 7, 9} {
		r.add(us * mono.Microsecond)
	}
	if us := mono.Microsecond; r.Min != 2*us || r.Max != 9*us || r.Avg() != 5*us || r.Dev() != 2*us {
		t.Errorf("%v/%v/%v/%v", r.Min, r.Avg(), r.Max, r.Dev())
	}
}

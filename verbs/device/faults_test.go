package device

import (
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fault"
)

func TestParseFaults(t *testing.T) {
	for s, want := range map[string]fault.Config{
		"":                     {},
		"loss=0.01":            {Loss: 0.01},
		"dup=1,reorder=.5":     {Dup: 1, Reorder: 0.5},
		"corrupt=1e-3,loss=0":  {Corrupt: 0.001},
		"loss=0.1,loss=0.2":    {Loss: 0.2},
		"reorder=0.25,dup=0.5": {Reorder: 0.25, Dup: 0.5},
	} {
		if got, err := ParseFaults(s); err != nil || got != want {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"loss", "loss=", "loss=1.1", "loss=-0.1", "loss=NaN", "lose=0.1", ",", "loss=0.1,", "0.1"} {
		if got, err := ParseFaults(s); err == nil {
			t.Errorf("%q was taken: %+v", s, got)
		}
	}
}

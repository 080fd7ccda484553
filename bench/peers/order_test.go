package peers

import (
	"math"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/bench"
)

func TestOrder_line(t *testing.T) {
	o := Order{Test: "allreduce", Size: 1 << 20, Iters: 100, Warmup: 10, Window: 64}
	line := o.line()
	if got, err := parseOrder(line); err != nil || got != o {
		t.Errorf("%q is read as %+v, %v", line, got, err)
	}
	if len(line) > orderMax {
		t.Errorf("%q is longer than %d", line, orderMax)
	}
	longest := Order{Test: "reduce_scatter_block", Size: maxSize, Iters: bench.MaxIters, Warmup: bench.MaxIters, Window: bench.MaxWindow}
	if n := len(longest.line()); n > orderMax {
		t.Errorf("the longest order has %d bytes, more than %d", n, orderMax)
	}
}

func TestParseOrder_refuses(t *testing.T) {
	for _, line := range []string{
		"", "lat", "lat 8 10 1", "lat -1 10 1 64", "lat 8 0 1 64", "lat 8 10 -1 64", "lat 8 10 1 0",
		"lat 99999999999 10 1 64", "lat 8 10000001 1 64", "lat 8 10 1 513", "lat x 10 1 64",
	} {
		if o, err := parseOrder(line); err == nil {
			t.Errorf("%q is taken for %+v", line, o)
		}
	}
}

func FuzzParseOrder(f *testing.F) {
	f.Add("lat 8 10 1 64\n")
	f.Fuzz(func(t *testing.T, line string) {
		o, err := parseOrder(line)
		if err != nil {
			return
		}
		if again, err := parseOrder(o.line()); err != nil || again != o {
			t.Errorf("%q is %+v, and that is %+v, %v", line, o, again, err)
		}
	})
}

func TestParseAnswer(t *testing.T) {
	want := bench.Latency{Min: 1.25, P50: 2, P99: 3, P999: 4, Max: 1e6, Avg: 2.5, Stdev: 0.5}
	p, err := parseAnswer(answer(want), 8)
	if err != nil || p.Lat == nil || *p.Lat != want {
		t.Errorf("times: %+v, %v", p, err)
	}
	p, err = parseAnswer("stream 1000 0.001\n", 125)
	if err != nil || math.Abs(p.Msgs-1e6) > 1 || math.Abs(p.Gbit-1) > 1e-6 || p.Lat != nil {
		t.Errorf("stream: %+v, %v", p, err)
	}
	for _, line := range []string{"", "times 1 2 3 4 5 6", "stream 10", "stream 10 0", "ready"} {
		if _, err := parseAnswer(line, 8); err == nil || !strings.Contains(err.Error(), "answered") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

package bench

import (
	"math"
	"reflect"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]uint32, 100)
	for i := range hundred {
		hundred[i] = uint32(i + 1)
	}
	for _, c := range []struct {
		name   string
		sorted []uint32
		p      int
		want   uint32
	}{
		{"one sample is every percentile", []uint32{7}, 990, 7},
		{"median of two is the lower", []uint32{1, 2}, 500, 1},
		{"median of three", []uint32{1, 2, 3}, 500, 2},
		{"99 of a hundred", hundred, 990, 99},
		{"99.9 of a hundred", hundred, 999, 100},
		{"50 of a hundred", hundred, 500, 50},
		{"0 is the minimum", hundred, 0, 1},
		{"100 is the maximum", hundred, 1000, 100},
	} {
		if got := percentile(c.sorted, c.p); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestSummarize(t *testing.T) {
	var samples []time.Duration
	for i := 2000; i > 0; i-- {
		samples = append(samples, time.Duration(i)*time.Microsecond)
	}
	got := Summarize(samples, 2)
	// The standard deviation of 1 to n is the root of (n*n-1)/12.
	stdev := math.Sqrt((2000*2000 - 1) / 12.0 / 4)
	if math.Abs(got.Avg-500.25) > 1e-9 || math.Abs(got.Stdev-stdev) > 1e-9 {
		t.Errorf("mean %v and standard deviation %v, want 500.25 and %v", got.Avg, got.Stdev, stdev)
	}
	got.Avg, got.Stdev = 0, 0
	if want := (Latency{Min: 0.5, P50: 500, P99: 990, P999: 999, Max: 1000}); got != want {
		t.Errorf("half round trips of 1 to 2000 us: %+v, want %+v", got, want)
	}
	if got, want := Summarize([]uint32{7000}, 1), (Latency{7, 7, 7, 7, 7, 7, 0}); got != want {
		t.Errorf("one sample: %+v, want %+v", got, want)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{3, 1}, 2},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestRecorder_pingPong(t *testing.T) {
	var r Recorder
	r.Reset(4)
	for _, d := range []time.Duration{4000, 2000, 8000, 6000} {
		r.Add(d)
	}
	r.Add(time.Hour) // no room: not counted
	r.Lost(3)
	p := r.point(PingPong, 1000)
	if want := (Latency{Min: 1, P50: 2, P99: 4, P999: 4, Max: 4, Avg: 2.5, Stdev: math.Sqrt(1.25)}); *p.Lat != want {
		t.Errorf("latency %+v, want %+v", *p.Lat, want)
	}
	// Eight messages of 1000 bytes in 20 us.
	if math.Abs(p.Msgs-400_000) > 1 || math.Abs(p.Gbit-3.2) > 1e-6 || p.Lost != 3 {
		t.Errorf("%v messages/s, %v Gbit/s, %d lost; want 400000, 3.2, 3", p.Msgs, p.Gbit, p.Lost)
	}
}

func TestRecorder_roundTrip(t *testing.T) {
	var r Recorder
	r.Reset(2)
	r.Add(4 * time.Microsecond)
	r.Add(6 * time.Microsecond)
	p := r.point(RoundTrip, 1000)
	if want := (Latency{Min: 4, P50: 4, P99: 6, P999: 6, Max: 6, Avg: 5, Stdev: 1}); *p.Lat != want {
		t.Errorf("latency %+v, want %+v", *p.Lat, want)
	}
	if math.Abs(p.Msgs-200_000) > 1 { // two in 10 us
		t.Errorf("%v operations/s, want 200000", p.Msgs)
	}
}

// Of 100 records of 1000 bytes, 80 arrived in part and 60 whole.
func TestRecorder_arrived(t *testing.T) {
	var r Recorder
	r.Reset(0)
	r.Stream(100, time.Millisecond)
	r.Arrived(Tally{Messages: 80, Whole: 60, Bytes: 70_000, Elapsed: 2 * time.Millisecond, Records: true})
	p := r.point(Bandwidth, 1000)
	if math.Abs(p.Msgs-40_000) > 1 || math.Abs(p.Gbit-0.28) > 1e-9 || p.Lost != 20 {
		t.Errorf("arrived: %v messages/s, %v Gbit/s, %d lost; want 40000, 0.28, 20", p.Msgs, p.Gbit, p.Lost)
	}
	if s := p.Sent; math.Abs(s.Msgs-100_000) > 1 || math.Abs(s.Gbit-0.8) > 1e-9 || *s.Whole != 0.6 || *s.Valid != 0.7 {
		t.Errorf("sent: %+v; want 100000 messages/s, 0.8 Gbit/s, 0.6 whole, 0.7 valid", *s)
	}
	r.Arrived(Tally{Messages: 80, Bytes: 80_000, Elapsed: time.Microsecond})
	if p := r.point(Bandwidth, 1000); math.Abs(p.Msgs-80_000) > 1 || p.Sent.Whole != nil {
		t.Errorf("Sends that arrived in one piece: %+v; want 80000 messages/s, no records", p)
	}
}

// Both ends sent 100 messages of 1250 bytes; the server took longer.
func TestRecorder_duplex(t *testing.T) {
	var r Recorder
	r.Reset(0)
	r.Stream(100, time.Millisecond)
	r.Arrived(Tally{Messages: 100, Bytes: 125_000, Elapsed: 2 * time.Millisecond})
	p := r.point(Duplex, 1250)
	if math.Abs(p.Msgs-100_000) > 1 || math.Abs(p.Gbit-1) > 1e-9 || p.Lost != 0 || p.Sent != nil {
		t.Errorf("got %+v; want 100000 messages/s, 1 Gbit/s, nothing lost", p)
	}
}

func TestRecorder_arrivedPings(t *testing.T) {
	var r Recorder
	r.Reset(1)
	r.Add(4 * time.Microsecond)
	r.Asked(4)
	r.Lost(3)
	r.Arrived(Tally{Messages: 2, Whole: 1, Bytes: 150, Records: true})
	p := r.point(PingPong, 100)
	if p.Lost != 3 || p.Lat.P50 != 2 || *p.Sent.Whole != 0.25 || *p.Sent.Valid != 0.375 {
		t.Errorf("got %+v, %+v", p, *p.Sent)
	}
}

func TestTally_check(t *testing.T) {
	for _, bad := range []Tally{{Messages: -1}, {Whole: 1}, {Messages: 1, Whole: -1}, {Bytes: -1}, {Elapsed: -1}} {
		if bad.check() == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if err := (Tally{Messages: 2, Whole: 1, Bytes: 3, Elapsed: 4}).check(); err != nil {
		t.Error(err)
	}
}

func TestRecorder_saturates(t *testing.T) {
	var r Recorder
	r.Reset(2)
	r.Add(-time.Second)
	r.Add(time.Hour)
	if p := r.point(PingPong, 0); p.Lat.Min != 0 || p.Lat.Max != float64(math.MaxUint32)/2000 {
		t.Errorf("latency %+v, want 0 to the largest", *p.Lat)
	}
}

func TestRecorder_stream(t *testing.T) {
	var r Recorder
	r.Reset(100)
	r.Stream(1000, 10*time.Millisecond)
	p := r.point(Bandwidth, 1250)
	if p.Lat != nil || math.Abs(p.Msgs-100_000) > 1 || math.Abs(p.Gbit-1) > 1e-9 {
		t.Errorf("got %+v, want no latency, 100000 messages/s, 1 Gbit/s", p)
	}
	r.Reset(1)
	if p := r.point(Rate, 8); p.Msgs != 0 || p.Gbit != 0 {
		t.Errorf("an empty recorder came to %+v", p)
	}
}

func TestMerge(t *testing.T) {
	rounds := []Point{
		{Lat: &Latency{Min: 1, P50: 5, P99: 9, P999: 10, Max: 10, Avg: 6, Stdev: 1}, Gbit: 1, Msgs: 10, Lost: 1},
		{Lat: &Latency{Min: 2, P50: 3, P99: 4, P999: 50, Max: 99, Avg: 50, Stdev: 90}, Gbit: 5, Msgs: 50},
		{Lat: &Latency{Min: 3, P50: 4, P99: 5, P999: 6, Max: 6, Avg: 4, Stdev: 2}, Gbit: 3, Msgs: 30, Lost: 2},
	}
	got := merge(rounds)
	if want := (Latency{Min: 1, P50: 4, P99: 5, P999: 10, Max: 99, Avg: 6, Stdev: 2}); *got.Lat != want {
		t.Errorf("latency %+v, want %+v", *got.Lat, want)
	}
	if got.Gbit != 3 || got.Msgs != 30 || got.Lost != 3 {
		t.Errorf("got %+v, want 3 Gbit/s, 30 messages/s, 3 lost", got)
	}
}

func TestMerge_sent(t *testing.T) {
	share := func(v float64) *float64 { return &v }
	got := merge([]Point{
		{Sent: &Sent{Gbit: 1, Msgs: 10, Whole: share(0.5), Valid: share(0.9)}},
		{Sent: &Sent{Gbit: 3, Msgs: 30, Whole: share(0.7), Valid: share(0.8)}},
		{Sent: &Sent{Gbit: 2, Msgs: 20, Whole: share(0.6), Valid: share(0.7)}},
	})
	if s := got.Sent; s == nil || s.Gbit != 2 || s.Msgs != 20 || *s.Whole != 0.6 || *s.Valid != 0.8 {
		t.Errorf("got %+v", got.Sent)
	}
}

func TestCompare(t *testing.T) {
	a := []Point{{Gbit: 4, Msgs: 1}, {Gbit: 6, Msgs: 1}, {Gbit: 8, Msgs: 1}}
	b := []Point{{Gbit: 4, Msgs: 2}, {Gbit: 4, Msgs: 2}, {Gbit: 2, Msgs: 2}}
	want := Ratio{
		Metric: "gbit_s", A: 6, B: 4, Ratio: 1.5, Low: 1, High: 4,
		ARounds: []float64{4, 6, 8}, BRounds: []float64{4, 4, 2},
	}
	if got := *compare(Bandwidth, a, b); !reflect.DeepEqual(got, want) {
		t.Errorf("bandwidth: %+v, want %+v", got, want)
	}
	if got := compare(Rate, a, b); got.Metric != "msg_s" || got.Ratio != 0.5 {
		t.Errorf("rate: %+v, want a ratio of 0.5", got)
	}
	lat := []Point{{Lat: &Latency{P50: 3}}}
	if got := compare(PingPong, lat, lat); got.Metric != "lat_us.p50" || got.Ratio != 1 {
		t.Errorf("latency: %+v, want a ratio of 1", got)
	}
}

func TestAllocs_recorder(t *testing.T) {
	var r Recorder
	r.Reset(10_000)
	if n := testing.AllocsPerRun(1000, func() { r.Add(time.Microsecond) }); n != 0 {
		t.Errorf("%v allocations per sample", n)
	}
}

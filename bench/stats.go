package bench

import (
	"math"
	"slices"

	"github.com/xwarp/xwarp/internal/mono"
)

// Recorder takes the measurements of one burst. Add neither allocates nor
// grows: Reset made room before the clock started.
type Recorder struct {
	samples  []uint32 // round trips in nanoseconds
	elapsed  mono.Duration
	messages int
	lost     int // frames that never arrived
}

// Reset forgets everything and makes room for iters samples.
func (r *Recorder) Reset(iters int) {
	if cap(r.samples) < iters {
		r.samples = make([]uint32, 0, iters)
	}
	*r = Recorder{samples: r.samples[:0]}
}

// Add records one round trip. Times over four seconds count as four.
func (r *Recorder) Add(d mono.Duration) {
	if len(r.samples) < cap(r.samples) {
		r.samples = append(r.samples, uint32(min(max(d, 0), math.MaxUint32)))
	}
}

// Stream records that messages went through in the time elapsed.
func (r *Recorder) Stream(messages int, elapsed mono.Duration) {
	r.messages, r.elapsed = messages, elapsed
}

// Lost records that n frames did not arrive.
func (r *Recorder) Lost(n int) { r.lost += n }

// Latency is half round trips in microseconds.
type Latency struct {
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Point is what one burst of one size came to.
type Point struct {
	Lat  *Latency // nil for streams
	Gbit float64  // 10^9 bits of messages per second, one way
	Msgs float64  // messages per second, one way
	Lost int
}

// point sums up the burst. It sorts the samples.
func (r *Recorder) point(size int) Point {
	p := Point{Lost: r.lost}
	seconds := r.elapsed.Seconds()
	if len(r.samples) > 0 {
		slices.Sort(r.samples)
		var sum float64
		for _, s := range r.samples {
			sum += float64(s)
		}
		half := func(ns uint32) float64 { return float64(ns) / 2000 }
		p.Lat = &Latency{
			Min: half(r.samples[0]),
			P50: half(percentile(r.samples, 50)),
			P99: half(percentile(r.samples, 99)),
			Max: half(r.samples[len(r.samples)-1]),
		}
		// A ping-pong moves two messages per round trip.
		seconds, r.messages = sum/1e9, 2*len(r.samples)
	}
	if seconds > 0 {
		p.Msgs = float64(r.messages) / seconds
		p.Gbit = p.Msgs * float64(size) * 8 / 1e9
	}
	return p
}

// percentile returns the smallest sample that at least p percent of all are
// not above (nearest rank). sorted must not be empty.
func percentile(sorted []uint32, p int) uint32 {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// median returns the middle of values, the mean of the two middle ones when
// their number is even, and 0 when there are none. It sorts values.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// merge makes one point of the bursts of several rounds: the extremes of all
// of them, and the median of the rounds for everything else, so that a round
// which a noisy neighbour spoiled does not count.
func merge(rounds []Point) Point {
	of := func(get func(Point) float64) float64 {
		values := make([]float64, len(rounds))
		for i, p := range rounds {
			values[i] = get(p)
		}
		return median(values)
	}
	var all Point
	for _, p := range rounds {
		all.Lost += p.Lost
		if p.Lat == nil {
			continue
		}
		if all.Lat == nil {
			all.Lat = &Latency{Min: p.Lat.Min, Max: p.Lat.Max}
		}
		all.Lat.Min, all.Lat.Max = min(all.Lat.Min, p.Lat.Min), max(all.Lat.Max, p.Lat.Max)
	}
	if all.Lat != nil {
		all.Lat.P50 = of(func(p Point) float64 { return p.Lat.P50 })
		all.Lat.P99 = of(func(p Point) float64 { return p.Lat.P99 })
	}
	all.Gbit = of(func(p Point) float64 { return p.Gbit })
	all.Msgs = of(func(p Point) float64 { return p.Msgs })
	return all
}

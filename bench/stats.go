package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// Recorder takes the measurements of one burst. Add neither allocates nor
// grows: Reset made room before the clock started.
type Recorder struct {
	samples  []uint32 // round trips in nanoseconds
	elapsed  mono.Duration
	messages int
	lost     int    // messages or frames that never arrived
	asked    int    // pings sent, repeated ones included
	arrived  *Tally // what the server counted; nil when all that was sent has arrived, one way
}

// Tally is what the server end counted of messages that may get lost, or what it
// has sent itself, in tests that send both ways.
type Tally struct {
	Messages int           `json:"messages"` // that arrived, or were sent; of Write-Records, those of which anything did
	Whole    int           `json:"whole"`    // of those, Write-Records that are complete
	Bytes    int64         `json:"bytes"`    // that arrived and are valid
	Elapsed  mono.Duration `json:"elapsed_ns"`
	Records  bool          `json:"records"` // the messages are Write-Records
}

func (t Tally) check() error {
	if t.Messages < 0 || t.Whole < 0 || t.Whole > t.Messages || t.Bytes < 0 || t.Elapsed < 0 {
		return fmt.Errorf("impossible tally %+v", t)
	}
	return nil
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

// Lost records that n messages did not arrive.
func (r *Recorder) Lost(n int) { r.lost += n }

// Asked records how many pings it took.
func (r *Recorder) Asked(pings int) { r.asked = pings }

// Arrived records what has arrived of what Stream was told.
func (r *Recorder) Arrived(t Tally) { r.arrived = &t }

// Latency is half round trips in microseconds; whole ones of operations that
// bring something back.
type Latency struct {
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"` // percentiles, by the nearest rank
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"` // 99.9 %
	Max   float64 `json:"max"`
	Avg   float64 `json:"avg"`
	Stdev float64 `json:"stdev"` // standard deviation, of all samples
}

// Summarize returns what samples in nanoseconds come to, each of which moved a
// message so many ways: 2 for round trips of which half counts. It sorts the
// samples, of which there must be one.
func Summarize[T uint32 | mono.Duration](samples []T, ways int) Latency {
	slices.Sort(samples)
	unit, n := 1e-3/float64(ways), float64(len(samples))
	us := func(ns T) float64 { return float64(ns) * unit }
	l := Latency{
		Min: us(samples[0]), Max: us(samples[len(samples)-1]),
		P50: us(percentile(samples, 500)), P99: us(percentile(samples, 990)), P999: us(percentile(samples, 999)),
	}
	for _, s := range samples {
		l.Avg += us(s) / n
	}
	for _, s := range samples {
		d := us(s) - l.Avg
		l.Stdev += d * d / n
	}
	l.Stdev = math.Sqrt(l.Stdev)
	return l
}

// Point is what one burst of one size came to.
type Point struct {
	Lat  *Latency // nil for streams
	Gbit float64  // 10^9 bits of messages per second that arrived, one way
	Msgs float64  // messages per second that arrived, one way
	Lost int
	Sent *Sent // for streams that may lose messages
}

// Sent compares what was sent with what has arrived of it.
type Sent struct {
	Gbit  float64  `json:"gbit_s"` // as the sender counts, also of what was lost
	Msgs  float64  `json:"msg_s"`
	Whole *float64 `json:"whole,omitempty"` // Write-Records: share of them that arrived whole
	Valid *float64 `json:"valid,omitempty"` // and share of all bytes that are valid
}

// point sums up the burst of a kind of test. It sorts the samples.
func (r *Recorder) point(kind Kind, size int) Point {
	p := Point{Lost: r.lost}
	if len(r.samples) > 0 {
		r.latencies(kind, &p)
	}
	p.Msgs, p.Gbit = rates(r.messages, int64(r.messages)*int64(size), r.elapsed)
	if r.arrived == nil {
		return p
	}
	if kind == Duplex {
		// The longer of the times that the two ends took: while only one of them
		// sends, the traffic is not both ways.
		messages := r.messages + r.arrived.Messages
		p.Msgs, p.Gbit = rates(messages, int64(messages)*int64(size), max(r.elapsed, r.arrived.Elapsed))
		return p
	}
	p.Sent = &Sent{Msgs: p.Msgs, Gbit: p.Gbit}
	sent := r.asked
	if !kind.Latency() {
		sent = r.messages
		// The longer of the times that the two ends took: a short stream may
		// arrive in one piece.
		p.Msgs, p.Gbit = rates(r.arrived.Messages, r.arrived.Bytes, max(r.elapsed, r.arrived.Elapsed))
		p.Lost = max(sent-r.arrived.Messages, 0)
	}
	if r.arrived.Records && sent > 0 {
		p.Sent.shares(*r.arrived, sent, size)
	}
	return p
}

// shares fills in what share of Write-Records of size bytes arrived.
func (s *Sent) shares(t Tally, sent, size int) {
	whole := float64(t.Whole) / float64(sent)
	valid := whole
	if size > 0 {
		valid = float64(t.Bytes) / float64(sent) / float64(size)
	}
	s.Whole, s.Valid = &whole, &valid
}

// latencies sums up the samples, and makes a stream of them: a ping-pong moves
// two messages per round trip, what brings something back moves one.
func (r *Recorder) latencies(kind Kind, p *Point) {
	for _, s := range r.samples {
		r.elapsed += mono.Duration(s)
	}
	ways := 1
	if kind == PingPong {
		ways = 2
	}
	r.messages = ways * len(r.samples)
	l := Summarize(r.samples, ways)
	p.Lat = &l
}

// rates returns messages and 10^9 bits per second.
func rates(messages int, bytes int64, elapsed mono.Duration) (msgs, gbit float64) {
	seconds := elapsed.Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	return float64(messages) / seconds, float64(bytes) * 8 / 1e9 / seconds
}

// percentile returns the smallest sample that at least so many per thousand of
// all are not above (nearest rank). sorted must not be empty.
func percentile[T any](sorted []T, permille int) T {
	rank := (len(sorted)*permille + 999) / 1000
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
		for _, get := range []func(l *Latency) *float64{
			func(l *Latency) *float64 { return &l.P50 }, func(l *Latency) *float64 { return &l.P99 },
			func(l *Latency) *float64 { return &l.P999 }, func(l *Latency) *float64 { return &l.Avg },
			func(l *Latency) *float64 { return &l.Stdev },
		} {
			*get(all.Lat) = of(func(p Point) float64 { return *get(p.Lat) })
		}
	}
	all.Gbit = of(func(p Point) float64 { return p.Gbit })
	all.Msgs = of(func(p Point) float64 { return p.Msgs })
	if len(rounds) > 0 && rounds[0].Sent != nil {
		all.Sent = mergeSent(rounds, of)
	}
	return all
}

func mergeSent(rounds []Point, of func(func(Point) float64) float64) *Sent {
	s := &Sent{
		Gbit: of(func(p Point) float64 { return p.Sent.Gbit }),
		Msgs: of(func(p Point) float64 { return p.Sent.Msgs }),
	}
	if rounds[0].Sent.Whole != nil {
		whole := of(func(p Point) float64 { return *p.Sent.Whole })
		valid := of(func(p Point) float64 { return *p.Sent.Valid })
		s.Whole, s.Valid = &whole, &valid
	}
	return s
}

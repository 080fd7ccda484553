// Package mono is the only place that reads a clock. Everything else takes
// the time as an argument, which is what lets the same protocol code run on a
// wire and in the simulator.
package mono

import "time"

// Time is a monotonic time in nanoseconds since an origin that is fixed for
// the life of the process. Times of two processes cannot be compared.
type Time int64

// Duration is a span of time in nanoseconds.
type Duration = time.Duration

// Spans by name, so that protocol packages need not import package time.
const (
	Nanosecond  = time.Nanosecond
	Microsecond = time.Microsecond
	Millisecond = time.Millisecond
	Second      = time.Second
)

// Never is later than every time a clock shows. It is the deadline of
// something that waits for input only.
const Never Time = 1<<63 - 1

// Add returns t+d. Never stays Never, and a sum that is too large becomes it.
func (t Time) Add(d Duration) Time {
	sum := t + Time(d)
	if t == Never || d > 0 && sum < t {
		return Never
	}
	return sum
}

// Sub returns t-u.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// Clock tells the time. The real one is [Real]; the simulator has its own.
type Clock interface {
	// Now returns the present time. It never goes backwards.
	Now() Time
}

// Real is the clock of the machine. Its zero value is ready; reading it costs
// about 25 ns and does not allocate.
type Real struct{}

var origin = time.Now() // read-only after start: the origin of every Time

// Now returns the machine's monotonic time.
func (Real) Now() Time { return Time(time.Since(origin)) }

// Origin returns the time of day when [Real] showed 0, for what is read beside
// the clocks of others. It does not follow a clock that is set afterwards.
func (Real) Origin() time.Time { return origin.Round(0) }

package arq

import "github.com/xwarp/xwarp/internal/base/mono"

// rtt estimates the round-trip time after RFC 6298, in nanoseconds.
type rtt struct {
	smoothed, variance mono.Duration // 0 before the first sample
	lowest             mono.Duration
}

func (r *rtt) sample(d mono.Duration) {
	if r.smoothed == 0 {
		r.smoothed, r.variance, r.lowest = d, d/2, d
		return
	}
	r.lowest = min(r.lowest, d)
	diff := r.smoothed - d
	if diff < 0 {
		diff = -diff
	}
	r.variance += (diff - r.variance) / 4
	r.smoothed += (d - r.smoothed) / 8
}

// retransmit is the retransmission time-out (RFC 6298, section 2).
func (r *rtt) retransmit(c *Config) mono.Duration {
	if r.smoothed == 0 {
		return c.RTOInitial
	}
	return min(max(r.smoothed+4*r.variance, c.RTOMin), c.RTOMax)
}

// probe is how long to wait for an acknowledgement before sending the last
// segment again (RFC 8985, section 7.2).
func (r *rtt) probe(c *Config) mono.Duration {
	if r.smoothed == 0 {
		return c.RTOInitial
	}
	return min(max(2*r.smoothed+c.AckDelay, c.ProbeMin), c.RTOMax)
}

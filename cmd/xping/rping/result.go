package rping

import (
	"math"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// Ping is one that is done.
type Ping struct {
	Peer netip.AddrPort
	Seq  int // from 0
	// Data is the text without its zero: at a client what came back, at a
	// server what it has read. It is valid during the call.
	Data []byte
	// RTT is the time from a client's first Send to the server's last; 0 at a
	// server.
	RTT mono.Duration
}

// Result is what a connection was good for.
type Result struct {
	Peer  netip.AddrPort
	Pings int // that were done
	RTT   RTT // a client's
}

// RTT sums up round trip times.
type RTT struct {
	Min, Max     mono.Duration
	sum, squares float64 // ns, ns^2
	n            int
}

func (r *RTT) add(d mono.Duration) {
	if r.n == 0 || d < r.Min {
		r.Min = d
	}
	r.Max = max(r.Max, d)
	r.sum += float64(d)
	r.squares += float64(d) * float64(d)
	r.n++
}

// Avg returns the mean.
func (r *RTT) Avg() mono.Duration {
	if r.n == 0 {
		return 0
	}
	return mono.Duration(r.sum / float64(r.n))
}

// Dev returns the standard deviation, which ping(8) calls mdev.
func (r *RTT) Dev() mono.Duration {
	if r.n == 0 {
		return 0
	}
	mean := r.sum / float64(r.n)
	return mono.Duration(math.Sqrt(max(r.squares/float64(r.n)-mean*mean, 0)))
}

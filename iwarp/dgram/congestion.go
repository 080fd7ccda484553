package dgram

import "github.com/xwarp/xwarp/internal/serial"

// congestion is the congestion window, in bytes.
type congestion struct {
	segment  int32 // largest datagram
	cwnd     int32
	ssthresh int32
	credit   int32      // acknowledged bytes towards the next step of cwnd
	recovery serial.U32 // cwnd is not reduced again before this one is acknowledged
	reduced  bool       // recovery has a meaning
}

const (
	segmentInitial = 1408 // bytes, until SetSegment is called
	cwndInitial    = 64   // segments
	cwndMin        = 4
)

func (c *congestion) init() {
	c.segment = segmentInitial
	c.cwnd = cwndInitial * c.segment
	c.ssthresh = WindowMax * c.segment
}

// SetSegment tells the largest datagram payload in bytes: the unit in which
// the congestion window grows and shrinks.
func (c *congestion) SetSegment(bytes int) {
	n := int32(bytes)
	c.cwnd = int32(int64(c.cwnd) * int64(n) / int64(c.segment))
	c.ssthresh = int32(int64(c.ssthresh) * int64(n) / int64(c.segment))
	c.segment = n
}

// grow opens the congestion window for n bytes that have arrived: slow start
// below ssthresh, then one segment per window.
func (c *congestion) grow(n int32) {
	limit := WindowMax * c.segment
	if c.cwnd >= limit {
		return
	}
	if c.cwnd < c.ssthresh {
		c.cwnd = min(c.cwnd+n, limit)
		return
	}
	for c.credit += n; c.credit >= c.cwnd && c.cwnd < limit; c.cwnd += c.segment {
		c.credit -= c.cwnd
	}
}

// shrink halves the congestion window, once per window of data [una, nxt).
func (c *congestion) shrink(una, nxt serial.U32) {
	if c.reduced && una.Less(c.recovery) {
		return
	}
	c.reduced, c.recovery = true, nxt
	c.ssthresh = max(c.cwnd/2, cwndMin*c.segment)
	c.cwnd = c.ssthresh
	c.credit = 0
}

// collapse is for a time-out: nothing is known any more.
func (c *congestion) collapse() { c.cwnd = cwndMin * c.segment }

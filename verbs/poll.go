package verbs

// Poll is the engine's call: it takes in what has arrived, fires timers, and
// sends what may be sent. The way of a message that arrives comes first; what
// it leaves to do is done while waiting for the next. One batch of datagrams,
// as many as progress.Budget, is taken in at a time.
//
// Whatever may have led to a completion counts as work: the caller parks when
// there was none.
func (c *Context) Poll(now Time, _ int) int {
	work := 0
	if c.failing.Load() != nil {
		c.obey()
		work = 1
	}
	if c.ep != nil {
		work += c.pollDatagrams(now)
	}
	if c.cfg.Streams != nil {
		if l := &c.streams.rarely; now >= l.next {
			work += c.pollStreams(now)
		} else {
			l.skipped = true
			c.streams.transmitted = false // nothing waits for this step, so that none has to wait for the next one
		}
	}
	return work
}

// Deadline is when Poll must be called though nothing has arrived.
func (c *Context) Deadline() Time {
	if c.in.read {
		return 0 // is left for the next step
	}
	at := min(c.until, c.streamDeadline())
	if c.ep != nil {
		at = min(at, c.ep.Deadline())
	}
	if c.in.stalled() {
		at = min(at, c.in.since.Add(rnrTimeout))
	}
	for _, q := range c.uds {
		if q != nil {
			at = min(at, q.wakeAt())
		}
	}
	if c.rd != nil {
		at = min(at, c.rd.records.deadline)
	}
	return at
}

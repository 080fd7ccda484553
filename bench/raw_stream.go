package bench

// rawLink moves frames or datagrams of one size to the other end, without a protocol:
// what gets lost is found out by rawBench.
type rawLink interface {
	// prepare makes it send messages of size bytes.
	prepare(size int)
	// window returns how many of them the receiver has room for.
	window(size int) int
	// ping sends ping n.
	ping(n uint64) error
	// echoed takes what has arrived, and reports whether the echo of ping n was among it.
	echoed(n uint64) (bool, error)
	// echo sends pings back, until the client says stop.
	echo(size int) error
	// fill sends messages of a stream, at most room, and tells s how many.
	fill(s *streamSender, room int) (sent bool, err error)
	// repeat sends one with this header.
	repeat(word uint64)
	// confirmed takes what has arrived, confirmations for s, and reports whether anything has.
	confirmed(s *streamSender) (bool, error)
	// swallow counts what comes and answers, until the client says stop.
	swallow() error
}

// rawBench measures a rawLink with the little protocol of stream.go.
type rawBench struct {
	*End
	link   rawLink
	number uint64 // of the present ping
	sender streamSender
}

// Run implements Bench.
func (r *rawBench) Run(b Burst, rec *Recorder) error {
	r.link.prepare(b.Size)
	pingPong := r.Spec.kind() == PingPong
	switch {
	case pingPong && r.Server:
		return r.link.echo(b.Size)
	case pingPong:
		return r.pings(b, rec)
	case r.Server:
		return r.link.swallow()
	}
	window := min(max(r.link.window(b.Size), 1), MaxWindow)
	elapsed, err := r.clocked(b, func(n int) error { return r.push(n, window) })
	lost := r.sender.lost()
	rec.Stream(b.Iters-lost, elapsed)
	rec.Lost(lost)
	return err
}

// pings sends one ping after the other, and repeats those whose echo does not come.
func (r *rawBench) pings(b Burst, rec *Recorder) error {
	asked := r.Clock.Now()
	for i := -b.Warmup; i < b.Iters; i++ {
		r.number++
		if err := r.link.ping(r.number); err != nil {
			return err
		}
		var turns spin
		for {
			echoed, err := r.link.echoed(r.number)
			if err != nil {
				return err
			}
			if echoed {
				break
			}
			if !turns.idle() {
				continue
			}
			if r.Pair.Over() {
				return errOver
			}
			if now := r.Clock.Now(); now.Sub(asked) > tailTimeout {
				asked = now // what was lost took no time that means anything
				rec.Lost(1)
				if err := r.link.ping(r.number); err != nil {
					return err
				}
			}
		}
		now := r.Clock.Now()
		if i >= 0 {
			rec.Add(now.Sub(asked))
		}
		asked = now
	}
	return nil
}

// push sends n messages and waits until all are confirmed or lost.
func (r *rawBench) push(n, window int) error {
	s := &r.sender
	s.start(n, window, r.Clock.Now())
	var turns spin
	for !s.done() {
		sent, err := r.link.fill(s, s.room())
		if err != nil {
			return err
		}
		got, err := r.link.confirmed(s)
		if err != nil {
			return err
		}
		if got || sent || !turns.idle() {
			continue
		}
		if r.Pair.Over() {
			return errOver
		}
		if word, late := s.repeat(r.Clock.Now()); late {
			r.link.repeat(word)
		}
	}
	return nil
}

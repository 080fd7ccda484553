package xdp

// Insight into a shared queue, for tests.

// SetInside makes the port of a seat call fn twice in the middle of each step
// that it makes under the lock: before its record is written, and after.
func (p *Port) SetInside(fn func()) { p.member.inside = fn }

// Serve makes a step at once, without waiting for a slab. It reports whether
// the lock was free.
func (p *Port) Serve() bool {
	before := p.member.fill.ours
	steps := 0
	inside := p.member.inside
	p.member.inside = func() {
		steps++
		if inside != nil {
			inside()
		}
	}
	p.serve()
	p.member.inside = inside
	return steps > 0 || p.member.fill.ours != before
}

// Accounted returns how many of the frames to receive into are in the FILL
// ring, in an RX ring or held, when nothing moves.
func (q *Queue) Accounted() (fill, received, held int) {
	for !q.member.enter() {
	}
	defer q.member.ledger.release()
	q.member.fill.reload()
	q.member.fill.refresh()
	fill = int(q.member.fill.ours - q.member.fill.theirs)
	for seat, s := range q.sockets {
		held += len(q.member.ledger.heldBy(seat))
		if s == nil {
			continue
		}
		if rx, err := mapRx(s, q.config.RxDepth); err == nil {
			rx.refresh()
			received += int(rx.theirs - rx.ours)
			s.rings.unmap()
			s.rings = nil
		}
	}
	return fill, received, held
}

// Frames returns how many frames there are to receive into.
func (q *Queue) Frames() int { return q.config.Frames }

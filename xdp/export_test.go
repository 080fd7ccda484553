package xdp

// Insight into a shared queue, for tests.

// Points is how often the port of a seat calls the function of SetInside in
// each step that it makes under the lock.
const Points = 6

// SetInside makes the port of a seat call fn at each point of a step where it
// makes a difference to die.
func (p *Port) SetInside(fn func()) { p.member.ledger.inside = fn }

// Accounted returns how many of the frames to receive into are in the FILL
// ring, in an RX ring or held by each seat, when
// nothing moves.
func (q *Queue) Accounted() (fill, received int, held []int) {
	for !q.member.enter() {
	}
	defer q.member.ledger.release()
	q.member.fill.reload()
	q.member.fill.refresh()
	fill = int(q.member.fill.ours - q.member.fill.theirs)
	for seat, s := range q.sockets {
		held = append(held, len(q.member.ledger.heldBy(seat)))
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

package xdp

import "github.com/xwarp/xwarp/internal/fabric"

// Insight into a shared queue, for tests.

// Places is how many places there are where it makes a difference to be stopped or
// killed; at the first one a frame is lost to the killed.
const Places = int(places)

// SetInside makes the port of a seat call fn at each of those places.
func SetInside(p fabric.Port, fn func(place int)) {
	p.(*Port).member.ledger.inside = func(at place) { fn(int(at)) }
}

// Transmit sends what is queued and does not look whether it was sent.
func (p *Port) Transmit() { p.transmit() }

// LineTo returns the line of a seat that leads to a slot.
func LineTo(p fabric.Port, slot int) *Port { return p.(*fan).ports[slot] }

// SendInvalid gives the kernel what it counts as no buffer.
func (p *Port) SendInvalid() {
	p.rings.tx.push([]fabric.Desc{{}})
	p.transmit()
}

// Accounted returns how many of the frames to receive into are in the FILL
// rings, in an RX ring or held by each seat, when
// nothing moves.
func (q *Queue) Accounted() (fill, received int, held []int) {
	for _, f := range q.member.fills {
		f.refresh()
		fill += int(*f.shared - f.theirs)
	}
	for seat, sockets := range q.sockets {
		held = append(held, len(q.member.ledger.heldBy(seat)))
		for _, s := range sockets {
			if rx, err := mapRx(s, q.config.RxDepth); err == nil {
				rx.refresh()
				received += int(rx.theirs - rx.ours)
				s.rings.unmap()
				s.rings = nil
			}
		}
	}
	return fill, received, held
}

// Frames returns how many frames there are to receive into.
func (q *Queue) Frames() int { return q.config.Frames }

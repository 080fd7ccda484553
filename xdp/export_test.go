package xdp

import "github.com/xwarp/xwarp/internal/carrier/fabric"

// Insight into a shared queue, for tests.

// Places is how many places there are where it makes a difference to be stopped or
// killed; at the first one a frame is lost to the killed.
const Places = int(places)

// SetInside makes the port of a slot call fn at each of those places.
func SetInside(p fabric.Port, fn func(place int)) {
	p.(*Port).participant.slotTable.inside = func(at place) { fn(int(at)) }
}

// Transmit sends what is queued and does not look whether it was sent.
func (p *Port) Transmit() { p.transmit() }

// LookAtSent takes back what was sent on a slot.
func (p *Port) LookAtSent() { p.queued -= p.participant.look(p.pool) }

// PairTo returns the queue pair of a slot that leads to a slot.
func PairTo(p fabric.Port, slot int) *Port { return p.(*portSet).ports[slot] }

// SendInvalid gives the kernel what it counts as no buffer.
func (p *Port) SendInvalid() {
	p.rings.tx.push([]fabric.Desc{{}})
	p.transmit()
}

// Accounted returns how many of the frames to receive into are in the FILL
// rings or were never there, in an RX ring or held by each slot, when
// nothing moves.
func (q *Queue) Accounted() (fill, received int, held []int) {
	fill = q.config.Frames - min(int(*q.participant.slotTable.begun), q.config.Frames)
	for _, f := range q.participant.fills {
		f.refresh()
		fill += int(*f.shared - f.theirs)
	}
	for slot, sockets := range q.sockets {
		held = append(held, len(q.participant.slotTable.heldBy(slot)))
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

// PollBusily makes a port poll where the driver has no busy polling.
func PollBusily(p fabric.Port) (sockets []int) {
	ports := []*Port{}
	switch p := p.(type) {
	case *Port:
		ports = append(ports, p)
	case *portSet:
		ports = append(ports, p.ports...)
	}
	for _, p := range ports {
		p.busy = busyOn
		sockets = append(sockets, p.sock.fd)
	}
	return sockets
}

// Frames returns how many frames there are to receive into.
func (q *Queue) Frames() int { return q.config.Frames }

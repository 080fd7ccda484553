package sim

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// packet is a frame on its way. The world owns its bytes and uses them again.
type packet struct {
	id    uint64
	frame []byte
	from  *Node
	to    *Node // nil on the way up to the switch
}

func (w *World) newPacket(from *Node) *packet {
	var p *packet
	if n := len(w.idle); n > 0 {
		p = w.idle[n-1]
		w.idle = w.idle[:n-1]
	} else {
		p = &packet{}
	}
	w.packets++
	*p = packet{id: w.packets, frame: p.frame[:0], from: from}
	return p
}

func (w *World) clone(p *packet) *packet {
	c := w.newPacket(p.from)
	c.to = p.to
	c.frame = append(c.frame, p.frame...)
	return c
}

func (w *World) discard(p *packet) { w.idle = append(w.idle, p) }

// fire is the arrival of a packet at the end of a link.
func (p *packet) fire(w *World) {
	if p.to == nil {
		w.forward(p)
		return
	}
	p.to.deliver(p)
	w.discard(p)
}

// forward is the switch: by destination MAC, group addresses to everybody
// else. Unlike a bridge it sends frames back to where they came from, as SR-IOV
// NICs do, so that two ports of one node can talk.
func (w *World) forward(p *packet) {
	if p.frame[0]&1 != 0 { // group bit (IEEE 802.3, clause 3.2.3)
		for _, n := range w.nodes {
			if n != p.from {
				w.forwardTo(n, w.clone(p))
			}
		}
		w.discard(p)
		return
	}
	n := w.nodeOf([6]byte(p.frame))
	if n == nil {
		w.note(traceUnknown, p.id, p.from.id, nil)
		w.discard(p)
		return
	}
	w.forwardTo(n, p)
}

func (w *World) forwardTo(n *Node, p *packet) {
	if w.now < w.heal && n.island != p.from.island {
		n.Down.stats.Cut++
		w.note(traceCut, p.id, n.id, nil)
		w.discard(p)
		return
	}
	p.to = n
	n.Down.enqueue(w, p)
}

// Partition cuts the network in two: the nodes given and all others cannot
// reach each other until the time heal. It replaces an earlier partition; a
// time in the past heals at once.
func (w *World) Partition(heal mono.Time, nodes ...*Node) {
	w.heal = heal
	for _, n := range w.nodes {
		n.island = slices.Contains(nodes, n)
	}
}

package sim

import (
	"math/rand/v2"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// LinkConfig describes one direction of a cable. The zero value means
// 10 Gbit/s, 500 ns, a queue of 256 KiB, and no faults.
type LinkConfig struct {
	BitsPerSecond int64         // default 10e9
	Delay         mono.Duration // from the last bit sent to the last bit received; default 500 ns
	MTU           int           // largest IP packet in bytes that passes; larger ones are lost in silence, as behind a router whose ICMP messages a firewall drops; default any
	Queue         int           // bytes that may wait in the switch, the frame on the wire included; default 256 KiB. Not used on the way up: a TX ring holds frames back instead
	Faults
}

// Faults are the probabilities, from 0 to 1, of what befalls a frame.
type Faults struct {
	Loss      float64
	Dup       float64       // it arrives twice
	Reorder   float64       // it is late, and others overtake it
	ReorderBy mono.Duration // how late at most; default 50 us
	Corrupt   float64       // one to three bits of it flip
}

func (c *LinkConfig) fill() {
	fallback(&c.BitsPerSecond, int64(10e9))
	fallback(&c.Delay, 500*mono.Nanosecond)
	fallback(&c.Queue, 256<<10)
	fallback(&c.ReorderBy, 50*mono.Microsecond)
}

// LinkStats counts the frames that went into a link and what befell them.
type LinkStats struct {
	Frames, Bytes                   uint64
	Lost, Dup, Reordered, Corrupted uint64
	Cut                             uint64 // lost while the link was cut
	QueueFull                       uint64 // dropped by the switch
	TooLarge                        uint64 // lost because of LinkConfig.MTU
	QueueMax                        int    // most bytes that have ever waited
}

// Link is one direction of a node's cable. Its fields may be changed while the
// world runs; frames on the way are not affected.
type Link struct {
	LinkConfig
	CutUntil mono.Time // every frame is lost before this time

	node  *Node
	rand  *rand.Rand
	free  mono.Time // when the wire is free for the next frame
	last  mono.Time // when the last punctual frame arrives
	stats LinkStats
}

func newLink(n *Node, c LinkConfig, purpose int) Link {
	return Link{LinkConfig: c, node: n, rand: n.world.random(purpose, n.id)}
}

// Stats returns what has happened on the link so far.
func (l *Link) Stats() LinkStats { return l.stats }

// Bytes that a frame takes on the wire beyond its own: preamble, FCS and gap,
// and the padding of short frames (IEEE 802.3, clauses 3 and 4.4).
const (
	wireOverhead = 8 + 4 + 12
	wireMin      = 60
)

// serialize returns how long n bytes of frame occupy the wire.
func (l *Link) serialize(n int) mono.Duration {
	if l.BitsPerSecond <= 0 {
		return 1
	}
	bits := int64(max(n, wireMin)+wireOverhead) * 8
	return max(1, mono.Duration(bits*1e9/l.BitsPerSecond))
}

// waiting returns how many bytes are in the queue or on the wire at now.
func (l *Link) waiting(now mono.Time) int {
	if l.free <= now {
		return 0
	}
	return int(int64(l.free-now) * l.BitsPerSecond / 8e9)
}

// enqueue puts p into the queue of the link, behind what waits there already,
// or drops it when the queue is full.
func (l *Link) enqueue(w *World, p *packet) {
	waiting := l.waiting(w.now) + len(p.frame)
	if waiting > l.Queue {
		l.stats.QueueFull++
		w.note(traceQueue, p.id, l.node.id, nil)
		w.discard(p)
		return
	}
	l.stats.QueueMax = max(l.stats.QueueMax, waiting)
	l.free = max(l.free, w.now).Add(l.serialize(len(p.frame)))
	l.travel(w, p, l.free)
}

// travel takes p from one end of the link, which its last bit leaves at the
// time leave, to the other, and lets the faults happen to it.
func (l *Link) travel(w *World, p *packet, leave mono.Time) {
	l.stats.Frames++
	l.stats.Bytes += uint64(len(p.frame))
	switch {
	case l.MTU > 0 && len(p.frame) > l.MTU+ethHeader:
		l.stats.TooLarge++
		w.note(traceTooLarge, p.id, l.node.id, nil)
		w.discard(p)
		return
	case leave < l.CutUntil:
		l.stats.Cut++
		w.note(traceCut, p.id, l.node.id, nil)
		w.discard(p)
		return
	case l.chance(l.Loss):
		l.stats.Lost++
		w.note(traceLost, p.id, l.node.id, nil)
		w.discard(p)
		return
	}
	if l.chance(l.Dup) {
		l.stats.Dup++
		twin := w.clone(p)
		w.note(traceDup, p.id, l.node.id, nil)
		l.arrive(w, p, leave)
		l.arrive(w, twin, leave)
		return
	}
	l.arrive(w, p, leave)
}

// arrive schedules the other end's event.
func (l *Link) arrive(w *World, p *packet, leave mono.Time) {
	if l.chance(l.Corrupt) {
		l.stats.Corrupted++
		l.corrupt(p.frame)
		w.note(traceCorrupt, p.id, l.node.id, nil)
	}
	at := max(leave.Add(l.Delay), l.last+1)
	if l.chance(l.Reorder) {
		l.stats.Reordered++
		at += 1 + mono.Time(l.rand.Int64N(int64(max(l.ReorderBy, 1))))
		w.note(traceDelayed, p.id, l.node.id, nil)
	} else {
		l.last = at
	}
	w.push(at, p)
}

func (l *Link) corrupt(frame []byte) {
	for range 1 + l.rand.IntN(3) {
		bit := l.rand.IntN(8 * len(frame))
		frame[bit/8] ^= 1 << (bit % 8)
	}
}

// chance draws only where there is something to decide, so that a link without
// faults costs nothing.
func (l *Link) chance(probability float64) bool {
	return probability > 0 && l.rand.Float64() < probability
}

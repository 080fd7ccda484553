package p2p

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/shm"
)

// Segment is memory that ranks of one host have in common. One makes it; the others open it
// by the number that this one has told them.
type Segment = shm.Segment

// Shared reports whether this rank has memory in common with others, if there are some near.
func (ep *Endpoint) Shared() bool { return ep.near.shares }

// Segments is the memory that a rank can have in common with others.
type Segments struct{ ep *Endpoint }

// Segments returns the memory that this rank can have in common with others.
func (in Inside) Segments() Segments { return Segments(in) }

// With reports whether a rank can have memory in common with this one: it is on the same
// host, and neither does without shared memory; or it is this rank. All ranks for which that
// is true of one another see it alike.
func (s Segments) With(rank int32) bool {
	p := &s.ep.peers[rank]
	return p.self || p.lends != nil
}

// New makes a segment that ranks of this host may open. With is true of some other rank.
func (s Segments) New(size int) (*Segment, error) { return s.ep.near.segments.NewSegment(size) }

// Opener returns Open of another rank for a caller that is not inside any more: other goroutines go on
// while it waits for the rank's listener.
func (s Segments) Opener(rank int32) func(id uint64, size int) (*Segment, error) {
	way, waits, clock := s.ep.peers[rank].lends, s.ep.waits, s.ep.eng.Clock()
	return func(id uint64, size int) (*Segment, error) {
		f := &fetching{rank: rank, way: way, before: way.Unheard(), since: clock.Now()}
		waits.segment.Store(f)
		defer waits.segment.CompareAndSwap(f, nil)
		return way.OpenSegment(id, size)
	}
}

// fetching is a segment that a rank waits for.
type fetching struct {
	rank   int32
	way    *shm.Channel
	before uint32 // Unheard when it began
	since  mono.Time
}

// Open maps a segment of another rank.
func (s Segments) Open(rank int32, id uint64, size int) (*Segment, error) {
	return s.Opener(rank)(id, size)
}

package p2p

import "github.com/xwarp/xwarp/internal/carrier/shm"

// Segment is memory that ranks of one host have in common. One makes it; the others open it
// by the number that this one has told them.
type Segment = shm.Segment

// Shared reports whether this rank has memory in common with others, if there are some near.
func (ep *Endpoint) Shared() bool { return ep.near.shares }

// Shares reports whether a rank can have memory in common with this one: it is on the same
// host, and neither does without shared memory; or it is this rank. All ranks for which that
// is true of one another see it alike.
func (in Inside) Shares(rank int32) bool {
	p := &in.ep.peers[rank]
	return p.self || p.near != nil
}

// NewSegment makes a segment that ranks of this host may open. Some rank of Shares is another
// one.
func (in Inside) NewSegment(size int) (*Segment, error) {
	return in.ep.near.channels.NewSegment(size)
}

// OpenSegment maps a segment of another rank of Shares.
func (in Inside) OpenSegment(rank int32, id uint64, size int) (*Segment, error) {
	return in.ep.peers[rank].near.OpenSegment(id, size)
}

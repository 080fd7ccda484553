package p2p

// Limits are the lengths in bytes up to which messages are sent without asking.
type Limits struct {
	Eager int // through the network
	Idle  int // through the network, to a peer that little is under way to; of several the lowest
	// Through shared memory, to the neighbours with the lowest and the highest limit:
	// see tuner. Both 0: there are no neighbours.
	NearLeast, NearMost int
}

// Limits returns the limits of now.
func (in Inside) Limits() Limits {
	l := Limits{Eager: in.ep.cfg.EagerMax, Idle: in.ep.cfg.EagerIdle}
	lowest := idleMost
	for i := range in.ep.peers {
		p := &in.ep.peers[i]
		if p.idle != nil {
			lowest = min(lowest, p.idle.limit(l.Eager))
			l.Idle = lowest
		}
		if p.channel == nil {
			continue
		}
		top := int(p.eagerTop)
		if l.NearMost == 0 || top < l.NearLeast {
			l.NearLeast = top
		}
		l.NearMost = max(l.NearMost, top)
	}
	return l
}

package coll

// Neighbors exchanges blocks with the neighbours of this rank: out[i] goes to
// dests[i], in[i] comes from sources[i]. Negative numbers are places where there
// is no rank: over the edge of a grid. Everything is begun at once; it is no more
// than the messages that have to be.
//
// receives is the order in which to begin the receives, nil: as they come. It
// matters when a rank is a neighbour more than once, for then the first that
// it sends is what is received first.
func Neighbors(s *Schedule, t Team, dests []int, out []Block, sources []int, in []Block, receives []int) {
	for i := range sources {
		if receives != nil {
			i = receives[i]
		}
		if sources[i] >= 0 {
			s.recvBlock(t, sources[i], in[i])
		}
	}
	for i, to := range dests {
		if to >= 0 {
			s.sendBlock(t, to, out[i])
		}
	}
	s.fence()
}

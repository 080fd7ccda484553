package coll

// Scatter is Gather the other way round: member i gets the i-th of the equal
// blocks that all of member root consists of. mine may be in its place there.
func Scatter(s *Schedule, t Team, all, mine []byte, root int) {
	switch {
	case len(mine) == 0:
	case t.choose(ofGather, len(mine)) == binomial:
		ScatterBinomial(s, t, all, mine, root)
	case t.Me == root:
		ScatterLinear(s, t, s.Even(all, t.Size), mine, root)
	default:
		ScatterLinear(s, t, nil, mine, root)
	}
}

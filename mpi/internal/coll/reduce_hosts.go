package coll

// ReduceHosts reduces on each host to its leader, then over the leaders. It is
// for operations that commute: ranks of a host need not follow one another.
//
// Why: each host sends one vector.
// Cost: that of a binomial tree inside a host, and of one of hosts.
func ReduceHosts(s *Schedule, t Team, in, out []byte, root int) {
	local, first, top, rootTop := t.Hosts.levels(s, t, root)
	acc := out
	if top.Me >= 0 && t.Me != root {
		acc = s.Temp(len(in))
	}
	reduceNear(s, local, in, acc, first)
	if top.Me >= 0 {
		ReduceBinomial(s, top, acc, acc, rootTop)
	}
}

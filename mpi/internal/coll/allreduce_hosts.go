package coll

// AllreduceHosts reduces on each host to its leader, then among the leaders,
// and gives the result to the host. It is for operations that commute.
//
// Why: each host sends what one rank alone would send.
// Cost: that of a binomial tree inside a host twice, and of recursive doubling
// or the like over hosts.
func AllreduceHosts(s *Schedule, t Team, v []byte) {
	local, first, top, _ := t.Hosts.levels(s, t, 0)
	reduceNear(s, local, v, v, first)
	if top.Me >= 0 {
		Allreduce(s, top, v, v)
	}
	bcastNear(s, local, v, first)
}

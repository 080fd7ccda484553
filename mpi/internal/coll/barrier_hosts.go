package coll

// BarrierHosts gathers the ranks of each host at their leader, lets the leaders
// meet, and goes back.
//
// Why: each host sends log2 of the number of hosts messages to others, where
// dissemination sends that many for each of its ranks.
// Cost: 2 log2 of the ranks of a host a, of messages inside it, and log2 of the
// number of hosts a.
func BarrierHosts(s *Schedule, t Team) {
	local, first, top, _ := t.Hosts.levels(s, t, 0)
	reduceNear(s, local, nil, nil, first)
	if top.Me >= 0 {
		BarrierDissemination(s, top)
	}
	bcastNear(s, local, nil, first)
}

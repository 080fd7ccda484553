package coll

// BcastHosts sends to a leader on each host, and these to their host.
//
// Why: the message goes to each host once.
// Cost: that of a binomial tree of hosts, and of one inside a host.
func BcastHosts(s *Schedule, t Team, buf []byte, root int) {
	local, first, top, rootTop := t.Hosts.levels(s, t, root)
	if top.Me >= 0 {
		BcastBinomial(s, top, buf, rootTop)
	}
	bcastNear(s, local, buf, first)
}

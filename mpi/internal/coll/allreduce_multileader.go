package coll

// AllreduceMultiLeader cuts the vector into a part for each leader of a host. The
// ranks of a host reduce among them each a part, then the leaders of the same number
// theirs over the hosts, and the ranks of a host give the results to one another. It is
// for operations that commute.
//
// Why: for long vectors. Each host sends what one rank alone would send, and as
// many cores as there are parts work on that.
// Cost: that of Allreduce of n/R bytes between hosts, with R parts; inside of them
// 2 a + 2 n b + n g.
func AllreduceMultiLeader(s *Schedule, t Team, in, v []byte) {
	local, leaders, parts := t.Hosts.leaders(s, t, 0)
	r := s.reduceParts(local, in, v, parts)
	if local.Me < parts {
		for k := range r.k {
			r.reduce(s, k)
		}
	}
	s.fence()
	if local.Me < parts {
		mine := s.cut(v, parts, local.Me, local.Me+1)
		Allreduce(s, leaders, mine, mine)
		s.sendAll(local, mine)
	}
	for i := range parts {
		if i != local.Me {
			s.recv(local, i, s.cut(v, parts, i, i+1))
		}
	}
	s.fence()
}

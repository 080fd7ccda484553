package coll

// AllreduceRails cuts the vector into a part for each rail. The ranks of a host
// reduce among them each a part, then each rail its own over the hosts, and the
// ranks of a host give the results to one another. It is for operations that
// commute.
//
// Why: for long vectors. Each host sends what one rank alone would send, and as
// many cores as there are rails work on that.
// Cost: that of Allreduce of n/R bytes between hosts, with R rails; inside of them
// 2 a + 2 n b + n g.
func AllreduceRails(s *Schedule, t Team, in, v []byte) {
	local, rail, rails := t.Hosts.rails(s, t, 0)
	r := s.reduceParts(local, in, v, rails)
	if local.Me < rails {
		for k := range r.k {
			r.reduce(s, k)
		}
	}
	s.fence()
	if local.Me < rails {
		mine := s.cut(v, rails, local.Me, local.Me+1)
		Allreduce(s, rail, mine, mine)
		s.sendAll(local, mine)
	}
	for i := range rails {
		if i != local.Me {
			s.recv(local, i, s.cut(v, rails, i, i+1))
		}
	}
	s.fence()
}

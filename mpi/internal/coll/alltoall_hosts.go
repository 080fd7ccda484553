package coll

import "slices"

// AlltoallHosts is pairwise in an order that hosts set: in a round all ranks of a
// host exchange blocks with those of another host, first the nearest one, and at
// last with one another. It is for hosts with equally many ranks.
//
// Why: for long blocks. No round has messages inside of a host that wait for those
// between hosts.
// Cost: (p - 1) a + n b, with n bytes in all.
func AlltoallHosts(s *Schedule, t Team, out, in [][]byte) {
	h := t.Hosts
	host, n, each := int(h.of[t.Me]), len(h.ranks), h.least
	if each*n != t.Size {
		AlltoallPairwise(s, t, out, in)
		return
	}
	me := slices.Index(h.ranks[host], int32(t.Me))
	for d := 1; d <= n; d++ {
		up, down := h.ranks[(host+d)%n], h.ranks[(host-d+n)%n]
		for i := range each {
			to, from := int(up[(me+i)%each]), int(down[(me-i+each)%each])
			if to == t.Me {
				continue
			}
			s.swap(t, to, out[to], from, in[from])
		}
	}
	s.Copy(in[t.Me], out[t.Me])
}

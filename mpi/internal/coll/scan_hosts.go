package coll

// ScanHosts scans on each host, through slots, and passes the reduction of all hosts so far from the last rank of
// one to the last rank of the next, which gives it to its host. It is for hosts whose ranks follow one another, and
// keeps the order of ranks.
//
// Why: one message to each host, where the chain has one for each rank; hosts scan at the same time.
// Cost: R n (b + g) and n (b + g) inside of a host, with R ranks, and that of a Scan of h ranks between hosts.
func ScanHosts(s *Schedule, t Team, in, v []byte, exclusive bool) {
	h := t.Hosts
	host := int(h.of[t.Me])
	local := Part(int32(t.Me), h.ranks[host])
	local.Slots = t.Slots
	last := local.Size - 1
	total := v // of this host, for the hosts behind it
	goesOn := local.Me == last && host < len(h.ranks)-1
	if exclusive && goesOn {
		total = s.Temp(len(in))
		s.Copy(total, in)
	}
	ScanSlots(s, local, in, v, exclusive)
	if exclusive && goesOn {
		s.combine(total, v, true)
	}
	before := v // the reduction of the hosts before this one
	if host > 0 && !(exclusive && local.Me == 0) {
		before = s.Temp(len(in))
	}
	if local.Me == last {
		leaders := s.ranks(len(h.ranks))
		for i, ranks := range h.ranks {
			leaders[i] = ranks[len(ranks)-1]
		}
		Scan(s, Part(int32(t.Me), leaders), total, before, true)
	}
	if host == 0 {
		return
	}
	BcastSlots(s, local, before, last)
	if !(exclusive && local.Me == 0) {
		s.combine(v, before, true)
	}
}

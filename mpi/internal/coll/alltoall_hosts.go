package coll

// AlltoallHosts lets the leader of each host send what its ranks have for another host in one message, which
// it finds in their slots, and gives what comes to all of them. It is AlltoallLinear where ranks of a host do not
// follow one another, or have longer vectors than the slots of a host.
//
// Why: for short blocks. Each host sends one message to each other one, not one for each pair of ranks.
// Cost: that of linear over hosts, and 3 n b inside of one, with n bytes of all ranks of a host.
func AlltoallHosts(s *Schedule, t Team, out, in []byte) {
	if !t.Hosts.inOrder || !t.nearAll(len(out)) {
		AlltoallLinear(s, t, s.EvenParts(out, t.Size), s.EvenParts(in, t.Size))
		return
	}
	local, first, top, _ := t.Hosts.levels(s, t, 0)
	each := len(out) / t.Size
	give(s, local, out, len(out))
	slotStep(s, slotAwait, everyMember, nil, nil)
	host := int(t.Hosts.of[t.Me])
	for i, r := range t.Hosts.ranks[host] {
		takeOr(s, local, i, out, t.Me*each, in[int(r)*each:][:each])
	}
	far := s.Temp((t.Size - local.Size) * local.Size * each) // by rank there, and then by rank here
	if top.Me >= 0 {
		exchangeHosts(s, t.Hosts, local, top, out, far)
	}
	bcastNear(s, local, far, first)
	for h, ranks := range t.Hosts.ranks {
		if h == host {
			continue
		}
		for _, r := range ranks {
			s.Copy(in[int(r)*each:][:each], far[local.Me*each:])
			far = far[local.Size*each:]
		}
	}
}

// exchangeHosts sends what the ranks of this host have in their slots to the leaders of others, by rank here and then
// by rank there, and receives the same in far.
func exchangeHosts(s *Schedule, h *Hosts, local, top Team, out, far []byte) {
	each := len(out) / len(h.of)
	mine := s.Temp(len(far))
	for to, ranks := range h.ranks {
		if to == top.Me {
			continue
		}
		n := len(ranks) * each
		part := mine[:n*local.Size]
		for i := range local.Size {
			takeOr(s, local, i, out, int(ranks[0])*each, part[i*n:][:n])
		}
		s.recv(top, to, far[:len(part)])
		s.send(top, to, part)
		mine, far = mine[len(part):], far[len(part):]
	}
	s.fence()
}

// takeOr is take, of this member's own vector v as well.
func takeOr(s *Schedule, t Team, member int, v []byte, off int, b []byte) {
	if member == t.Me {
		s.Copy(b, v[off:off+len(b)])
		return
	}
	take(s, member, off, b)
}

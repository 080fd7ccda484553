package coll

// ScatterHosts sends the blocks of each host to its leader, which gives them to the host through slots. It
// is for hosts whose ranks follow one another.
//
// Why: for short blocks. The root sends one message to each host, not one to each rank.
// Cost: (hosts - 1) a + n b of messages, and 2 n b inside of hosts, with n bytes in all.
func ScatterHosts(s *Schedule, t Team, all, mine []byte, root int) {
	local, first, top, rootTop := t.Hosts.levels(s, t, root)
	each, here := len(mine), []byte(nil) // here: the blocks of this host, at its leader
	switch {
	case t.Me == root:
		for h, ranks := range t.Hosts.ranks {
			b := all[int(ranks[0])*each:][:len(ranks)*each]
			if h == rootTop {
				here = b
			} else {
				s.send(top, h, b)
			}
		}
	case top.Me >= 0:
		here = s.Temp(local.Size * each)
		s.recv(top, rootTop, here)
		s.fence()
	}
	ScatterSlots(s, local, here, mine, first)
	s.fence()
}

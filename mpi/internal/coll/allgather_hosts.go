package coll

// AllgatherHosts gathers the equal blocks of each host at its leader, lets the leaders exchange those of their
// hosts, and gives all to the host. Where ranks of a host do not follow one another it is AllgatherBruck.
//
// Why: for short blocks. Each host sends what one rank alone would send, in as few messages.
// Cost: that of gather and broadcast inside a host, and of few rounds over hosts.
func AllgatherHosts(s *Schedule, t Team, mine, all []byte) {
	if !t.Hosts.inOrder {
		AllgatherBruck(s, t, mine, s.Even(all, t.Size))
		return
	}
	local, first, top, _ := t.Hosts.levels(s, t, 0)
	blocks, each := s.Blocks(len(t.Hosts.ranks)), len(mine)
	for h, ranks := range t.Hosts.ranks {
		from := int(ranks[0]) * each
		blocks[h] = all[from : from+len(ranks)*each]
	}
	near := blocks[t.Hosts.of[t.Me]]
	if local.near(each) {
		GatherSlots(s, local, mine, local.evenAt(s, near, first), each, first)
	} else {
		GatherBinomial(s, local, mine, near, first)
	}
	if top.Me >= 0 {
		AllgatherBruck(s, top, near, blocks)
	}
	bcastNear(s, local, all, first)
}

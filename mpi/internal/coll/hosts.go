package coll

import "slices"

// Hosts says which ranks of a communicator share a host. Messages between hosts
// are dear, so the hierarchical algorithms let one rank of each host, its
// leader, speak for all.
type Hosts struct {
	of    []int32   // index of the host, by rank
	ranks [][]int32 // by host
	least int       // ranks of the host that has the fewest
	most  int       // ranks of the host that has the most

	given   int  // of how many ranks a rank gives blocks to others of its host at most: see AlltoallParts
	inOrder bool // ranks of a host follow one another
}

// NewHosts sorts out which ranks share a host, from the number of the host of
// each. It returns nil when there is nothing to gain: one host only, or one
// rank on each.
func NewHosts(host []int) *Hosts {
	h := &Hosts{of: make([]int32, len(host))}
	index := map[int]int32{}
	for r, number := range host {
		i, ok := index[number]
		if !ok {
			i = int32(len(h.ranks))
			index[number] = i
			h.ranks = append(h.ranks, nil)
		}
		h.of[r] = i
		h.ranks[i] = append(h.ranks[i], int32(r))
	}
	if len(h.ranks) == 1 || len(h.ranks) == len(host) {
		return nil
	}
	h.inOrder = slices.IsSorted(h.of)
	h.least = len(host)
	for _, local := range h.ranks {
		h.least, h.most = min(h.least, len(local)), max(h.most, len(local))
	}
	for _, local := range h.ranks {
		given := len(host) - 1
		for _, far := range h.ranks {
			given -= len(far) / len(local) // those that it sends to
		}
		h.given = max(h.given, given+1) // and not its own host
	}
	return h
}

// levels cuts a team in two levels: local is the ranks of this rank's host, with
// the number first of the leader; top is the leaders, with the number root of
// that of the root's host, which the root itself is. top.Me is -1 for ranks that
// do not lead. t is a whole communicator.
func (h *Hosts) levels(s *Schedule, t Team, root int) (local Team, first int, top Team, rootTop int) {
	me, rootHost := int32(t.Me), h.of[root]
	local = Part(me, h.ranks[h.of[t.Me]])
	local.Tables, local.Slots = t.Tables, t.Slots
	leaders := s.ranks(len(h.ranks))
	for i := range leaders {
		leaders[i] = h.ranks[i][0]
	}
	leaders[rootHost] = int32(root)
	top = Part(me, leaders)
	top.Tables = t.Tables
	if h.of[t.Me] == rootHost {
		for i, r := range local.Ranks {
			if r == int32(root) {
				first = i
			}
		}
	}
	return local, first, top, int(rootHost)
}

// leaders gives every host as many leaders, n, as the smallest host has ranks. local
// is the ranks of this rank's host, on that of the root from the root on: the first n of
// them lead. leaders is the leaders with this one's number, from the root's host on; for
// a rank that does not lead only Me is right, which tells its host. t is a whole communicator.
func (h *Hosts) leaders(s *Schedule, t Team, root int) (local, leaders Team, n int) {
	host, home := int(h.of[t.Me]), int(h.of[root])
	local = Team{Ranks: h.ranks[host], Size: len(h.ranks[host])}
	first := slices.Index(h.ranks[home], int32(root))
	if host == home && first > 0 {
		local.Ranks = append(append(s.ranks(local.Size)[:0], h.ranks[home][first:]...), h.ranks[home][:first]...)
	}
	local.Me = slices.Index(local.Ranks, int32(t.Me))
	leaders = Team{Ranks: s.ranks(len(h.ranks)), Size: len(h.ranks), Tables: t.Tables}
	leaders.Me = leaders.off(host - home)
	for i := range leaders.Ranks {
		at := leaders.off(home + i - leaders.Size)
		ranks, index := h.ranks[at], local.Me
		if i == 0 {
			index += first
		}
		if local.Me < h.least {
			leaders.Ranks[i] = ranks[index%len(ranks)]
		}
	}
	return local, leaders, h.least
}

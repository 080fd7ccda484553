package coll

// Hosts says which ranks of a communicator share a host. Messages between hosts
// are dear, so the hierarchical algorithms let one rank of each host, its
// leader, speak for all.
type Hosts struct {
	of    []int32   // index of the host, by rank
	ranks [][]int32 // by host
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
	return h
}

// levels cuts a team in two levels: local is the ranks of this rank's host, with
// the number first of the leader; top is the leaders, with the number root of
// that of the root's host, which the root itself is. top.Me is -1 for ranks that
// do not lead. t is a whole communicator.
func (h *Hosts) levels(s *Schedule, t Team, root int) (local Team, first int, top Team, rootTop int) {
	me, rootHost := int32(t.Me), h.of[root]
	local = Part(me, h.ranks[h.of[t.Me]])
	leaders := s.ranks(len(h.ranks))
	for i := range leaders {
		leaders[i] = h.ranks[i][0]
	}
	leaders[rootHost] = int32(root)
	top = Part(me, leaders)
	if h.of[t.Me] == rootHost {
		for i, r := range local.Ranks {
			if r == int32(root) {
				first = i
			}
		}
	}
	return local, first, top, int(rootHost)
}

package coll

// AllgatherMultiLeader sends each block to one rank of every other host: the one with
// the sender's number on its host, counted around where there are fewer. A rank
// gives its own host its block, and what comes from others segment by segment,
// while the next ones come.
//
// Why: for long blocks. They go to each host once, and all ranks send and receive
// between hosts at the same time.
// Cost: a + n (h-1)/p b between hosts, and n b inside of them, with n bytes in all
// and h hosts.
func AllgatherMultiLeader(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	h := t.Hosts
	host := int(h.of[t.Me])
	local := Part(int32(t.Me), h.ranks[host])
	h.feeders(host, local.Me, func(r int) { s.recvCut(t, r, blocks[r], segments(len(blocks[r]))) })
	for i := 1; i < local.Size; i++ {
		near := local.off(local.Me - i)
		s.recv(local, near, blocks[local.rank(near)])
		h.feeders(host, near, func(r int) { s.recvCut(local, near, blocks[r], segments(len(blocks[r]))) })
	}
	s.sendAll(local, mine)
	for i := 1; i < len(h.ranks); i++ {
		far := h.ranks[(host+i)%len(h.ranks)]
		s.sendCut(t, int(far[local.Me%len(far)]), mine, segments(len(mine)))
	}
	s.Copy(blocks[t.Me], mine)
	come := 0
	h.feeders(host, local.Me, func(r int) {
		k := segments(len(blocks[r]))
		for i := range k {
			come++
			s.await(come)
			s.sendAll(local, segment(blocks[r], k, i))
		}
	})
	s.fence()
}

// feeders calls f for the ranks of other hosts that send their block to the rank
// with number i on a host.
func (h *Hosts) feeders(host, i int, f func(r int)) {
	n := len(h.ranks)
	for d := 1; d < n; d++ {
		far := h.ranks[(host-d+n)%n]
		for at := i; at < len(far); at += len(h.ranks[host]) {
			f(int(far[at]))
		}
	}
}

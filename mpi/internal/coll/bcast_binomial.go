package coll

// BcastBinomial sends down a binomial tree: the root to the rank half way
// round, then both to those half way to the next, and so on.
//
// Why: the fewest rounds, for messages whose latency is what counts.
// Cost: ceil(log2 p) (a + n b).
func BcastBinomial(s *Schedule, t Team, buf []byte, root int) {
	me := t.from(root)
	span := below(me, t.Size)
	if me != 0 {
		s.recv(t, t.off(me-span+root), buf)
		s.fence()
	}
	for span /= 2; span > 0; span /= 2 {
		if me+span < t.Size {
			s.send(t, t.off(me+span+root), buf)
		}
	}
	s.fence()
}

// below returns how many ranks, me and those that follow, hang below me in a
// binomial tree of p ranks; some of them may be beyond p.
func below(me, p int) int {
	span := 1
	for span < p && me&span == 0 {
		span *= 2
	}
	return span
}

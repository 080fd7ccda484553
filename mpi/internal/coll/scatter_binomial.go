package coll

// ScatterBinomial scatters down a binomial tree: every rank gets the blocks of
// all that hang below it and passes them on.
//
// Why: the root sends log2 p messages instead of p - 1.
// Cost: ceil(log2 p) a + (p-1)/p n b, with n bytes in all.
func ScatterBinomial(s *Schedule, t Team, all, mine []byte, root int) {
	p, each := t.Size, len(mine)
	me := t.from(root)
	span := min(below(me, p), p-me)
	parts := mine // blocks of me and those that follow
	switch {
	case me == 0 && root == 0:
		parts = all
	case me == 0:
		parts = s.Temp(p * each)
		s.Copy(parts, all[root*each:])
		s.Copy(parts[(p-root)*each:], all[:root*each])
	case span > 1:
		parts = s.Temp(span * each)
	}
	if me != 0 {
		s.recv(t, t.off(me-below(me, p)+root), parts)
		s.fence()
	}
	for d := powerBelow(max(span-1, 1)); d > 0; d /= 2 {
		if d < span {
			s.send(t, t.off(me+d+root), parts[d*each:min(2*d, span)*each])
		}
	}
	s.Copy(mine, parts[:each])
	s.fence()
}

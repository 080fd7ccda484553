package coll

// GatherBinomial gathers up a binomial tree: every rank collects the blocks of
// those below it and passes them on.
//
// Why: the root takes in log2 p messages instead of p - 1.
// Cost: ceil(log2 p) a + (p-1)/p n b, with n bytes in all.
func GatherBinomial(s *Schedule, t Team, mine, all []byte, root int) {
	p, each := t.Size, len(mine)
	me := t.from(root)
	span := min(below(me, p), p-me)
	parts := mine // blocks of me and those that follow
	switch {
	case me == 0 && root == 0:
		parts = all
		s.Copy(parts[:each], mine)
	case span > 1:
		parts = s.Temp(span * each)
		s.Copy(parts[:each], mine)
	}
	for d := 1; d < span; d *= 2 {
		s.recv(t, t.off(me+d+root), parts[d*each:min(2*d, span)*each])
	}
	s.fence()
	if me != 0 {
		s.send(t, t.off(me-below(me, p)+root), parts)
		s.fence()
	} else if root != 0 { // what begins at the root's number goes round to 0
		s.Copy(all[root*each:], parts[:(p-root)*each])
		s.Copy(all[:root*each], parts[(p-root)*each:])
	}
}

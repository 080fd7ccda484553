package coll

// ReduceScatterPairwise goes round in p - 1 rounds: each rank sends to the one i
// above it the part that this one needs, and reduces what comes from the one i
// below.
//
// Why: for long vectors, any number of ranks, and operations that do not
// commute: parts come from the ranks below, downwards, and then from those
// above, downwards, so that two results that grow towards lower ranks keep the
// order.
// Cost: (p - 1) a + (p-1)/p n (b + g).
func ReduceScatterPairwise(s *Schedule, t Team, blocks [][]byte, out []byte) {
	me, n := t.Me, len(blocks[t.Me])
	acc, above := s.Temp(n), s.Temp(n)
	s.Copy(acc, blocks[me])
	other := s.Temp(n)
	for i := 1; i < t.Size; i++ {
		up, down := t.off(me+i), t.off(me-i)
		in := other
		if down == t.Size-1 {
			in = above // the first one from above me
		}
		s.swap(t, up, blocks[up], down, in)
		switch {
		case down < me:
			s.combine(acc, other, true)
		case down < t.Size-1:
			s.combine(above, other, true)
		}
	}
	if me < t.Size-1 {
		s.combine(acc, above, false)
	}
	s.Copy(out, acc)
}

package coll

// AllreduceDoubling is recursive doubling: in round k each rank exchanges its
// whole vector with the rank whose number differs in bit k, and reduces.
//
// Why: the fewest rounds, for short vectors. It keeps the order of the ranks,
// so that it is right for operations that do not commute too.
// Cost: ceil(log2 p) (a + n b + n g), and two messages more when p is no power
// of two.
func AllreduceDoubling(s *Schedule, t Team, v []byte) {
	other := s.Temp(len(v))
	me, size := s.foldRemainder(t, v, other)
	for d := 1; d < size && me >= 0; d *= 2 {
		peer := rankOf(t, me^d)
		s.swap(t, peer, v, peer, other)
		s.combine(v, other, me&d != 0)
	}
	s.unfoldRemainder(t, v)
}

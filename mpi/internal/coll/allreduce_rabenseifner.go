package coll

// AllreduceRabenseifner is reduce-scatter by recursive doubling of the
// distance, then allgather the same way back (Rabenseifner 2004).
//
// Why: for longer vectors. Each rank sends and reduces 2n bytes where recursive
// doubling sends and reduces n log2 p. It keeps the order of the ranks.
// Cost: 2 log2 p a + 2 (p-1)/p n b + (p-1)/p n g, and two messages of n bytes
// more when p is no power of two.
func AllreduceRabenseifner(s *Schedule, t Team, v []byte) {
	me, size := s.foldRemainder(t, v, nil)
	if me >= 0 {
		s.reduceScatter(t, me, size, v)
		for d := size / 2; d > 0; d /= 2 {
			mine, theirs := s.halves(v, me, size, d)
			peer := rankOf(t, me^d)
			s.swap(t, peer, mine, peer, theirs)
		}
	}
	s.unfoldRemainder(t, v)
}

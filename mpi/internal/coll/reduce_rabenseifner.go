package coll

// ReduceRabenseifner is reduce-scatter by recursive doubling of the distance,
// then gather the same way back (Rabenseifner 2004).
//
// Why: for longer vectors: each rank sends and reduces 2n bytes at most, where
// the root of a binomial tree receives and reduces n log2 p.
// Cost: 2 log2 p a + 2 (p-1)/p n b + (p-1)/p n g, and a message of n bytes or
// two more when p is no power of two.
func ReduceRabenseifner(s *Schedule, t Team, in, out []byte, root int) {
	v := out
	if t.Me != root {
		v = s.Temp(len(in))
	}
	s.Copy(v, in)
	me, size := s.foldRemainder(t, v, nil)
	rest := t.Size - size
	// A root that sits out gets the result from its neighbour.
	virtual, outside := root-rest, false
	if root < 2*rest {
		virtual, outside = root/2, root%2 == 0
	}
	if me >= 0 {
		s.reduceScatter(t, me, size, v)
		for d := size / 2; d > 0; d /= 2 {
			mine, theirs := s.halves(v, me, size, d)
			if me&d != virtual&d {
				s.send(t, rankOf(t, me^d), mine)
				break
			}
			s.recv(t, rankOf(t, me^d), theirs)
			s.fence()
		}
		s.fence()
	}
	switch {
	case !outside:
	case t.Me == root:
		s.recv(t, root+1, v)
		s.fence()
	case t.Me == root+1:
		s.send(t, root, v)
		s.fence()
	}
}

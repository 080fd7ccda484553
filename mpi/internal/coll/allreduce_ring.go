package coll

// AllreduceRing passes p parts round a ring twice: once each rank adds its own
// to the part that goes by, once the results go to all. It is for
// operations that commute.
//
// Why: for very long vectors and any number of ranks. Like Rabenseifner's it
// moves the fewest bytes, but to one neighbour only, and when p is no power of
// two no rank sits out.
// Cost: 2 (p-1) a + 2 (p-1)/p n b + (p-1)/p n g.
func AllreduceRing(s *Schedule, t Team, v []byte) {
	p := t.Size
	part := func(i int) []byte {
		i = (i + 2*p) % p
		return s.cut(v, p, i, i+1)
	}
	other := s.Temp((s.count(v)/p + 1) * s.elem)
	right, left := t.off(t.Me+1), t.off(t.Me-1)
	for i := range p - 1 {
		mine := part(t.Me - i - 1)
		in := other[:len(mine)]
		s.swap(t, right, part(t.Me-i), left, in)
		s.combine(mine, in, true)
	}
	for i := range p - 1 {
		s.swap(t, right, part(t.Me+1-i), left, part(t.Me-i))
	}
}

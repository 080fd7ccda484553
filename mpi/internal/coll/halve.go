package coll

// reduceScatter reduces v over size ranks, a power of two, of which this one is
// me: in the round of distance d = 1, 2, 4, ... it exchanges one half of what it
// still works on with rank me^d, and reduces the other. Each round joins ranks
// that follow one another, so that their order is kept.
func (s *Schedule) reduceScatter(t Team, me, size int, v []byte) {
	other := s.Temp((s.count(v) + 1) / 2 * s.elem)
	for d := 1; d < size; d *= 2 {
		keep, give := s.halves(v, me, size, d)
		in := other[:len(keep)]
		peer := rankOf(t, me^d)
		s.swap(t, peer, give, peer, in)
		s.combine(keep, in, me&d != 0)
	}
}

// halves returns the half of a vector that rank me works on after the round of
// distance d of reduceScatter, and the one that its peer works on.
func (s *Schedule) halves(v []byte, me, size, d int) (mine, theirs []byte) {
	low, high := 0, size // parts of the vector
	for k := 1; k < d; k *= 2 {
		middle := (low + high) / 2
		if me&k != 0 {
			low = middle
		} else {
			high = middle
		}
	}
	middle := (low + high) / 2
	mine, theirs = s.cut(v, size, low, middle), s.cut(v, size, middle, high)
	if me&d != 0 {
		mine, theirs = theirs, mine
	}
	return mine, theirs
}

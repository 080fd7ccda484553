package coll

// foldRemainder makes the number of ranks a power of two: of the first 2r ranks, where
// r is what is too many, the even ones give their vector to their neighbour and
// sit out until unfoldRemainder. It returns this rank's number among those that go on,
// or -1, and the number of those. The order of ranks is kept. scratch is nil or as long as v.
//
// Cost: a + n b + n g, and a + n b in unfoldRemainder.
func (s *Schedule) foldRemainder(t Team, v, scratch []byte) (virtual, size int) {
	size = powerBelow(t.Size)
	rest := t.Size - size
	switch {
	case t.Me >= 2*rest:
		return t.Me - rest, size
	case t.Me%2 == 0:
		s.send(t, t.Me+1, v)
		s.fence()
		return -1, size
	default:
		if scratch == nil {
			scratch = s.Temp(len(v))
		}
		s.recv(t, t.Me-1, scratch[:len(v)])
		s.fence()
		s.combine(v, scratch[:len(v)], true)
		return t.Me / 2, size
	}
}

// unfoldRemainder gives the result to the ranks that sat out.
func (s *Schedule) unfoldRemainder(t Team, v []byte) {
	rest := t.Size - powerBelow(t.Size)
	switch {
	case t.Me >= 2*rest:
	case t.Me%2 == 0:
		s.recv(t, t.Me+1, v)
		s.fence()
	default:
		s.send(t, t.Me-1, v)
		s.fence()
	}
}

// rankOf returns the rank that has the given number after foldRemainder.
func rankOf(t Team, virtual int) int {
	if rest := t.Size - powerBelow(t.Size); virtual >= rest {
		return virtual + rest
	}
	return 2*virtual + 1
}

// firstRankOf returns the first rank that is folded into the given number.
func firstRankOf(t Team, virtual int) int {
	return min(2*virtual, virtual+t.Size-powerBelow(t.Size))
}

package coll

// AllgatherDoubling is recursive doubling: in round k a rank exchanges all that
// it has with the rank whose number differs in bit k. It is for a power of two
// of ranks, and equal blocks one behind the other.
//
// Why: the fewest rounds, and every message is right where it belongs.
// Cost: log2 p a + (p-1)/p n b, with n bytes in all.
func AllgatherDoubling(s *Schedule, t Team, mine, all []byte) {
	each := len(mine)
	s.Copy(all[t.Me*each:], mine)
	join := func(from, n int) []byte { return all[from*each : (from+n)*each] }
	for d := 1; d < t.Size; d *= 2 {
		have := t.Me &^ (d - 1)
		s.swap(t, t.Me^d, join(have, d), t.Me^d, join(have^d, d))
	}
}

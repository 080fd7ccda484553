package coll

// ScanDoubling is recursive doubling: in round k ranks whose numbers differ in
// bit k exchange the reduction of the 2^k ranks that they have come to, and the
// upper one reduces it to its own result.
//
// Why: the fewest rounds. It keeps the order of ranks.
// Cost: ceil(log2 p) (a + n b + 2 n g).
func ScanDoubling(s *Schedule, t Team, in, v []byte, exclusive bool) {
	part, other := s.Temp(len(in)), s.Temp(len(in))
	s.Copy(part, in)
	first := exclusive // nothing of lower ranks is in v yet
	if !exclusive {
		s.Copy(v, in)
	}
	for d := 1; d < t.Size; d *= 2 {
		peer := t.Me ^ d
		if peer >= t.Size {
			continue
		}
		s.swap(t, peer, part, peer, other)
		if peer < t.Me {
			if first {
				s.Copy(v, other)
				first = false
			} else {
				s.combine(v, other, true)
			}
		}
		s.combine(part, other, peer < t.Me)
	}
}

package coll

// ScanChain passes the result along the ranks in segments: each adds its own
// and passes it on while the next segment comes.
//
// Why: for long vectors: every rank sends n bytes once and reduces them once.
// It keeps the order of ranks.
// Cost: (p - 2 + k) (a + n/k (b + g)) with k segments.
func ScanChain(s *Schedule, t Team, v []byte, exclusive bool) {
	k := min(max(1, len(v)/chainSegment), chainSegments)
	cut := func(b []byte, i int) []byte { return s.cut(b, k, i, i+1) }
	sum := v // of the ranks up to this one
	if exclusive && t.Me > 0 {
		sum = s.Temp(len(v))
		s.Copy(sum, v)
	}
	other := s.Temp(len(v))
	for i := range k + 1 {
		if t.Me > 0 && i < k {
			s.recv(t, t.Me-1, cut(other, i))
		}
		if t.Me < t.Size-1 && i > 0 {
			s.send(t, t.Me+1, cut(sum, i-1))
		}
		s.fence()
		if t.Me == 0 || i == k {
			continue
		}
		if exclusive {
			s.Copy(cut(v, i), cut(other, i))
		}
		s.combine(cut(sum, i), cut(other, i), true)
	}
}

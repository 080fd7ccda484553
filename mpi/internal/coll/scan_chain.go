package coll

// ScanChain passes the result along the ranks in segments: each adds its own
// and passes it on while the next segment comes.
//
// Why: every rank sends n bytes once and reduces them once; of few ranks the first
// ones have their result before rounds would be over. It keeps the order of ranks.
// Cost: (p - 2 + k) (a + n/k (b + g)) with k segments.
func ScanChain(s *Schedule, t Team, in, v []byte, exclusive bool) {
	if len(in) == 0 {
		return
	}
	k := segments(len(in))
	switch {
	case t.Size == 2 && exclusive: // nothing is passed on or reduced
		k = 1
	case t.Size == 2:
		k = segmentsOf(len(in), reducedLeast)
	}
	cut := func(b []byte, i int) []byte { return s.cut(b, k, i, i+1) }
	first, last := t.Me == 0, t.Me == t.Size-1
	other, own, sum := v, in, v // sum becomes other op own
	switch {
	case first:
		sum = in
	case exclusive && !last && s.commutes && &in[0] != &v[0]:
		// What comes is copied to v, which only this core has, and not to what the next member's core reads: to
		// take the lines of that back takes three times as long.
		other = s.Temp(len(in))
		sum = other
	case exclusive && !last:
		sum = s.Temp(len(in))
		s.Copy(sum, in)
		own = sum
	case exclusive:
	case !s.commutes || &in[0] == &v[0]:
		other, own = s.Temp(len(in)), v
		s.Copy(v, in)
	}
	for i := range k {
		if !first {
			s.recv(t, t.Me-1, cut(other, i))
		}
	}
	for i := range k {
		if !first {
			s.await(i + 1)
			switch {
			case exclusive && last:
			case exclusive && &other[0] == &sum[0]:
				copyCombine(s, cut(v, i), cut(sum, i), cut(own, i))
			case &own[0] == &sum[0]:
				s.combine(cut(sum, i), cut(other, i), true)
			default: // of an operation that commutes
				s.combine(cut(sum, i), cut(own, i), true)
			}
		}
		if !last {
			s.send(t, t.Me+1, cut(sum, i))
		}
	}
	if first && !exclusive {
		s.Copy(v, in)
	}
	s.fence()
}

// copyCombine copies sum to v and sets sum to sum op own, which commutes: a part at a time, which stays in the first cache.
func copyCombine(s *Schedule, v, sum, own []byte) {
	k := max(1, len(v)/copyCombineMost)
	for i := range k {
		part := s.cut(sum, k, i, i+1)
		s.Copy(s.cut(v, k, i, i+1), part)
		s.combine(part, s.cut(own, k, i, i+1), false)
	}
}

const copyCombineMost = 16 << 10

package coll

// AllreduceLinear cuts the vector into a part for each rank. Every rank gets its
// part from all others, reduces it and gives the result to all of them, segment by
// segment: while one is reduced the next ones come, and results go.
//
// Why: for long vectors of few ranks: the fewest bytes, and no rounds to wait for.
// It keeps the order of the ranks.
// Cost: 2 a + 2 (p-1)/p n b + (p-1)/p n g.
func AllreduceLinear(s *Schedule, t Team, in, v []byte) {
	if len(v) > 0 && &in[0] == &v[0] {
		// A result comes to where the part lies that was given for it, and
		// may have to be sent once more.
		in = s.Temp(len(v))
		s.Copy(in, v)
	}
	r := s.reduceParts(t, in, v, t.Size)
	for i := 1; i < t.Size; i++ {
		down := t.off(t.Me - i)
		for k := range r.k {
			s.recv(t, down, r.segment(s, v, down, k))
		}
	}
	for k := range r.k {
		r.reduce(s, k)
		s.sendAll(t, r.segment(s, v, t.Me, k))
	}
	s.fence()
}

// parts is a vector that is cut into parts, which are reduced by a rank each.
type parts struct {
	t     Team
	n, k  int // parts, and segments of each
	in, v []byte
	other [][]byte // my part as others have it, in the order in which it is reduced
	fresh bool     // other[0] is where the result goes
}

// segment returns segment k of part i of a vector.
func (r *parts) segment(s *Schedule, v []byte, i, k int) []byte {
	return s.cut(s.cut(v, r.n, i, i+1), r.k, k, k+1)
}

// reduceParts begins to give the first n members their part of in. What follows
// in this round is messages, and reduce for one segment after the other, which
// leaves the result in v. in is not changed; it is v, or apart from it.
func (s *Schedule) reduceParts(t Team, in, v []byte, n int) parts {
	r := parts{t: t, n: n, k: segmentsOf(len(v)/n, reducedLeast), in: in, v: v}
	if t.Me < n {
		mine := s.cut(v, n, t.Me, t.Me+1)
		// The first operand may come to where the result goes, so that none is
		// copied: it is in op inout, and mine comes first or may come first.
		r.fresh = t.Size > 1 && len(v) > 0 && &in[0] != &v[0] && (s.commutes || t.Me == 0)
		r.other = s.Blocks(t.Size - 1)
		for i := range r.other {
			if r.other[i] = mine; i > 0 || !r.fresh {
				r.other[i] = s.Temp(len(mine))
			}
		}
		for k := range r.k {
			for i, b := range r.other {
				s.recv(t, r.peer(i), s.cut(b, r.k, k, k+1))
			}
		}
	}
	for k := range r.k {
		for i := 1; i < t.Size; i++ {
			if up := t.off(t.Me + i); up < n {
				s.send(t, up, r.segment(s, in, up, k))
			}
		}
	}
	return r
}

// peer returns the member that gives other[i]: the members below this one come first,
// downwards, then those above, upwards.
func (r *parts) peer(i int) int {
	if i < r.t.Me {
		return r.t.Me - 1 - i
	}
	return i + 1
}

// reduce reduces segment k of this member's part.
func (r *parts) reduce(s *Schedule, k int) {
	own, result := r.segment(s, r.in, r.t.Me, k), r.segment(s, r.v, r.t.Me, k)
	if !r.fresh {
		s.Copy(result, own)
	}
	for i, b := range r.other {
		s.await(k*len(r.other) + i + 1)
		if i == 0 && r.fresh {
			s.combine(result, own, true)
		} else {
			s.combine(result, s.cut(b, r.k, k, k+1), r.peer(i) < r.t.Me)
		}
	}
}

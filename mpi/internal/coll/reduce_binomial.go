package coll

// ReduceBinomial reduces up a binomial tree: every rank reduces what comes from
// those below it to its own vector and passes the result on.
//
// Why: the fewest rounds, for short vectors. Operations that do not commute
// are reduced to member 0, whose tree has the ranks in order, and sent on.
// Cost: ceil(log2 p) (a + n b + n g).
func ReduceBinomial(s *Schedule, t Team, in, out []byte, root int) {
	top := topFor(s, root)
	me := t.from(top)
	acc := in
	if me == 0 || me%2 == 0 && me+1 < t.Size {
		acc = out
		if t.Me != root {
			acc = s.Temp(len(in))
		}
	}
	// While one vector is reduced the next one is on its way.
	var other [2][]byte
	span := below(me, t.Size)
	var ready []byte
	d := 1
	if s.commutes && d < span && me+d < t.Size && !overlap(acc, in) { // the first one is received where the result will be
		s.recv(t, t.off(me+d+top), acc)
		s.fence()
		ready = in
		d *= 2
	} else if me == 0 || d < span && me+d < t.Size {
		s.Copy(acc, in)
	}
	for ; d < span && me+d < t.Size; d *= 2 {
		other[0], other[1] = other[1], other[0]
		if other[0] == nil {
			other[0] = s.Temp(len(in))
		}
		s.recv(t, t.off(me+d+top), other[0])
		s.combine(acc, ready, false)
		s.fence()
		ready = other[0]
	}
	s.combine(acc, ready, false)
	if me != 0 {
		s.send(t, t.off(me-span+top), acc)
	}
	if top != root {
		switch t.Me {
		case top:
			s.send(t, root, acc)
		case root:
			s.fence()
			s.recv(t, top, out)
		}
	}
	s.fence()
}

// topFor returns the member at the top of the tree: the root, or member 0, whose tree has the
// ranks in order, for operations that do not commute.
func topFor(s *Schedule, root int) int {
	if s.commutes {
		return root
	}
	return 0
}

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
	span := below(me, t.Size)
	children := 0 // child c is 2^c above
	for 1<<children < span && me+1<<children < t.Size {
		children++
	}
	from := s.Blocks(children)
	first := s.commutes && children > 0 && !overlap(acc, in) // it is received where the result will be
	for c := range from {
		if from[c] = acc; c > 0 || !first {
			from[c] = s.Temp(len(in))
		}
	}
	k := 1
	if len(in) <= reduceCut && !t.slotted() {
		k = max(len(in)/reduceSegment, 1)
	}
	cut := func(v []byte, i int) []byte {
		if k == 1 { // of a Barrier no element has a length
			return v
		}
		return s.cut(v, k, i, i+1)
	}
	for i := range k {
		for c, b := range from {
			s.recv(t, t.off(me+1<<c+top), cut(b, i))
		}
	}
	if !first && (me == 0 || children > 0) {
		s.Copy(acc, in)
	}
	for i := range k {
		sum := cut(acc, i)
		for c, b := range from {
			s.await(i*children + c + 1)
			other := cut(b, i)
			if c == 0 && first {
				other = cut(in, i)
			}
			s.combine(sum, other, false)
		}
		if me != 0 {
			s.send(t, t.off(me-span+top), sum)
		}
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

// Vectors up to reduceCut are cut into segments of reduceSegment between hosts, each of which goes without being asked for and is
// reduced while the next one comes: 128 KiB on two took 43 us whole, and 38. Of longer ones that takes longer than to ask: 1 MiB 225 and
// 265. Inside of a host 256 KiB took 14 and 21.
const (
	reduceSegment = 64 << 10
	reduceCut     = 256 << 10
)

// topFor returns the member at the top of the tree: the root, or member 0, whose tree has the
// ranks in order, for operations that do not commute.
func topFor(s *Schedule, root int) int {
	if s.commutes {
		return root
	}
	return 0
}

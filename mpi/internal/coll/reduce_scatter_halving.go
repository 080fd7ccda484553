package coll

// ReduceScatterHalving is recursive halving: ranks half the number apart
// exchange the parts that the other one's half needs, and so on within halves.
// It is for operations that commute.
//
// Why: the fewest rounds. When p is no power of two some ranks sit out, and
// their neighbour works for them.
// Cost: log2 p a + (p-1)/p n (b + g), and two messages more when p is no power
// of two.
func ReduceScatterHalving(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte) {
	v, other := s.Temp(len(in)), s.Temp(len(in))
	s.Copy(v, in)
	at := func(member int) (sum int) { // where the member's part begins
		for _, b := range blocks[:member] {
			sum += len(b)
		}
		return sum
	}
	me, size := s.foldRemainder(t, v, other)
	low := 0
	for d := size / 2; d > 0 && me >= 0; d /= 2 {
		begin, middle, end := at(firstRankOf(t, low)), at(firstRankOf(t, low+d)), at(firstRankOf(t, low+2*d))
		keep, give := v[begin:middle], v[middle:end]
		if me&d != 0 {
			keep, give = give, keep
			low += d
		}
		peer := rankOf(t, me^d)
		s.swap(t, peer, give, peer, other[:len(keep)])
		s.combine(keep, other[:len(keep)], true)
	}
	mine := v[at(t.Me) : at(t.Me)+len(blocks[t.Me])]
	switch rest := t.Size - size; {
	case t.Me >= 2*rest:
		s.Copy(out, mine)
	case me < 0:
		s.recv(t, t.Me+1, out)
		s.fence()
	default:
		s.send(t, t.Me-1, v[at(t.Me-1):at(t.Me)])
		s.Copy(out, mine)
		s.fence()
	}
}

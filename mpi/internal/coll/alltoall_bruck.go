package coll

// AlltoallBruck (Bruck et al. 1997): each block that has to go d ranks up makes
// one step for every bit of d, together with all others that have the bit.
//
// Why: the fewest messages, for short blocks.
// Cost: ceil(log2 p) a + n/2 log2 p b, with n bytes in all.
func AlltoallBruck(s *Schedule, t Team, out, in []byte) {
	p, each := t.Size, len(out)/t.Size
	block := func(b []byte, i int) []byte { return b[i*each : (i+1)*each] }
	all := s.Temp(len(out)) // block i goes i ranks up
	s.Copy(all, out[t.Me*each:])
	s.Copy(all[(p-t.Me)*each:], out[:t.Me*each])
	give, take := s.Temp(len(out)), s.Temp(len(out))
	for d := 1; d < p; d *= 2 {
		n := 0
		for i := d; i < p; i++ {
			if i&d != 0 {
				s.Copy(block(give, n), block(all, i))
				n++
			}
		}
		s.swap(t, t.off(t.Me+d), give[:n*each], t.off(t.Me-d), take[:n*each])
		n = 0
		for i := d; i < p; i++ {
			if i&d != 0 {
				s.Copy(block(all, i), block(take, n))
				n++
			}
		}
	}
	for i := range p {
		s.Copy(block(in, t.off(t.Me-i)), block(all, i))
	}
}

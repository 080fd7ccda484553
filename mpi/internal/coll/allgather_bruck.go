package coll

// AllgatherBruck (Bruck et al. 1997): in round k a rank sends the first 2^k
// blocks that it has, its own first, to the rank 2^k below, and gets those that
// follow from the one above.
//
// Why: the fewest rounds for any number of ranks; blocks are copied once more.
// Cost: ceil(log2 p) a + (p-1)/p n b, with n bytes in all.
func AllgatherBruck(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	p, total := t.Size, 0
	for _, b := range blocks {
		total += len(b)
	}
	all := s.Temp(total) // the blocks from my own on, all around
	s.Copy(all[:len(mine)], mine)
	length := func(n int) (sum int) { // of the first n of them
		for i := range n {
			sum += len(blocks[t.off(t.Me+i)])
		}
		return sum
	}
	// The blocks that another rank counts from its own on.
	lengthFrom := func(first, n int) (sum int) {
		for i := range n {
			sum += len(blocks[t.off(first+i)])
		}
		return sum
	}
	for d := 1; d < p; d *= 2 {
		n := min(d, p-d)
		from := t.off(t.Me + d)
		at := length(d)
		s.swap(t, t.off(t.Me-d), all[:length(n)], from, all[at:at+lengthFrom(from, n)])
	}
	at := 0
	for i := range p {
		b := blocks[t.off(t.Me+i)]
		s.Copy(b, all[at:at+len(b)])
		at += len(b)
	}
}

package coll

// AllgatherRing passes the blocks round a ring.
//
// Why: for long blocks of any length: bytes go to a neighbour only, and nothing
// is copied.
// Cost: (p - 1) a + (p-1)/p n b, with n bytes in all.
func AllgatherRing(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	s.Copy(blocks[t.Me], mine)
	right, left := t.off(t.Me+1), t.off(t.Me-1)
	for i := range t.Size - 1 {
		s.swap(t, right, blocks[t.off(t.Me-i)], left, blocks[t.off(t.off(t.Me-i)-1)])
	}
}

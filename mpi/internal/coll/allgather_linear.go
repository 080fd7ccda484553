package coll

// AllgatherLinear sends one's block to all others at once.
//
// Why: for few ranks: none waits for what a neighbour has not got yet.
// Cost: a + (p-1)/p n b, with n bytes in all.
func AllgatherLinear(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	for i := 1; i < t.Size; i++ {
		down := t.off(t.Me - i)
		s.recv(t, down, blocks[down])
	}
	s.sendAll(t, mine)
	s.Copy(blocks[t.Me], mine)
	s.fence()
}

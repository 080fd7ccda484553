package coll

// ScatterLinear lets the root send to all. blocks, which counts there
// only, are of any length, but member i receives just what is in blocks[i].
//
// Why: nothing is copied on the way, and ranks need not know what others get.
// Cost: (p - 1) a + n b, with n bytes in all.
func ScatterLinear(s *Schedule, t Team, blocks [][]byte, mine []byte, root int) {
	if t.Me != root {
		s.recv(t, root, mine)
		s.fence()
		return
	}
	for i, b := range blocks {
		if i != root {
			s.send(t, i, b)
		}
	}
	s.Copy(mine, blocks[root])
	s.fence()
}

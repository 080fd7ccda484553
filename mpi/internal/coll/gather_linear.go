package coll

// GatherLinear lets all send to the root. blocks, which counts there
// only, are of any length, but member i sends just what fits blocks[i].
//
// Why: nothing is copied on the way, and ranks need not know what others send.
// Cost: (p - 1) a + n b, with n bytes in all.
func GatherLinear(s *Schedule, t Team, mine []byte, blocks [][]byte, root int) {
	if t.Me != root {
		s.send(t, root, mine)
		s.fence()
		return
	}
	for i, b := range blocks {
		if i != root {
			s.recv(t, i, b)
		}
	}
	s.Copy(blocks[root], mine)
	s.fence()
}

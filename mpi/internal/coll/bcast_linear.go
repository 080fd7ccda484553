package coll

// BcastLinear lets the root send to all.
//
// Why: no member waits for another one than the root, where members take turns on processors.
// Cost: (p - 1) (a + n b).
func BcastLinear(s *Schedule, t Team, buf []byte, root int) {
	if t.Me != root {
		s.recv(t, root, buf)
		s.fence()
		return
	}
	for i := range t.Size {
		if i != root {
			s.send(t, i, buf)
		}
	}
	s.fence()
}

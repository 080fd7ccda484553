package coll

// linearWindow is how many ranks a rank exchanges blocks with at a time.
const linearWindow = 32

// AlltoallLinear begins all messages at once, those to the next rank first.
//
// Why: for blocks of middle length: latencies overlap.
// Cost: a + (p - 1) of the time of a short message + n b, with n bytes in all.
func AlltoallLinear(s *Schedule, t Team, out, in []Block) {
	s.shift(t, out, in, linearWindow, allLengths)
	s.fence()
}

package coll

// The chain moves segments of at least this many bytes, and at most that many
// segments: longer segments hide the latency of a message, more of them the
// length of the chain.
const (
	chainSegment  = 64 << 10
	chainSegments = 256
)

// BcastChain passes the message along all ranks in segments: while a rank
// receives one it sends on the one before.
//
// Why: for very long messages. Every rank sends n bytes once, and all of them
// at the same time.
// Cost: (p - 2 + k) (a + n/k b) with k segments.
func BcastChain(s *Schedule, t Team, buf []byte, root int) {
	me := t.from(root)
	k := min(max(1, len(buf)/chainSegment), chainSegments)
	next, prev := t.off(t.Me+1), t.off(t.Me-1)
	for i := range k + 1 {
		if me > 0 && i < k {
			s.recv(t, prev, buf[split(len(buf), k, i):split(len(buf), k, i+1)])
		}
		if me < t.Size-1 && i > 0 {
			s.send(t, next, buf[split(len(buf), k, i-1):split(len(buf), k, i)])
		}
		s.fence()
	}
}

package coll

// BcastScatterAllgather cuts the message into p parts, scatters them down a
// binomial tree and passes them round a ring (van de Geijn).
//
// Why: for large messages. Every rank sends about 2n bytes, where the root of
// a binomial tree sends n log2 p.
// Cost: (log2 p + p - 1) a + 2 (p-1)/p n b.
func BcastScatterAllgather(s *Schedule, t Team, buf []byte, root int) {
	p, me := t.Size, t.from(root)
	part := func(from, to int) []byte {
		return buf[split(len(buf), p, from):split(len(buf), p, min(to, p))]
	}

	// Scatter: a rank gets the parts of all ranks that hang below it.
	span := below(me, p)
	if me != 0 {
		s.recv(t, t.off(me-span+root), part(me, me+span))
		s.fence()
	}
	for span /= 2; span > 0; span /= 2 {
		if me+span < p {
			s.send(t, t.off(me+span+root), part(me+span, me+2*span))
		}
	}
	s.fence()

	// Allgather: each part goes once round the ring.
	right, left := t.off(t.Me+1), t.off(t.Me-1)
	for i := range p - 1 {
		out, in := t.off(me-i), t.off(t.off(me-i)-1)
		s.swap(t, right, part(out, out+1), left, part(in, in+1))
	}
}

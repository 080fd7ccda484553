package coll

// BcastScatterAllgather cuts the message into p parts, scatters them down a
// binomial tree and passes them round a ring (van de Geijn).
//
// Why: for large messages. Every rank sends about 2n bytes, where the root of
// a binomial tree sends n log2 p.
// Cost: (log2 p + p - 1) a + 2 (p-1)/p n b.
func BcastScatterAllgather(t Transport, buf []byte, root int) error {
	p := t.Size()
	me := (t.Rank() - root + p) % p
	part := func(from, to int) []byte {
		return buf[split(len(buf), p, from):split(len(buf), p, min(to, p))]
	}

	// Scatter: a rank gets the parts of all ranks that hang below it.
	span := 1
	for span < p && me&span == 0 {
		span *= 2
	}
	if me != 0 {
		if err := t.Recv(part(me, me+span), (me-span+root)%p); err != nil {
			return err
		}
	}
	for span /= 2; span > 0; span /= 2 {
		if me+span < p {
			if err := t.Send(part(me+span, me+2*span), (me+span+root)%p); err != nil {
				return err
			}
		}
	}

	// Allgather: each part goes once round the ring.
	right, left := (t.Rank()+1)%p, (t.Rank()-1+p)%p
	for i := range p - 1 {
		out, in := (me-i+p)%p, (me-i-1+p)%p
		if err := t.Sendrecv(part(out, out+1), right, part(in, in+1), left); err != nil {
			return err
		}
	}
	return nil
}

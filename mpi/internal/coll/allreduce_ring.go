package coll

import "github.com/xwarp/xwarp/internal/mem"

// AllreduceRing passes p parts round a ring twice: once each rank adds its own
// to the part that goes by, once the results go to everybody.
//
// Why: for very long vectors and any number of ranks. Like Rabenseifner's it
// moves the fewest bytes, but to one neighbour only, and when p is no power of
// two nobody sits out.
// Cost: 2 (p-1) a + 2 (p-1)/p n b + (p-1)/p n g.
func AllreduceRing[T mem.Scalar](t Transport, v []T, op func(in, inout []T)) error {
	p, me := t.Size(), t.Rank()
	part := func(i int) []T {
		i = (i + 2*p) % p
		return v[split(len(v), p, i):split(len(v), p, i+1)]
	}
	other := scratchFor[T](t, len(v)/p+1)
	right, left := (me+1)%p, (me-1+p)%p
	for i := range p - 1 {
		mine := part(me - i - 1)
		in := other[:len(mine)]
		if err := t.Sendrecv(mem.BytesOf(part(me-i)), right, mem.BytesOf(in), left); err != nil {
			return err
		}
		op(in, mine)
	}
	for i := range p - 1 {
		if err := t.Sendrecv(mem.BytesOf(part(me+1-i)), right, mem.BytesOf(part(me-i)), left); err != nil {
			return err
		}
	}
	return nil
}

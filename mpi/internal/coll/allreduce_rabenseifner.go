package coll

import "github.com/xwarp/xwarp/internal/mem"

// AllreduceRabenseifner is reduce-scatter by recursive halving, then allgather
// by recursive doubling (Rabenseifner 2004): in each round of the first half a
// rank exchanges one half of what it still works on with its peer, and reduces
// the other; the second half goes the same way back.
//
// Why: for longer vectors. Each rank sends and reduces 2n bytes where recursive
// doubling sends and reduces n log2 p.
// Cost: 2 log2 p a + 2 (p-1)/p n b + (p-1)/p n g, and two messages of n bytes
// more when p is no power of two.
func AllreduceRabenseifner[T mem.Scalar](t Transport, v []T, op func(in, inout []T)) error {
	other := scratchFor[T](t, len(v))
	me, size, err := fold(t, v, other, op)
	if err != nil {
		return err
	}
	if me >= 0 {
		if err := halve(t, me, size, v, other, op); err != nil {
			return err
		}
	}
	return unfold(t, v)
}

func halve[T mem.Scalar](t Transport, me, size int, v, other []T, op func(in, inout []T)) error {
	at := func(i int) int { return split(len(v), size, i) }
	low, high := 0, size // the parts that this rank works on
	for d := size / 2; d > 0; d /= 2 {
		peer, middle := rankOf(t, me^d), low+d
		keep, give := v[at(low):at(middle)], v[at(middle):at(high)]
		if me&d != 0 {
			keep, give = give, keep
			low = middle
		} else {
			high = middle
		}
		in := other[:len(keep)]
		if err := t.Sendrecv(mem.BytesOf(give), peer, mem.BytesOf(in), peer); err != nil {
			return err
		}
		op(in, keep)
	}
	for d := 1; d < size; d *= 2 {
		peer := rankOf(t, me^d)
		from, to := low+d, high+d // what the peer has
		if me&d != 0 {
			from, to = low-d, high-d
		}
		if err := t.Sendrecv(mem.BytesOf(v[at(low):at(high)]), peer, mem.BytesOf(v[at(from):at(to)]), peer); err != nil {
			return err
		}
		low, high = min(low, from), max(high, to)
	}
	return nil
}

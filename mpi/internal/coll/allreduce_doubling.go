package coll

import "github.com/xwarp/xwarp/internal/mem"

// AllreduceDoubling is recursive doubling: in round k each rank exchanges its
// whole vector with the rank whose number differs in bit k, and reduces.
//
// Why: the fewest rounds, for short vectors. It keeps the order of the ranks,
// so that it is right for operations that do not commute too.
// Cost: ceil(log2 p) (a + n b + n g), and two messages more when p is no power
// of two.
func AllreduceDoubling[T mem.Scalar](t Transport, v []T, op func(in, inout []T)) error {
	other := scratchFor[T](t, len(v))
	me, size, err := fold(t, v, other, op)
	if err != nil {
		return err
	}
	for d := 1; d < size && me >= 0; d *= 2 {
		peer := rankOf(t, me^d)
		if err := t.Sendrecv(mem.BytesOf(v), peer, mem.BytesOf(other), peer); err != nil {
			return err
		}
		if me&d != 0 { // the peer's ranks come first
			op(other, v)
		} else {
			op(v, other)
			copy(v, other)
		}
	}
	return unfold(t, v)
}

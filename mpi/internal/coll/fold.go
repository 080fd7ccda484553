package coll

import "github.com/xwarp/xwarp/internal/mem"

// fold makes the number of ranks a power of two: of the first 2r ranks, where
// r is what is too many, the even ones give their vector to their neighbour and
// sit out until unfold. It returns this rank's number among those that go on,
// or -1, and the number of those.
//
// Cost: a + n b + n g, and a + n b in unfold.
func fold[T mem.Scalar](t Transport, v, scratch []T, op func(in, inout []T)) (virtual, size int, err error) {
	me := t.Rank()
	size = powerBelow(t.Size())
	rest := t.Size() - size
	switch {
	case me >= 2*rest:
		return me - rest, size, nil
	case me%2 == 0:
		return -1, size, t.Send(mem.BytesOf(v), me+1)
	default:
		if err = t.Recv(mem.BytesOf(scratch[:len(v)]), me-1); err != nil {
			return -1, size, err
		}
		op(scratch[:len(v)], v)
		return me / 2, size, nil
	}
}

// unfold gives the result to the ranks that sat out.
func unfold[T mem.Scalar](t Transport, v []T) error {
	me := t.Rank()
	rest := t.Size() - powerBelow(t.Size())
	switch {
	case me >= 2*rest:
		return nil
	case me%2 == 0:
		return t.Recv(mem.BytesOf(v), me+1)
	default:
		return t.Send(mem.BytesOf(v), me-1)
	}
}

// rankOf returns the rank that has the given number after fold.
func rankOf(t Transport, virtual int) int {
	if rest := t.Size() - powerBelow(t.Size()); virtual >= rest {
		return virtual + rest
	}
	return 2*virtual + 1
}

// scratchFor returns n scalars of the transport's scratch memory.
func scratchFor[T mem.Scalar](t Transport, n int) []T {
	return mem.ScalarsOf[T](t.Scratch(n * sizeOf[T]()))
}

// sizeOf returns the size of T in bytes.
func sizeOf[T mem.Scalar]() int {
	var one [1]T
	return len(mem.BytesOf(one[:]))
}

package dtype

import "github.com/xwarp/xwarp/internal/base/mem"

// pairs enters the kernels of a pair of a value and an index, which lies at a
// displacement (MPI 4.1, section 6.9.4).
func pairs[V, I orderedType](t *[rules][machines]kernel, m machine, at int) {
	size, index := len(mem.BytesOf(make([]V, 1))), len(mem.BytesOf(make([]I, 1)))
	p := pairLayout{step: layouts[m].extent / size, indexStep: layouts[m].extent / index, indexAt: at / index}
	t[ruleMaxloc][m] = func(in, inout []byte, n int) {
		locate(p, scalars[V](in), scalars[I](in), scalars[V](inout), scalars[I](inout), n, true)
	}
	t[ruleMinloc][m] = func(in, inout []byte, n int) {
		locate(p, scalars[V](in), scalars[I](in), scalars[V](inout), scalars[I](inout), n, false)
	}
}

// pairLayout is where values and indices are, in units of themselves: pair i
// has its value at i*step and its index at i*indexStep + indexAt.
type pairLayout struct {
	step, indexStep, indexAt int
}

// scalars is the part of b that is whole scalars.
func scalars[T mem.Scalar](b []byte) []T {
	var one [1]T
	return mem.ScalarsOf[T](b[:len(b)-len(b)%len(mem.BytesOf(one[:]))])
}

// locate keeps the larger value (or the smaller one) with its index, and of
// equal values the smaller index. A NaN beats every number, so that the result
// does not depend on the order.
func locate[V, I orderedType](p pairLayout, values []V, indices []I, outValues []V, outIndices []I, n int, largest bool) {
	for i := range n {
		at, indexAt := i*p.step, i*p.indexStep+p.indexAt
		v, best := values[at], outValues[at]
		switch {
		case v == best, v != v && best != best:
			outIndices[indexAt] = min(outIndices[indexAt], indices[indexAt])
		case largest && v > best, !largest && v < best, v != v:
			outValues[at], outIndices[indexAt] = v, indices[indexAt]
		}
	}
}

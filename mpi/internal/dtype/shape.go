package dtype

import "math/bits"

// shape is what a type is, apart from how it was made. Constructors compute
// with shapes: repeat, move, join, mark.
type shape struct {
	size  int // packed bytes
	align int // the strictest alignment of all elements, 1 when there is none
	// trueLB and trueUB bound the bytes that there are; both are 0 when there
	// are none.
	trueLB, trueUB int
	// markLB and markUB are the bounds that the program has set (lb_marker and
	// ub_marker in MPI 4.1, section 5.1.6), if marked.
	markLB, markUB int
	marked         bool
	// huge reports that something does not fit into an int. The rest is
	// rubbish then.
	huge bool
	of   Kind // the predefined type that all elements are of, or Derived
	prog placed
	sig  *signature
}

// empty is the shape of no elements.
func empty() shape { return shape{align: 1, of: Derived} }

func (s *shape) isEmpty() bool { return s.size == 0 && !s.marked && !s.huge }

// lb and ub follow the formula of MPI 4.1, section 5.1: marks decide where
// there are any, and otherwise the extent is rounded up to the alignment, as a
// C compiler does with structures.
func (s *shape) lb() int {
	if s.marked {
		return s.markLB
	}
	return s.trueLB
}

func (s *shape) ub() int {
	if s.marked {
		return s.markUB
	}
	span := s.trueUB - s.trueLB
	return s.trueLB + (span+s.align-1)/s.align*s.align
}

func (s *shape) extent() int { return s.ub() - s.lb() }

// repeat is count copies, each step bytes behind the one before.
func (s shape) repeat(count, step int) shape {
	out := s.bounds(count, step)
	if out.size == 0 {
		return out
	}
	out.prog.nd = loop(s.prog.nd, count, step)
	out.sig = s.sig.repeat(count)
	return out
}

// bounds is repeat for callers that want sizes and bounds only: the program and
// the signature stay those of one copy.
func (s shape) bounds(count, step int) shape {
	if count == 0 || s.isEmpty() {
		return empty()
	}
	size, tooMuch := times(s.size, count)
	last, tooFar := times(step, count-1)
	if tooMuch || tooFar || s.huge {
		return shape{align: 1, of: Derived, huge: true}
	}
	s.size = size
	s.widen(min(last, 0), max(last, 0))
	return s
}

// widen moves the bounds apart.
func (s *shape) widen(lo, hi int) {
	if s.size > 0 {
		s.trueLB, s.trueUB = s.plus(s.trueLB, lo), s.plus(s.trueUB, hi)
	}
	if s.marked {
		s.markLB, s.markUB = s.plus(s.markLB, lo), s.plus(s.markUB, hi)
	}
}

// move is the same, off bytes further on.
func (s shape) move(off int) shape {
	if s.isEmpty() {
		return s
	}
	s.widen(off, off)
	s.prog.off = s.plus(s.prog.off, off)
	return s
}

// mark sets the bounds.
func (s shape) mark(lb, ub int) shape {
	s.marked, s.markLB, s.markUB = true, lb, ub
	s.plus(ub, -lb)
	return s
}

// join is all of parts, in this order.
func join(parts []shape) shape {
	out := empty()
	progs := make([]placed, 0, len(parts))
	sigs := make([]*signature, 0, len(parts))
	for i := range parts {
		out.cover(&parts[i])
		progs = append(progs, parts[i].prog)
		sigs = append(sigs, parts[i].sig)
	}
	if out.huge {
		return out
	}
	out.prog = sequence(progs)
	out.sig = concatenate(sigs)
	return out
}

// scatter is lens[i] copies side by side at each of the displacements, which
// count in units of bytes. With one length only it holds for all.
func (s shape) scatter(lens, displacements []int, unit int) shape {
	out := empty()
	extent, total := s.extent(), 0
	nodes := map[int]*node{}
	progs := make([]placed, 0, len(displacements))
	for i, d := range displacements {
		n := lens[min(i, len(lens)-1)]
		at, tooFar := times(d, unit)
		part := s.bounds(n, extent).move(at)
		part.huge = part.huge || tooFar
		out.cover(&part)
		if out.huge {
			return out
		}
		if part.size == 0 {
			continue
		}
		if nodes[n] == nil {
			nodes[n] = loop(s.prog.nd, n, extent)
		}
		progs = append(progs, placed{part.prog.off, nodes[n]})
		total += n
	}
	out.prog = sequence(progs)
	out.sig = s.sig.repeat(total)
	return out
}

// cover adds the size and the bounds of p.
func (s *shape) cover(p *shape) {
	if p.isEmpty() {
		return
	}
	if p.size > 0 {
		if s.size == 0 {
			s.trueLB, s.trueUB, s.of = p.trueLB, p.trueUB, p.of
		}
		s.trueLB, s.trueUB = min(s.trueLB, p.trueLB), max(s.trueUB, p.trueUB)
		if s.of != p.of {
			s.of = Derived
		}
	}
	if p.marked {
		if !s.marked {
			s.markLB, s.markUB = p.markLB, p.markUB
		}
		s.marked = true
		s.markLB, s.markUB = min(s.markLB, p.markLB), max(s.markUB, p.markUB)
	}
	s.size = s.plus(s.size, p.size)
	s.align = max(s.align, p.align)
	s.huge = s.huge || p.huge
}

// limit is the size that no size, bound or displacement reaches, so that sums
// and differences of two always fit. The largest count of a count that an int has
// is below it: (1<<31 - 1) * (1<<31 - 1).
const limit = 1 << 62

// plus adds, and notes when the sum is too large.
func (s *shape) plus(a, b int) int {
	c := a + b
	if a >= limit || a <= -limit || b >= limit || b <= -limit || c >= limit || c <= -limit {
		s.huge = true
		return 0
	}
	return c
}

// times multiplies, and reports whether the product is too large.
func times(a, b int) (product int, huge bool) {
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if hi != 0 || lo >= limit {
		return 0, true
	}
	return a * b, false
}

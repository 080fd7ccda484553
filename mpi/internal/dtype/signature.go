package dtype

import "sort"

// A signature is the sequence of the elements of a type, without where they lie
// (the type signature of MPI 4.1, section 5.1): a tree of runs of one kind,
// repetitions and lists. No signature is that of no elements.
type signature struct {
	kind   Kind         // a run: of what
	count  int          // a run or a repetition: how often
	child  *signature   // a repetition: of what
	parts  []*signature // a list
	starts []int        // a list: the position of each part in the packed bytes
	firsts []int        // a list: how many elements are before each part
	size   int          // packed bytes
	elems  int
	// external is the size in external32.
	external int
}

func run(k Kind, count int) *signature {
	info := &kinds[k]
	return &signature{kind: k, count: count, size: count * info.size, elems: count, external: count * info.external}
}

func (s *signature) isRun() bool { return s.child == nil && s.parts == nil }

func (s *signature) repeat(count int) *signature {
	switch {
	case s == nil || count == 0:
		return nil
	case count == 1:
		return s
	case s.isRun():
		return run(s.kind, s.count*count)
	}
	child := s
	if s.child != nil {
		child, count = s.child, s.count*count
	}
	return &signature{count: count, child: child, size: count * child.size, elems: count * child.elems, external: count * child.external}
}

func concatenate(parts []*signature) *signature {
	var out []*signature
	for _, p := range parts {
		if n := len(out); n > 0 {
			if both := out[n-1].join(p); both != nil {
				out[n-1] = both
				continue
			}
		}
		if p != nil {
			out = append(out, p)
		}
	}
	switch len(out) {
	case 0:
		return nil
	case 1:
		return out[0]
	}
	s := &signature{parts: out}
	for _, p := range out {
		s.starts = append(s.starts, s.size)
		s.firsts = append(s.firsts, s.elems)
		s.size += p.size
		s.elems += p.elems
		s.external += p.external
	}
	return s
}

// join returns s and p as one run or repetition, nil if that is not possible.
func (s *signature) join(p *signature) *signature {
	if p == nil {
		return s
	}
	if s.isRun() && p.isRun() && s.kind == p.kind {
		return run(s.kind, s.count+p.count)
	}
	if s.isRun() || p.isRun() {
		return nil
	}
	a, m := s.unit()
	b, n := p.unit()
	if a == b {
		return a.repeat(m + n)
	}
	return nil
}

// unit returns what is repeated, and how often.
func (s *signature) unit() (*signature, int) {
	if s.child != nil {
		return s.child, s.count
	}
	return s, 1
}

// elements returns how many elements the first n packed bytes hold, and whether
// that is a whole number. n is at most the size.
func (s *signature) elements(n int) (elems int, whole bool) {
	for n > 0 {
		switch {
		case s.isRun():
			size := kinds[s.kind].size
			return elems + n/size, n%size == 0
		case s.child != nil:
			elems += n / s.child.size * s.child.elems
			n %= s.child.size
			s = s.child
		default:
			i := sort.Search(len(s.starts), func(i int) bool { return s.starts[i] > n }) - 1
			elems += s.firsts[i]
			n -= s.starts[i]
			s = s.parts[i]
		}
	}
	return elems, true
}

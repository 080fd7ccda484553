package dtype

import (
	"math/bits"
	"sort"
)

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
	hash   hash
	// external is the size in external32.
	external int
}

func run(k Kind, count int) *signature {
	h := hash{sum: uint64(k) + 1, shift: hashBase}
	info := &kinds[k]
	return &signature{kind: k, count: count, size: count * info.size, elems: count, hash: h.repeat(count), external: count * info.external}
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
	return &signature{count: count, child: child, size: count * child.size, elems: count * child.elems, hash: child.hash.repeat(count), external: count * child.external}
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
	s := &signature{parts: out, hash: hash{shift: 1}}
	for _, p := range out {
		s.starts = append(s.starts, s.size)
		s.firsts = append(s.firsts, s.elems)
		s.size += p.size
		s.elems += p.elems
		s.external += p.external
		s.hash = s.hash.then(p.hash)
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

// hash is the polynomial hash of a sequence of kinds (Gropp, Runtime checking
// of datatype signatures in MPI, 2000): that of a concatenation follows from
// those of its parts, so that it does not matter how the sequence was built.
type hash struct {
	sum   uint64 // value of the polynomial
	shift uint64 // base to the power of the length
}

const (
	hashPrime = 1<<61 - 1
	hashBase  = 0x1234_5678_9abc_def1 % hashPrime
)

func (h hash) then(g hash) hash {
	sum := mulMod(h.sum, g.shift) + g.sum
	if sum >= hashPrime {
		sum -= hashPrime
	}
	return hash{sum: sum, shift: mulMod(h.shift, g.shift)}
}

func (h hash) repeat(n int) hash {
	out := hash{shift: 1}
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			out = out.then(h)
		}
		h = h.then(h)
	}
	return out
}

func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, rest := bits.Div64(hi, lo, hashPrime)
	return rest
}

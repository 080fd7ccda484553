package dtype

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is a type as the standard defines it: the list of all its elements and
// markers, one by one.
type model struct {
	elems    []modelElem
	lbs, ubs []int // lb_marker, ub_marker
}

type modelElem struct {
	kind Kind
	at   int
}

func modelOf(t *Type) model {
	k := t.Kind()
	if kinds[k].group != groupPair {
		return model{elems: []modelElem{{k, 0}}}
	}
	return model{elems: []modelElem{{kinds[k].first, 0}, {kinds[k].second, secondAt(k)}}}
}

func (m *model) add(part model, at int) {
	for _, e := range part.elems {
		m.elems = append(m.elems, modelElem{e.kind, e.at + at})
	}
	for i := range part.lbs {
		m.lbs = append(m.lbs, part.lbs[i]+at)
		m.ubs = append(m.ubs, part.ubs[i]+at)
	}
}

// trueBounds and bounds follow MPI 4.1, sections 5.1 and 5.1.8.
func (m *model) trueBounds() (lb, ub int) {
	for i, e := range m.elems {
		end := e.at + kinds[e.kind].size
		if i == 0 {
			lb, ub = e.at, end
		}
		lb, ub = min(lb, e.at), max(ub, end)
	}
	return lb, ub
}

func (m *model) bounds() (lb, ub int) {
	if len(m.lbs) > 0 {
		lb, ub = m.lbs[0], m.ubs[0]
		for i := range m.lbs {
			lb, ub = min(lb, m.lbs[i]), max(ub, m.ubs[i])
		}
		return lb, ub
	}
	lb, ub = m.trueBounds()
	align := 1
	for _, e := range m.elems {
		align = max(align, kinds[e.kind].align)
	}
	for (ub-lb)%align != 0 {
		ub++
	}
	return lb, ub
}

func (m *model) extent() int {
	lb, ub := m.bounds()
	return ub - lb
}

func (m *model) size() int {
	n := 0
	for _, e := range m.elems {
		n += kinds[e.kind].size
	}
	return n
}

// bytes lists the displacement of every packed byte of count elements.
func (m *model) bytes(count int) []int {
	var out []int
	for i := range count {
		for _, e := range m.elems {
			for b := range kinds[e.kind].size {
				out = append(out, i*m.extent()+e.at+b)
			}
		}
	}
	return out
}

// elements counts how many elements the first n packed bytes of several m hold.
func (m *model) elements(n int) (elems int, whole bool) {
	for i := 0; n > 0; i++ {
		size := kinds[m.elems[i%len(m.elems)].kind].size
		if size > n {
			return elems, false
		}
		n -= size
		elems++
	}
	return elems, true
}

func mRepeat(count, step int, old model) (m model) {
	for i := range count {
		m.add(old, i*step)
	}
	return m
}

func mBlocks(lens, displs []int, unit int, old model) (m model) {
	for i, d := range displs {
		m.add(mRepeat(lens[min(i, len(lens)-1)], old.extent(), old), d*unit)
	}
	return m
}

func mResized(old model, lb, extent int) model {
	return model{elems: old.elems, lbs: []int{lb}, ubs: []int{lb + extent}}
}

func mSubarray(sizes, subsizes, starts []int, order Order, old model) model {
	for k := range sizes {
		i := order.dimension(k, len(sizes))
		extent := old.extent()
		var m model
		m.add(mRepeat(subsizes[i], extent, old), starts[i]*extent)
		old = mResized(m, 0, sizes[i]*extent)
	}
	return old
}

// mDarray asks for every index of the array whose it is.
func mDarray(rank int, gsizes []int, distribs []Distribution, dargs, psizes []int, order Order, old model) model {
	coords := make([]int, len(gsizes))
	for i := len(gsizes) - 1; i >= 0; i-- {
		coords[i] = rank % psizes[i]
		rank /= psizes[i]
	}
	for k := range gsizes {
		i := order.dimension(k, len(gsizes))
		var m model
		for g := range gsizes[i] {
			b := dargs[i]
			if b == DefaultBlock {
				b = 1
				if distribs[i] == DistributeBlock {
					b = (gsizes[i] + psizes[i] - 1) / psizes[i]
				}
			}
			if distribs[i] == DistributeNone || g/b%psizes[i] == coords[i] {
				m.add(old, g*old.extent())
			}
		}
		old = mResized(m, 0, gsizes[i]*old.extent())
	}
	return old
}

// generator makes random types together with their models.
type generator struct {
	*rand.Rand
	t *testing.T
}

func (g *generator) must(t *Type, err error) *Type {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
	return t
}

func (g *generator) ints(n, lo, hi int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = lo + g.IntN(hi-lo)
	}
	return out
}

func (g *generator) basic() (*Type, model) {
	all := predefinedTypes
	t := all[g.IntN(len(all))]
	return t, modelOf(t)
}

// modelLimit keeps the models small.
const modelLimit = 3000

func (g *generator) nested(depth int) (*Type, model) {
	if depth == 0 {
		return g.basic()
	}
	for {
		if t, m := g.derive(depth); len(m.elems) <= modelLimit {
			return t, m
		}
	}
}

func (g *generator) derive(depth int) (*Type, model) {
	old, m := g.nested(depth - 1)
	ex := m.extent()
	switch g.IntN(11) {
	case 0:
		n := g.IntN(4)
		return g.must(Contiguous(n, old)), mRepeat(n, ex, m)
	case 1:
		n, l, s := g.IntN(4), g.IntN(4), g.IntN(9)-3
		return g.must(Vector(n, l, s, old)), mRepeat(n, s*ex, mRepeat(l, ex, m))
	case 2:
		n, l, s := g.IntN(4), g.IntN(4), g.IntN(200)-60
		return g.must(Hvector(n, l, s, old)), mRepeat(n, s, mRepeat(l, ex, m))
	case 3:
		n := g.IntN(5)
		l, d := g.ints(n, 0, 4), g.ints(n, -3, 8)
		if g.IntN(2) == 0 {
			return g.must(Indexed(l, d, old)), mBlocks(l, d, ex, m)
		}
		return g.must(Hindexed(l, d, old)), mBlocks(l, d, 1, m)
	case 4:
		n, l := g.IntN(5), g.IntN(4)
		d := g.ints(n, -3, 8)
		if g.IntN(2) == 0 {
			return g.must(IndexedBlock(l, d, old)), mBlocks([]int{l}, d, ex, m)
		}
		return g.must(HindexedBlock(l, d, old)), mBlocks([]int{l}, d, 1, m)
	case 5, 6:
		return g.structure(depth)
	case 7:
		return g.subarray(old, m)
	case 8:
		return g.darray(old, m)
	case 9:
		lb, ub := g.IntN(40)-20, g.IntN(200)-20
		return g.must(Resized(old, lb, ub)), mResized(m, lb, ub)
	}
	return g.must(Dup(old)), m
}

func (g *generator) structure(depth int) (*Type, model) {
	n := g.IntN(5)
	lens := g.ints(n, 0, 3)
	var displs []int
	var types []*Type
	var m model
	at := 0
	for i := range n {
		t, part := g.nested(g.IntN(depth))
		if g.IntN(2) == 0 { // side by side
			at += len(part.elems)
		} else {
			at = g.IntN(300) - 50
		}
		displs, types = append(displs, at), append(types, t)
		m.add(mRepeat(lens[i], part.extent(), part), at)
		_, ub := part.trueBounds()
		at += ub
	}
	return g.must(Struct(lens, displs, types)), m
}

func (g *generator) subarray(old *Type, m model) (*Type, model) {
	n := 1 + g.IntN(3)
	sizes := g.ints(n, 1, 6)
	subsizes, starts := make([]int, n), make([]int, n)
	for i, size := range sizes {
		subsizes[i] = 1 + g.IntN(size)
		starts[i] = g.IntN(size - subsizes[i] + 1)
	}
	order := Order(g.IntN(2))
	return g.must(Subarray(sizes, subsizes, starts, order, old)), mSubarray(sizes, subsizes, starts, order, m)
}

func (g *generator) darray(old *Type, m model) (*Type, model) {
	n := 1 + g.IntN(3)
	gsizes, psizes, dargs := g.ints(n, 1, 12), g.ints(n, 1, 4), make([]int, n)
	distribs := make([]Distribution, n)
	size := 1
	for i := range n {
		distribs[i] = Distribution(g.IntN(3))
		dargs[i] = DefaultBlock
		switch {
		case distribs[i] == DistributeNone:
			psizes[i] = 1
		case g.IntN(2) == 0:
		case distribs[i] == DistributeBlock:
			dargs[i] = (gsizes[i]+psizes[i]-1)/psizes[i] + g.IntN(3)
		default:
			dargs[i] = 1 + g.IntN(5)
		}
		size *= psizes[i]
	}
	rank, order := g.IntN(size), Order(g.IntN(2))
	return g.must(Darray(size, rank, gsizes, distribs, dargs, psizes, order, old)),
		mDarray(rank, gsizes, distribs, dargs, psizes, order, m)
}

// TestModel_randomTypes compares types of all constructors, nested at random,
// with their models.
func TestModel_randomTypes(t *testing.T) {
	rounds := 4000
	if testing.Short() || slow {
		rounds = 500
	}
	for seed := range rounds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			g := &generator{rand.New(rand.NewPCG(uint64(seed), 7)), t}
			typ, m := g.nested(g.IntN(5))
			checkModel(g, typ, &m)
		})
	}
}

// checkModel compares all that is known about a type.
func checkModel(g *generator, typ *Type, m *model) {
	t := g.t
	t.Helper()
	lb, ub := m.bounds()
	if l, e := typ.Extent(); l != lb || e != ub-lb {
		t.Fatalf("lb %d, extent %d, want %d and %d", l, e, lb, ub-lb)
	}
	lb, ub = m.trueBounds()
	if l, e := typ.TrueExtent(); l != lb || e != ub-lb {
		t.Fatalf("true lb %d, true extent %d, want %d and %d", l, e, lb, ub-lb)
	}
	if typ.Size() != m.size() {
		t.Fatalf("size %d, want %d", typ.Size(), m.size())
	}
	count := g.IntN(4)
	var want []Kind
	for range count {
		for _, e := range m.elems {
			want = append(want, e.kind)
		}
	}
	if got := kindsOf(typ, count); !slices.Equal(got, want) {
		t.Fatalf("elements of %v, want %v", got, want)
	}
	if typ.Size() > 0 {
		for range 20 {
			n := g.IntN(3 * typ.Size())
			got, gotWhole := typ.GetElements(n)
			want, whole := m.elements(n)
			if got != want || gotWhole != whole {
				t.Fatalf("%d bytes are %d elements (%v), want %d (%v)", n, got, gotWhole, want, whole)
			}
		}
	}
	checkCursor(g, typ, m, count)
}

package dtype

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// must is for types in tables that cannot fail.
func must(t *Type, err error) *Type {
	if err != nil {
		panic(err)
	}
	return t
}

// TestConstruct_standard has the examples of MPI 4.1, section 5.1, and what
// MPICH and Open MPI agree on besides.
func TestConstruct_standard(t *testing.T) {
	type1 := must(Struct([]int{1, 1}, []int{0, 8}, []*Type{Double, Char})) // {(double, 0), (char, 8)}
	for _, c := range []struct {
		name                       string
		typ                        *Type
		size, lb, extent           int
		trueLB, trueExtent, pieces int // pieces of memory of two elements
	}{
		{"example 5.1", type1, 9, 0, 16, 0, 9, 2},
		{"example 5.2 contiguous", must(Contiguous(3, type1)), 27, 0, 48, 0, 41, 6},
		{"example 5.3 vector", must(Vector(2, 3, 4, type1)), 54, 0, 112, 0, 105, 12},
		{"example 5.4 vector of negative stride", must(Vector(3, 1, -2, type1)), 27, -64, 80, -64, 73, 6},
		{"example 5.5 indexed", must(Indexed([]int{3, 1}, []int{4, 0}, type1)), 36, 0, 112, 0, 105, 8},
		{"example 5.6 struct", must(Struct([]int{2, 1, 3}, []int{0, 16, 26}, []*Type{Float, type1, Char})), 20, 0, 32, 0, 29, 6},
		{"vector of one block", must(Vector(1, 5, 99, Int)), 20, 0, 20, 0, 20, 1},
		{"vector that is dense", must(Vector(4, 2, 2, Int)), 32, 0, 32, 0, 32, 1},
		{"vector whose copies join", must(Vector(4, 1, 2, Int)), 16, 0, 28, 0, 28, 7},
		{"nothing", must(Contiguous(0, Int)), 0, 0, 0, 0, 0, 0},
		{"no blocks", must(Vector(3, 0, 5, Int)), 0, 0, 0, 0, 0, 0},
		{"resized", must(Resized(Int, -4, 16)), 4, -4, 16, 0, 4, 2},
		{"resized twice", must(Resized(must(Resized(Int, -4, 16)), 0, 4)), 4, 0, 4, 0, 4, 1},
		{"markers decide", must(Struct([]int{1, 1}, []int{0, 100}, []*Type{must(Resized(Int, 0, 16)), Int})), 8, 0, 16, 0, 104, 4},
		{"marker of nothing", must(Resized(must(Contiguous(0, Int)), 3, 7)), 0, 3, 7, 0, 0, 0},
		{"column", must(Resized(must(Vector(4, 1, 5, Double)), 0, 8)), 32, 0, 8, 0, 128, 8},
		{"double int", DoubleInt, 12, 0, 16, 0, 12, 2},
		{"short int", ShortInt, 6, 0, 8, 0, 8, 3},
		{"long double int", LongDoubleInt, 20, 0, 32, 0, 20, 2},
		{"whole subarray", must(Subarray([]int{3, 4}, []int{3, 4}, []int{0, 0}, OrderC, Int)), 48, 0, 48, 0, 48, 1},
		{"rows of an array", must(Subarray([]int{3, 4}, []int{2, 4}, []int{1, 0}, OrderC, Int)), 32, 0, 48, 16, 32, 2},
		{"inside of an array", must(Subarray([]int{3, 4}, []int{2, 2}, []int{1, 1}, OrderC, Int)), 16, 0, 48, 20, 24, 4},
		{"inside of a Fortran array", must(Subarray([]int{4, 3}, []int{2, 2}, []int{1, 1}, OrderFortran, Int)), 16, 0, 48, 20, 24, 4},
		{"block of an array", must(Darray(4, 3, []int{10}, []Distribution{DistributeBlock}, []int{DefaultBlock}, []int{4}, OrderC, Int)), 4, 0, 40, 36, 4, 2},
		{"no block left", must(Darray(6, 5, []int{10}, []Distribution{DistributeBlock}, []int{DefaultBlock}, []int{6}, OrderC, Int)), 0, 0, 40, 0, 0, 0},
		{"cyclic", must(Darray(3, 1, []int{10}, []Distribution{DistributeCyclic}, []int{2}, []int{3}, OrderC, Int)), 16, 0, 40, 8, 32, 4},
	} {
		lb, extent := c.typ.Extent()
		trueLB, trueExtent := c.typ.TrueExtent()
		if c.typ.Size() != c.size || lb != c.lb || extent != c.extent || trueLB != c.trueLB || trueExtent != c.trueExtent {
			t.Errorf("%s: size %d, lb %d, extent %d, true lb %d, true extent %d, want %d, %d, %d, %d, %d",
				c.name, c.typ.Size(), lb, extent, trueLB, trueExtent, c.size, c.lb, c.extent, c.trueLB, c.trueExtent)
		}
		lo, hi, _ := c.typ.Span(2)
		cur, err := c.typ.Cursor(make([]byte, hi-lo), -lo, 2)
		if err != nil {
			t.Fatal(err)
		}
		var pieces [100]Piece
		if n := cur.Pieces(pieces[:], cur.Len()); n != c.pieces {
			t.Errorf("%s: two elements are %d pieces of memory, want %d", c.name, n, c.pieces)
		}
		if _, one := c.typ.Contiguous(2); one != (c.pieces <= 1) {
			t.Errorf("%s: contiguous: %v", c.name, one)
		}
	}
}

// TestConstruct_compact counts the nodes and entries of programs.
func TestConstruct_compact(t *testing.T) {
	million := make([]int, 1_000_000)
	for i := range million {
		million[i] = 3 * i
	}
	vector := must(Vector(1_000_000, 1, 3, Double))
	odd := slices.Clone(million[:1000])
	odd[5]++
	ragged := must(Struct([]int{1, 1}, []int{0, 8}, []*Type{Int, Double}))
	nested := must(Struct([]int{1, 1}, []int{0, 8}, []*Type{Int, Double}))
	for range 20 {
		nested = must(Struct([]int{1}, []int{4}, []*Type{nested}))
	}
	pair := must(Struct([]int{1, 1}, []int{0, 4}, []*Type{Int, Int}))
	for _, c := range []struct {
		name           string
		typ            *Type
		nodes, entries int
	}{
		{"a block", must(Contiguous(1_000_000, Double)), 1, 0},
		{"a vector", vector, 2, 0},
		{"a regular index", must(IndexedBlock(1, million, Double)), 2, 0},
		{"a regular index of pairs", must(IndexedBlock(1, million, pair)), 2, 0},
		{"a regular index of structures", must(IndexedBlock(1, million, ragged)), 2, 2},
		{"an index of structures", must(IndexedBlock(1, odd, ragged)), 2, 1002},
		{"an index of blocks that touch", must(IndexedBlock(1, []int{0, 1, 2, 5, 6, 9}, Int)), 1, 3},
		{"a vector of vectors that go on", must(Hvector(10, 1, 24_000_000, vector)), 2, 0},
		{"a vector of columns", must(Hvector(10, 1, 8, vector)), 3, 0},
		{"structures of one", nested, 1, 2},
		{"a dense array", must(Subarray([]int{9, 9, 9}, []int{9, 9, 9}, []int{0, 0, 0}, OrderC, Int)), 1, 0},
		{"a plane of a cube", must(Subarray([]int{9, 9, 9}, []int{1, 9, 9}, []int{3, 0, 0}, OrderC, Int)), 1, 0},
		{"a face of a cube", must(Subarray([]int{9, 9, 9}, []int{9, 9, 1}, []int{0, 0, 3}, OrderC, Int)), 2, 0},
		{"an inner cube", must(Subarray([]int{9, 9, 9}, []int{3, 3, 3}, []int{3, 3, 3}, OrderC, Int)), 3, 0},
	} {
		nodes, entries := 0, 0
		for nd := c.typ.prog.nd; nd != nil; nd = nd.child {
			nodes++
			entries += len(nd.at)
		}
		if nodes != c.nodes || entries != c.entries {
			t.Errorf("%s: %d nodes and %d entries, want %d and %d", c.name, nodes, entries, c.nodes, c.entries)
		}
	}
	// What is shared stays shared, though it has 2^40 entries.
	for range 40 {
		nested = must(Struct([]int{1, 1, 1}, []int{0, 1 << 30, 7}, []*Type{nested, nested, Byte}))
	}
	if nested.Size() < 1<<40 || nested.Uniform() != Derived {
		t.Error("a type of many parts is too small")
	}
}

// TestConstruct_errors has one line per way to be wrong.
func TestConstruct_errors(t *testing.T) {
	one, block, none := []int{1}, []Distribution{DistributeBlock}, []Distribution{DistributeNone}
	huge := must(Contiguous(1<<59, Int))
	for _, c := range []struct {
		name string
		err  error
		want Class
	}{
		{"contiguous -1", second(Contiguous(-1, Int)), InvalidCount},
		{"contiguous of nil", second(Contiguous(1, nil)), InvalidType},
		{"vector count", second(Vector(-1, 1, 1, Int)), InvalidCount},
		{"vector length", second(Vector(1, -1, 1, Int)), InvalidCount},
		{"vector of nil", second(Vector(1, 1, 1, nil)), InvalidType},
		{"hvector length", second(Hvector(1, -1, 1, Int)), InvalidCount},
		{"indexed length", second(Indexed([]int{1, -1}, []int{0, 0}, Int)), InvalidCount},
		{"indexed lists", second(Indexed([]int{1, 1}, []int{0}, Int)), InvalidArgument},
		{"indexed of nil", second(Indexed(one, one, nil)), InvalidType},
		{"hindexed lists", second(Hindexed(nil, []int{0}, Int)), InvalidArgument},
		{"indexed block length", second(IndexedBlock(-1, one, Int)), InvalidCount},
		{"hindexed block length", second(HindexedBlock(-1, one, Int)), InvalidCount},
		{"struct lists", second(Struct(one, one, nil)), InvalidArgument},
		{"struct length", second(Struct([]int{-1}, one, []*Type{Int})), InvalidCount},
		{"struct of nil", second(Struct(one, one, []*Type{nil})), InvalidType},
		{"resized nil", second(Resized(nil, 0, 1)), InvalidType},
		{"dup of nil", second(Dup(nil)), InvalidType},
		{"huge contiguous", second(Contiguous(8, huge)), InvalidArgument},
		{"huge vector", second(Vector(2, 1, 1<<60, Int)), InvalidArgument},
		{"huge negative vector", second(Vector(2, 1, math.MinInt, Int)), InvalidArgument},
		{"huge hvector", second(Hvector(2, 1, 1<<62, Int)), InvalidArgument},
		{"huge displacement", second(Indexed(one, []int{1 << 60}, Int)), InvalidArgument},
		{"huge hindexed", second(Hindexed(one, []int{math.MinInt}, Int)), InvalidArgument},
		{"huge span", second(Hindexed([]int{1, 1}, []int{-1 << 61, 1 << 61}, Int)), InvalidArgument},
		{"huge struct", second(Struct([]int{1, 1, 1}, []int{0, 0, 0}, []*Type{huge, huge, huge})), InvalidArgument},
		{"huge extent", second(Resized(Int, 1<<61, 1<<61)), InvalidArgument},
		{"huge lb", second(Resized(Int, math.MinInt, 1)), InvalidArgument},
		{"huge array", second(Subarray([]int{1 << 31, 1 << 31}, []int{1, 1}, []int{0, 0}, OrderC, Int)), InvalidArgument},
		{"huge darray", second(Darray(1, 0, []int{1 << 31, 1 << 31}, []Distribution{DistributeNone, DistributeNone}, []int{-1, -1}, []int{1, 1}, OrderC, Int)), InvalidArgument},
		{"subarray of nothing", second(Subarray(nil, nil, nil, OrderC, Int)), InvalidDims},
		{"subarray lists", second(Subarray(one, one, nil, OrderC, Int)), InvalidDims},
		{"subarray too large", second(Subarray([]int{3}, []int{4}, []int{0}, OrderC, Int)), InvalidArgument},
		{"subarray too far", second(Subarray([]int{3}, []int{2}, []int{2}, OrderC, Int)), InvalidArgument},
		{"subarray at -1", second(Subarray([]int{3}, []int{2}, []int{-1}, OrderC, Int)), InvalidArgument},
		{"subarray of size 0", second(Subarray([]int{3}, []int{0}, []int{0}, OrderC, Int)), InvalidArgument},
		{"subarray order", second(Subarray(one, one, []int{0}, Order(7), Int)), InvalidArgument},
		{"subarray of nil", second(Subarray(one, one, []int{0}, OrderC, nil)), InvalidType},
		{"darray lists", second(Darray(1, 0, one, block, one, nil, OrderC, Int)), InvalidDims},
		{"darray of nil", second(Darray(1, 0, one, block, one, one, OrderC, nil)), InvalidType},
		{"darray grid", second(Darray(2, 0, one, block, one, one, OrderC, Int)), InvalidArgument},
		{"darray rank", second(Darray(1, 1, one, block, one, one, OrderC, Int)), InvalidArgument},
		{"darray size", second(Darray(1, 0, []int{0}, block, one, one, OrderC, Int)), InvalidArgument},
		{"darray blocks too small", second(Darray(2, 0, []int{5}, block, []int{2}, []int{2}, OrderC, Int)), InvalidArgument},
		{"darray block of 0", second(Darray(2, 0, []int{5}, block, []int{0}, []int{2}, OrderC, Int)), InvalidArgument},
		{"darray not distributed", second(Darray(2, 0, []int{5}, none, []int{-1}, []int{2}, OrderC, Int)), InvalidArgument},
		{"darray distribution", second(Darray(1, 0, one, []Distribution{9}, one, one, OrderC, Int)), InvalidArgument},
		{"darray order", second(Darray(1, 0, one, block, one, one, Order(-1), Int)), InvalidArgument},
		{"span", func() error { _, _, err := Int.Span(-1); return err }(), InvalidCount},
	} {
		if e, ok := errors.AsType[*Error](c.err); !ok || e.Class != c.want || e.Detail == "" || e.Op == "" {
			t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
		}
	}
}

// TestContents has what MPI_Type_get_contents returns (MPI 4.1, section
// 5.1.13).
func TestContents(t *testing.T) {
	two := []Distribution{DistributeBlock, DistributeCyclic}
	for _, c := range []struct {
		typ       *Type
		combiner  Combiner
		integers  []int
		addresses []int
		types     []*Type
	}{
		{Int, CombinerNamed, nil, nil, nil},
		{must(Dup(Int)), CombinerDup, nil, nil, []*Type{Int}},
		{must(Contiguous(3, Int)), CombinerContiguous, []int{3}, nil, []*Type{Int}},
		{must(Vector(3, 2, -4, Int)), CombinerVector, []int{3, 2, -4}, nil, []*Type{Int}},
		{must(Hvector(3, 2, -4, Int)), CombinerHvector, []int{3, 2}, []int{-4}, []*Type{Int}},
		{must(Indexed([]int{1, 2}, []int{5, 9}, Int)), CombinerIndexed, []int{2, 1, 2, 5, 9}, nil, []*Type{Int}},
		{must(Hindexed([]int{1, 2}, []int{5, 9}, Int)), CombinerHindexed, []int{2, 1, 2}, []int{5, 9}, []*Type{Int}},
		{must(IndexedBlock(4, []int{5, 9}, Int)), CombinerIndexedBlock, []int{2, 4, 5, 9}, nil, []*Type{Int}},
		{must(HindexedBlock(4, []int{5, 9}, Int)), CombinerHindexedBlock, []int{2, 4}, []int{5, 9}, []*Type{Int}},
		{must(Struct([]int{1, 2}, []int{0, 8}, []*Type{Int, Double})), CombinerStruct, []int{2, 1, 2}, []int{0, 8}, []*Type{Int, Double}},
		{must(Subarray([]int{5, 6}, []int{3, 4}, []int{1, 2}, OrderFortran, Int)), CombinerSubarray, []int{2, 5, 6, 3, 4, 1, 2, int(OrderFortran)}, nil, []*Type{Int}},
		{must(Darray(6, 1, []int{5, 7}, two, []int{3, 1}, []int{2, 3}, OrderC, Int)), CombinerDarray, []int{6, 1, 2, 5, 7, 1, 2, 3, 1, 2, 3, int(OrderC)}, nil, []*Type{Int}},
		{must(Resized(Int, -1, 9)), CombinerResized, nil, []int{-1, 9}, []*Type{Int}},
	} {
		got := c.typ.Contents()
		if got.Combiner != c.combiner || !slices.Equal(got.Integers, c.integers) || !slices.Equal(got.Addresses, c.addresses) || !slices.Equal(got.Types, c.types) {
			t.Errorf("%v: %+v, want %v %v %v %v", c.typ, got, c.combiner, c.integers, c.addresses, c.types)
		}
		for i := range got.Integers {
			got.Integers[i] = 99
		}
		if again := c.typ.Contents(); !slices.Equal(again.Integers, c.integers) {
			t.Errorf("%v: the caller changed the contents", c.typ)
		}
	}
}

func TestCommit(t *testing.T) {
	if !Int.Committed() {
		t.Error("a predefined type is not committed")
	}
	typ := must(Contiguous(2, Int))
	if typ.Committed() || must(Dup(typ)).Committed() {
		t.Error("a new type is committed")
	}
	typ.Commit()
	typ.Commit()
	if !typ.Committed() || !must(Dup(typ)).Committed() || must(Contiguous(2, typ)).Committed() {
		t.Error("only Commit commits, and Dup what was committed")
	}
}

func TestUniform(t *testing.T) {
	for _, c := range []struct {
		typ  *Type
		want *Type
	}{
		{Int, Int},
		{DoubleInt, DoubleInt},
		{must(Vector(3, 2, 5, Double)), Double},
		{must(Struct([]int{1, 2}, []int{0, 8}, []*Type{must(Vector(2, 1, 3, Float)), Float})), Float},
		{must(Contiguous(3, DoubleInt)), DoubleInt},
		{must(Struct([]int{1, 0}, []int{0, 8}, []*Type{Int, Double})), Int},
		{must(Struct([]int{1, 1}, []int{0, 8}, []*Type{Int, Double})), nil},
		{must(Struct([]int{1, 1}, []int{0, 8}, []*Type{Int, Integer})), nil},
		{must(Contiguous(0, Int)), nil},
	} {
		want := Derived
		if c.want != nil {
			want = c.want.Kind()
		}
		if got := c.typ.Uniform(); got != want {
			t.Errorf("%v: all elements are of kind %d, want %d", c.typ.Contents(), got, want)
		}
	}
}

func TestGetCount(t *testing.T) {
	mixed := must(Struct([]int{1, 2}, []int{0, 8}, []*Type{Int, Double}))
	nothing := must(Contiguous(0, Int))
	for _, c := range []struct {
		typ        *Type
		bytes      int
		count      int
		whole      bool
		elements   int
		wholeElems bool
	}{
		{Int, 0, 0, true, 0, true},
		{Int, 12, 3, true, 3, true},
		{Int, 13, 3, false, 3, false},
		{mixed, 40, 2, true, 6, true},
		{mixed, 32, 1, false, 5, true},
		{mixed, 31, 1, false, 4, false},
		{mixed, 4, 0, false, 1, true},
		{DoubleInt, 20, 1, false, 3, true},
		{nothing, 0, 0, true, 0, true},
		{nothing, 1, 0, false, 0, false},
	} {
		n, whole := c.typ.GetCount(c.bytes)
		e, wholeElems := c.typ.GetElements(c.bytes)
		if n != c.count || whole != c.whole || e != c.elements || wholeElems != c.wholeElems {
			t.Errorf("%d bytes of %v: count %d (%v), elements %d (%v)", c.bytes, c.typ, n, whole, e, wholeElems)
		}
	}
}

// kindsOf lists the elements of count of a type.
func kindsOf(t *Type, count int) (all []Kind) {
	var list func(s *signature)
	list = func(s *signature) {
		switch {
		case s == nil:
		case s.isRun():
			all = append(all, slices.Repeat([]Kind{s.kind}, s.count)...)
		case s.child != nil:
			for range s.count {
				list(s.child)
			}
		default:
			for _, p := range s.parts {
				list(p)
			}
		}
	}
	list(t.sig.repeat(count))
	return all
}

// TestSignature_howItWasBuilt compares types that list the same elements.
func TestSignature_howItWasBuilt(t *testing.T) {
	a := must(Struct([]int{1, 2}, []int{0, 8}, []*Type{Int, Double}))
	b := must(Struct([]int{1, 1, 1}, []int{64, 0, 32}, []*Type{Int, Double, Double}))
	parts := must(Struct([]int{1, 1}, []int{4, 0}, []*Type{Double, Int}))
	for name, same := range map[string][2][]Kind{
		"apart":    {kindsOf(a, 7), kindsOf(b, 7)},
		"repeated": {kindsOf(a, 6), kindsOf(must(Contiguous(3, b)), 2)},
		"a pair":   {kindsOf(DoubleInt, 1), kindsOf(parts, 1)},
		"nothing":  {kindsOf(Int, 0), kindsOf(must(Contiguous(0, Double)), 5)},
	} {
		if !slices.Equal(same[0], same[1]) {
			t.Errorf("%s: elements of %v and of %v", name, same[0], same[1])
		}
	}
}

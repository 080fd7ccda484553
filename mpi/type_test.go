package mpi_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// TestTypes_contents: what a constructor is given comes out as MPI_Type_get_contents
// says, and its size and bounds are those of the standard's formulas.
func TestTypes_contents(t *testing.T) {
	i32 := mpi.TypeInt32
	type want struct {
		t                        mpi.Datatype
		combiner                 mpi.Combiner
		ints, addrs              []int
		size, lb, extent, trueLB int
		trueExtent               int
	}
	for name, w := range map[string]want{
		"contiguous":    {must(mpi.TypeContiguous(3, i32)), mpi.CombinerContiguous, []int{3}, nil, 12, 0, 12, 0, 12},
		"vector":        {must(mpi.TypeVector(2, 3, 4, i32)), mpi.CombinerVector, []int{2, 3, 4}, nil, 24, 0, 28, 0, 28},
		"hvector":       {must(mpi.TypeHvector(2, 3, 40, i32)), mpi.CombinerHvector, []int{2, 3}, []int{40}, 24, 0, 52, 0, 52},
		"indexed":       {must(mpi.TypeIndexed([]int{3, 1}, []int{4, 0}, i32)), mpi.CombinerIndexed, []int{2, 3, 1, 4, 0}, nil, 16, 0, 28, 0, 28},
		"hindexed":      {must(mpi.TypeHindexed([]int{3, 1}, []int{64, 4}, i32)), mpi.CombinerHindexed, []int{2, 3, 1}, []int{64, 4}, 16, 4, 72, 4, 72},
		"indexed block": {must(mpi.TypeIndexedBlock(2, []int{5, 1}, i32)), mpi.CombinerIndexedBlock, []int{2, 2, 5, 1}, nil, 16, 4, 24, 4, 24},
		"hindexed block": {must(mpi.TypeHindexedBlock(2, []int{20, 4}, i32)), mpi.CombinerHindexedBlock, []int{2, 2}, []int{20, 4},
			16, 4, 24, 4, 24},
		"subarray": {must(mpi.TypeSubarray([]int{4, 5}, []int{2, 3}, []int{1, 2}, mpi.OrderC, i32)), mpi.CombinerSubarray,
			[]int{2, 4, 5, 2, 3, 1, 2, int(mpi.OrderC)}, nil, 24, 0, 80, 28, 32},
		"darray": {must(mpi.TypeDarray(4, 1, []int{4, 6}, []mpi.Distribution{mpi.DistributeBlock, mpi.DistributeCyclic},
			[]int{mpi.DefaultBlock, 1}, []int{2, 2}, mpi.OrderC, i32)), mpi.CombinerDarray,
			[]int{4, 1, 2, 4, 6, 1, 2, -1, 1, 2, 2, int(mpi.OrderC)}, nil, 24, 0, 96, 4, 44},
		"resized": {must(mpi.TypeResized(i32, -4, 16)), mpi.CombinerResized, nil, []int{-4, 16}, 4, -4, 16, 0, 4},
		"dup":     {must(mpi.TypeDup(i32)), mpi.CombinerDup, nil, nil, 4, 0, 4, 0, 4},
	} {
		c, err := w.t.Contents()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.Combiner != w.combiner || !equalInts(c.Integers, w.ints) || !equalInts(c.Addresses, w.addrs) {
			t.Errorf("%s: contents %+v", name, c)
		}
		if len(c.Types) != 1 || c.Types[0] != i32 {
			t.Errorf("%s: made of %v", name, c.Types)
		}
		lb, extent := w.t.Extent()
		trueLB, trueExtent := w.t.TrueExtent()
		if w.t.Size() != w.size || lb != w.lb || extent != w.extent || trueLB != w.trueLB || trueExtent != w.trueExtent {
			t.Errorf("%s: size %d, extent %d %d, true extent %d %d", name, w.t.Size(), lb, extent, trueLB, trueExtent)
		}
		if w.t.Predefined() || !w.t.Committed() || w.t.IsNull() {
			t.Errorf("%s: predefined, not committed, or null", name)
		}
	}
	s := must(mpi.TypeStruct([]int{1, 2}, []int{8, 0}, []mpi.Datatype{mpi.TypeDouble, i32}))
	c, err := s.Contents()
	if err != nil || c.Combiner != mpi.CombinerStruct || !reflect.DeepEqual(c.Types, []mpi.Datatype{mpi.TypeDouble, i32}) || !equalInts(c.Addresses, []int{8, 0}) {
		t.Errorf("struct: %+v, %v", c, err)
	}
	named, err := i32.Contents()
	if err != nil || named.Combiner != mpi.CombinerNamed || !i32.Predefined() {
		t.Errorf("a predefined datatype: %+v, %v", named, err)
	}
}

func TestTypeValueIndex(t *testing.T) {
	for _, pair := range []mpi.Datatype{mpi.TypeFloatInt, mpi.TypeDoubleInt, mpi.TypeLongInt, mpi.TypeShortInt, mpi.TypeTwoInt,
		mpi.TypeLongDoubleInt, mpi.TypeTwoReal, mpi.TypeTwoDoublePrecision, mpi.TypeTwoInteger} {
		found := false
		for _, value := range []mpi.Datatype{mpi.TypeFloat, mpi.TypeDouble, mpi.TypeLong, mpi.TypeShort, mpi.TypeInt, mpi.TypeLongDouble,
			mpi.TypeReal, mpi.TypeDoublePrecision, mpi.TypeInteger} {
			for _, index := range []mpi.Datatype{mpi.TypeInt, value} {
				found = found || mpi.TypeValueIndex(value, index) == pair && value.Size()+index.Size() == pair.Size()
			}
		}
		if !found {
			t.Errorf("%v is no pair", pair)
		}
	}
	if !mpi.TypeValueIndex(mpi.TypeInt, mpi.TypeDouble).IsNull() {
		t.Error("an int and a double are a pair")
	}
}

func equalInts(a, b []int) bool { return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b)) }

func TestTypes_wrong(t *testing.T) {
	var null mpi.Datatype
	_, contents := null.Contents()
	_, contiguous := mpi.TypeContiguous(-1, mpi.TypeInt)
	_, vector := mpi.TypeVector(2, 1, 1<<60, mpi.TypeInt)
	_, indexed := mpi.TypeIndexed([]int{1}, nil, mpi.TypeInt)
	_, structure := mpi.TypeStruct([]int{1}, []int{0}, []mpi.Datatype{null})
	_, dims := mpi.TypeSubarray([]int{1, 2}, []int{1}, []int{0}, mpi.OrderC, mpi.TypeInt)
	_, dup := mpi.TypeDup(null)
	for name, w := range map[string]struct {
		class mpi.ErrorClass
		err   error
	}{
		"contents": {mpi.ErrType, contents}, "commit": {mpi.ErrType, null.Commit()}, "contiguous": {mpi.ErrCount, contiguous},
		"vector": {mpi.ErrArg, vector}, "indexed": {mpi.ErrArg, indexed}, "struct": {mpi.ErrType, structure},
		"subarray": {mpi.ErrDims, dims}, "dup": {mpi.ErrType, dup},
	} {
		if err := wantClass(w.err, w.class); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if lb, extent := null.Extent(); null.Size() != 0 || lb != 0 || extent != 0 || null.Committed() || null.Predefined() || null.String() != "MPI_DATATYPE_NULL" {
		t.Error("the null datatype is something")
	}
	raw, err := mpi.TypeContiguous(2, mpi.TypeInt)
	if err != nil || raw.Committed() {
		t.Errorf("a new datatype is committed: %v", err)
	}
}

// cell has gaps of all kinds.
type cell struct {
	flag bool
	x    [3]float64
	_    int16
	n    int8
	pos  struct{ a, b float32 }
	z    complex128
}

func TestTypeOf(t *testing.T) {
	plain, err := mpi.TypeOf[cell]()
	if err != nil {
		t.Fatal(err)
	}
	typ := plain.Type()
	if _, extent := typ.Extent(); typ.Size() != 1+24+1+8+16 || extent != int(reflect.TypeFor[cell]().Size()) || !typ.Committed() {
		t.Errorf("size %d, extent %d", typ.Size(), extent)
	}
	type named int16
	for name, got := range map[string]func() (mpi.Datatype, error){
		"MPI_INT64_T": typeOf[int], "MPI_UINT8_T": typeOf[byte], "MPI_DOUBLE": typeOf[float64], "MPI_C_BOOL": typeOf[bool],
		"MPI_C_FLOAT_COMPLEX": typeOf[complex64], "MPI_INT16_T": typeOf[named], "MPI_2INT": typeOf[mpi.Pair[int32]],
		"MPI_LONG_INT": typeOf[mpi.Pair[int]], "MPI_FLOAT_INT": typeOf[mpi.Pair[float32]],
	} {
		if typ, err := got(); err != nil || typ.String() != name {
			t.Errorf("%v instead of %s: %v", typ, name, err)
		}
	}
	dense, err := typeOf[[4]struct{ a, b int32 }]()
	if err != nil || dense.Size() != 32 {
		t.Errorf("array: %v, size %d", err, dense.Size())
	}
	for path, got := range map[string]func() (mpi.Datatype, error){
		"*int": typeOf[*int], "string": typeOf[string], ".a.b[]": typeOf[struct{ a struct{ b [2][]int } }],
		"map": typeOf[map[int]int], "func": typeOf[func()], "uintptr": typeOf[struct{ p uintptr }], "interface": typeOf[struct{ v any }],
	} {
		_, err := got()
		if mpi.ClassOf(err) != mpi.ErrType || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func typeOf[T any]() (mpi.Datatype, error) {
	plain, err := mpi.TypeOf[T]()
	return plain.Type(), err
}

// TestTypeOf_messages: structures arrive, and their gaps do not.
func TestTypeOf_messages(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		plain, err := mpi.TypeOf[cell]()
		if err != nil {
			return err
		}
		grid := make([]cell, 5*7)
		column, err := mpi.TypeVector(5, 1, 7, plain.Type())
		if err = errors.Join(err, column.Commit()); err != nil {
			return err
		}
		if c.Rank() == 0 {
			for i := range grid {
				grid[i] = cell{flag: i%2 == 0, n: int8(i), z: complex(float64(i), 1)}
				grid[i].x[2], grid[i].pos.b = float64(i), 2
			}
			return errors.Join(c.Send(plain.Typed(grid[3:], 1, column), 1, 0), c.Send(plain.Slice(grid), 1, 1), c.Send(plain.Slice(nil), 1, 2))
		}
		_, err = c.Recv(plain.Typed(grid[3:], 1, column), 0, 0)
		for i, g := range grid {
			if set := i%7 == 3; err == nil && (g.n != 0) != set || set && g.x[2] != float64(i) {
				err = fmt.Errorf("cell %d is %+v", i, g)
			}
		}
		_, err2 := c.Recv(plain.Slice(grid), 0, 1)
		st, err3 := c.Recv(mpi.Data{}, 0, 2)
		for i, g := range grid {
			if want := (cell{flag: i%2 == 0, n: int8(i), z: complex(float64(i), 1), x: [3]float64{2: float64(i)}, pos: struct{ a, b float32 }{b: 2}}); err == nil && g != want {
				err = fmt.Errorf("cell %d is %+v", i, g)
			}
		}
		if st.Bytes() != 0 {
			err = errors.New("nothing became something")
		}
		return errors.Join(err, err2, err3)
	})
}

func TestPlain_Alloc(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		plain, err := mpi.TypeOf[cell]()
		if err != nil {
			return err
		}
		cells, err := plain.Alloc(p, 100)
		if err != nil {
			return err
		}
		for i := range cells {
			if cells[i] != (cell{}) {
				return fmt.Errorf("cell %d is not zero", i)
			}
			cells[i].n = int8(i)
		}
		_, negative := plain.Alloc(p, -1)
		_, huge := plain.Alloc(p, 1<<60)
		_, unmade := mpi.Plain[cell]{}.Alloc(p, 1)
		nothing, err := mpi.TypeOf[struct{}]()
		if err != nil {
			return err
		}
		empty, err := nothing.Alloc(p, 3)
		if err != nil || len(empty) != 3 {
			return fmt.Errorf("%d elements of nothing: %v", len(empty), err)
		}
		return errors.Join(plain.Free(p, cells), nothing.Free(p, empty), wantClass(plain.Free(p, make([]cell, 1)), mpi.ErrBase),
			wantClass(negative, mpi.ErrArg), wantClass(huge, mpi.ErrArg), wantClass(unmade, mpi.ErrType))
	})
}

func TestTypes_namesAndAttributes(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		var gone []any
		kept := &mpi.TypeKeyval{Copy: mpi.CopyTypeAttr, Delete: func(_ mpi.Datatype, v any) error { gone = append(gone, v); return nil }}
		local := &mpi.TypeKeyval{Delete: kept.Delete}
		row := must(mpi.TypeContiguous(4, mpi.TypeInt))
		rank := p.World().Rank()
		if got := p.TypeName(row); got != "" || p.TypeName(mpi.TypeInt) != "MPI_INT" || p.TypeName(mpi.Datatype{}) != "MPI_DATATYPE_NULL" {
			return fmt.Errorf("the name is %q", got)
		}
		err := errors.Join(p.TypeSetName(row, fmt.Sprint("row ", rank)), p.TypeSetName(mpi.TypeInt, fmt.Sprint("int ", rank)),
			p.TypeSetAttr(row, kept, rank), p.TypeSetAttr(row, local, 7), p.TypeSetAttr(mpi.TypeInt, local, rank))
		if err != nil {
			return err
		}
		if err := p.World().Barrier(); err != nil { // both have set theirs
			return err
		}
		if p.TypeName(row) != fmt.Sprint("row ", rank) || p.TypeName(mpi.TypeInt) != fmt.Sprint("int ", rank) {
			return fmt.Errorf("names %q and %q", p.TypeName(row), p.TypeName(mpi.TypeInt))
		}
		dup, err := p.TypeDup(row)
		if err != nil {
			return err
		}
		a, aOK := p.TypeAttr(dup, kept)
		_, bOK := p.TypeAttr(dup, local)
		if !aOK || a != any(rank) || bOK || p.TypeName(dup) != "" {
			return fmt.Errorf("a duplicate has %v, %v, name %q", a, bOK, p.TypeName(dup))
		}
		err = errors.Join(p.TypeDeleteAttr(row, local), p.TypeFree(row), p.TypeFree(dup))
		if err != nil || !reflect.DeepEqual(gone, []any{7, rank, rank}) {
			return fmt.Errorf("deleted %v: %v", gone, err)
		}
		for i, w := range []struct {
			class mpi.ErrorClass
			err   error
		}{
			{mpi.ErrKeyval, p.TypeDeleteAttr(dup, kept)}, {mpi.ErrKeyval, p.TypeSetAttr(dup, nil, 1)},
			{mpi.ErrType, p.TypeSetAttr(mpi.Datatype{}, kept, 1)}, {mpi.ErrType, p.TypeSetName(mpi.Datatype{}, "x")},
			{mpi.ErrType, p.TypeFree(mpi.TypeInt)}, {mpi.ErrType, p.TypeFree(mpi.Datatype{})},
		} {
			if err := wantClass(w.err, w.class); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		return nil
	})
}

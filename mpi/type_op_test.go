package mpi_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// mapping is x -> A*x + B: composition does not commute.
type mapping struct {
	A uint32
	_ uint16
	B uint64
}

func compose(in, inout []mapping) {
	for i := range inout {
		inout[i] = mapping{A: in[i].A * inout[i].A, B: uint64(in[i].A*uint32(inout[i].B) + uint32(in[i].B))}
	}
}

func mappingOf(r, i int) mapping { return mapping{A: uint32(2*r + 3*i + 1), B: uint64(r + i)} }

func mappings(r, n int) []mapping {
	v := make([]mapping, n)
	for i := range v {
		v[i] = mappingOf(r, i)
	}
	return v
}

// composition is what ranks from..to-1 make, in this order.
func composition(from, to, n int) []mapping {
	v := mappings(to-1, n)
	for r := to - 2; r >= from; r-- {
		compose(mappings(r, n), v)
	}
	return v
}

func same[T comparable](what string, got, want []T) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
	return nil
}

// TestOperation_ofStructuresInOrder: a structure with gaps, and an operation for
// which the order of ranks matters, in all reductions.
func TestOperation_ofStructuresInOrder(t *testing.T) {
	onRanks(t, []int{1, 2, 3, 4, 6, 7, 13}, func(p *mpi.Proc) error {
		c := p.World()
		me, size := c.Rank(), c.Size()
		plain, err := mpi.TypeOf[mapping]()
		if err != nil {
			return err
		}
		op, err := plain.Operation(compose, false)
		if err != nil {
			return err
		}
		if op.Commutes() || plain.Type().Size() != 12 {
			return fmt.Errorf("commutes %v, size %d", op.Commutes(), plain.Type().Size())
		}
		for _, n := range []int{1, 5, 2000} {
			root := size / 2
			got, all, upTo, before := make([]mapping, n), mappings(me, n), make([]mapping, n), make([]mapping, n)
			blocks := make([]mapping, n)
			err := errors.Join(
				c.Reduce(plain.Slice(mappings(me, n)), plain.Slice(got), op, root),
				c.Allreduce(mpi.Data{}, plain.Slice(all), op),
				c.Scan(plain.Slice(mappings(me, n)), plain.Slice(upTo), op),
				c.Exscan(plain.Slice(mappings(me, n)), plain.Slice(before), op),
				c.ReduceScatterBlock(plain.Slice(mappings(me, n*size)), plain.Slice(blocks), op),
				same("Allreduce", all, composition(0, size, n)),
				same("Scan", upTo, composition(0, me+1, n)),
				same("ReduceScatterBlock", blocks, composition(0, size, n*size)[me*n:(me+1)*n]))
			if me == root {
				err = errors.Join(err, same("Reduce", got, composition(0, size, n)))
			}
			if me > 0 {
				err = errors.Join(err, same("Exscan", before, composition(0, me, n)))
			}
			if err != nil {
				return fmt.Errorf("%d ranks, %d elements: %w", size, n, err)
			}
		}
		return nil
	})
}

// TestOperation_ofAnyLayout: elements that begin below the buffer's address, or lie
// in one another, are what the function expects them to be.
func TestOperation_ofAnyLayout(t *testing.T) {
	// Two words, the second of which is in front of the first, and elements that
	// are as far apart as one word.
	below := must(mpi.TypeResized(must(mpi.TypeIndexed([]int{1, 1}, []int{2, -1}, mpi.TypeInt32)), 0, 4))
	gaps := must(mpi.TypeResized(must(mpi.TypeIndexed([]int{1, 1}, []int{1, 3}, mpi.TypeInt32)), 0, 20))
	op, err := mpi.NewOperation(func(in, inout []byte, n int, t mpi.Datatype) {
		_, extent := t.Extent()
		_, length := t.TrueExtent()
		for i := range n {
			for _, at := range []int{i * extent, i*extent + length - 4} { // the first word and the last one
				sum := binary.LittleEndian.Uint32(in[at:]) + binary.LittleEndian.Uint32(inout[at:])
				binary.LittleEndian.PutUint32(inout[at:], sum)
			}
		}
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	onRanks(t, []int{1, 3, 4}, func(p *mpi.Proc) error {
		c := p.World()
		fill := func(n, scale int) []byte {
			b := make([]byte, n)
			for i := 0; i+4 <= n; i += 4 {
				binary.LittleEndian.PutUint32(b[i:], uint32(scale*(i+1)))
			}
			return b
		}
		total := c.Size() * (c.Size() + 1) / 2
		// Elements whose words are not those of others.
		got := fill(16, c.Rank()+1)
		want := fill(16, c.Rank()+1)
		sum := fill(16, total)
		copy(want[0:4], sum[0:4])
		copy(want[12:16], sum[12:16])
		err := errors.Join(c.Allreduce(mpi.Data{}, mpi.Bytes(got, 4, 1, below), op), sameBytes("below", got, want))
		// Gaps stay as they are, with and without a copy.
		got, want, sum = fill(60, c.Rank()+1), fill(60, c.Rank()+1), fill(60, total)
		for i := range 3 {
			copy(want[20*i+4:][:4], sum[20*i+4:])
			copy(want[20*i+12:][:4], sum[20*i+12:])
		}
		src := append([]byte(nil), got...)
		inPlace := append([]byte(nil), got...)
		return errors.Join(err,
			c.Allreduce(mpi.Bytes(src, 0, 3, gaps), mpi.Bytes(got, 0, 3, gaps), op), sameBytes("gaps", got, want),
			c.Allreduce(mpi.Data{}, mpi.Bytes(inPlace, 0, 3, gaps), op), sameBytes("gaps in place", inPlace, want))
	})
}

func pairsTest[V int16 | int32 | int64 | int | float32 | float64](c *mpi.Comm) error {
	type pair = mpi.Pair[V]
	plain, err := mpi.TypeOf[pair]()
	if err != nil {
		return err
	}
	if !plain.Type().Predefined() {
		return fmt.Errorf("%v is not predefined", plain.Type())
	}
	me, p := c.Rank(), c.Size()
	for _, n := range []int{1, 3, 100} {
		mine, high, low := make([]pair, n), make([]pair, n), make([]pair, n)
		wantHigh, wantLow := make([]pair, n), make([]pair, n)
		of := func(r, i int) V { return V((r*7 + i*5) % (p + 1)) }
		for i := range mine {
			mine[i] = pair{of(me, i), int32(me)}
			wantHigh[i], wantLow[i] = pair{of(0, i), 0}, pair{of(0, i), 0}
			for r := range p {
				if of(r, i) > wantHigh[i].Value {
					wantHigh[i] = pair{of(r, i), int32(r)}
				}
				if of(r, i) < wantLow[i].Value {
					wantLow[i] = pair{of(r, i), int32(r)}
				}
			}
		}
		err := errors.Join(
			c.Allreduce(plain.Slice(mine), plain.Slice(high), mpi.OpMaxloc),
			c.Allreduce(plain.Slice(mine), plain.Slice(low), mpi.OpMinloc),
			same("OpMaxloc", high, wantHigh), same("OpMinloc", low, wantLow))
		if err != nil {
			return fmt.Errorf("%T, %d ranks, %d elements: %w", mine[0], p, n, err)
		}
	}
	return nil
}

func TestOperation_pairs(t *testing.T) {
	onRanks(t, []int{1, 2, 5}, func(p *mpi.Proc) error {
		c := p.World()
		return errors.Join(pairsTest[int16](c), pairsTest[int32](c), pairsTest[int64](c), pairsTest[int](c),
			pairsTest[float32](c), pairsTest[float64](c))
	})
}

// TestOperation_predefinedTypes: every predefined operation on every predefined
// datatype that it is for gives what it gives for the vectors of two ranks here.
func TestOperation_predefinedTypes(t *testing.T) {
	ops := []mpi.Operation{mpi.OpSum, mpi.OpProd, mpi.OpMax, mpi.OpMin, mpi.OpLAnd, mpi.OpLOr, mpi.OpLXor,
		mpi.OpBAnd, mpi.OpBOr, mpi.OpBXor, mpi.OpMaxloc, mpi.OpMinloc}
	types := []mpi.Datatype{mpi.TypeByte, mpi.TypeChar, mpi.TypeSignedChar, mpi.TypeShort, mpi.TypeUnsigned, mpi.TypeLong, mpi.TypeUint64,
		mpi.TypeFloat, mpi.TypeDouble, mpi.TypeLongDouble, mpi.TypeCBool, mpi.TypeCFloatComplex, mpi.TypeCDoubleComplex, mpi.TypeAint,
		mpi.TypeLogical, mpi.TypeInteger2, mpi.TypeReal8, mpi.TypeDoubleInt, mpi.TypeLongDoubleInt, mpi.TypeTwoReal}
	legal := 0
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		for _, op := range ops {
			for _, typ := range types {
				_, extent := typ.Extent()
				v := func(r int) []byte {
					b := make([]byte, 5*extent)
					for i := range b {
						if i%16 < 12 || extent < 16 { // none of what is between pairs
							b[i] = byte(r+1) * byte(i%3)
						}
					}
					if typ == mpi.TypeLongDouble || typ == mpi.TypeLongDoubleInt { // 1 and 2
						clear(b)
						for i := 0; i < len(b); i += extent {
							b[i+7], b[i+8], b[i+9] = 0x80, byte(0xff+r), byte(0x3f+r)
						}
					}
					return b
				}
				want, got := v(1), v(c.Rank())
				localErr := mpi.ReduceLocal(mpi.Bytes(v(0), 0, 5, typ), mpi.Bytes(want, 0, 5, typ), op)
				err := c.Allreduce(mpi.Data{}, mpi.Bytes(got, 0, 5, typ), op)
				if mpi.ClassOf(err) != mpi.ClassOf(localErr) || err != nil && mpi.ClassOf(err) != mpi.ErrOp {
					return fmt.Errorf("%v of %v: %v, and %v locally", op, typ, err, localErr)
				}
				if err != nil {
					continue
				}
				if c.Rank() == 0 {
					legal++
				}
				if err := sameBytes(fmt.Sprintf("%v of %v", op, typ), got, want); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if legal < 80 {
		t.Errorf("%d legal combinations of 12 operations and 20 datatypes", legal)
	}
}

func TestOperation_wrong(t *testing.T) {
	mixed := must(mpi.TypeStruct([]int{1, 1}, []int{0, 8}, []mpi.Datatype{mpi.TypeDouble, mpi.TypeInt}))
	ofPairs := must(mpi.TypeContiguous(2, mpi.TypeDoubleInt))
	_, noFunction := mpi.NewOperation(nil, true)
	raw, err := mpi.TypeContiguous(2, mpi.TypeInt)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := mpi.TypeOf[mapping]()
	if err != nil {
		t.Fatal(err)
	}
	_, noPlainFunction := plain.Operation(nil, true)
	_, unmade := mpi.Plain[mapping]{}.Operation(compose, true)
	blank, err := mpi.TypeOf[struct {
		_ int32
		N int32
	}]()
	if err != nil {
		t.Fatal(err)
	}
	_, blankFirst := blank.Operation(func(_, _ []struct {
		_ int32
		N int32
	}) {
	}, true)
	mine, err := plain.Operation(compose, false)
	if err != nil {
		t.Fatal(err)
	}
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		c := p.World()
		b := make([]byte, 64)
		v := mpi.Slice([]float64{1, 2})
		for i, want := range []struct {
			class mpi.ErrorClass
			err   error
		}{
			{mpi.ErrOp, noFunction}, {mpi.ErrOp, noPlainFunction}, {mpi.ErrOp, unmade}, {mpi.ErrOp, blankFirst},
			{mpi.ErrOp, c.Allreduce(mpi.Data{}, v, mpi.Operation{})},
			{mpi.ErrOp, c.Allreduce(mpi.Data{}, v, mpi.OpBAnd)},
			{mpi.ErrOp, c.Allreduce(mpi.Data{}, v, mine)},
			{mpi.ErrOp, c.Allreduce(mpi.Data{}, mpi.Bytes(b, 0, 1, mixed), mpi.OpSum)},
			{mpi.ErrOp, c.Allreduce(mpi.Data{}, mpi.Bytes(b, 0, 1, ofPairs), mpi.OpMaxloc)},
			{mpi.ErrType, c.Allreduce(mpi.Data{}, mpi.Data{}, mpi.OpSum)},
			{mpi.ErrType, c.Allreduce(mpi.Slice([]float32{1, 2}), v, mpi.OpSum)},
			{mpi.ErrType, c.Allreduce(mpi.Bytes(b, 0, 1, must(mpi.TypeDup(plain.Type()))), mpi.Bytes(b, 16, 1, plain.Type()), mine)},
			{mpi.ErrCount, c.Allreduce(mpi.Slice([]float64{1}), v, mpi.OpSum)},
			{mpi.ErrCount, mpi.ReduceLocal(mpi.Slice([]float64{1}), v, mpi.OpSum)},
			{mpi.ErrBuffer, c.Allreduce(mpi.Data{}, mpi.Bytes(b, 60, 1, plain.Type()), mine)},
			{mpi.ErrBuffer, c.Allreduce(mpi.Bytes(b, 0, 1<<40, plain.Type()), mpi.Bytes(b, 0, 1<<40, plain.Type()), mine)},
			{mpi.ErrBuffer, c.Allgather(mpi.Data{}, mpi.Bytes(b, 0, 1<<40, mixed))},
			{mpi.ErrBuffer, c.Alltoall(mpi.Data{}, mpi.Bytes(b, 0, 1<<40, mixed))},
			{mpi.ErrType, c.Allreduce(mpi.Data{}, mpi.Bytes(b, 0, 1, raw), mpi.OpSum)},
			{mpi.ErrType, c.Bcast(mpi.Bytes(b, 0, 1, raw), 0)},
			{mpi.ErrBuffer, mpi.ReduceLocal(v, mpi.Bytes(b, 60, 2, mpi.TypeDouble), mpi.OpSum)},
		} {
			if err := wantClass(want.err, want.class); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		return nil
	})
	if (mpi.Operation{}).Commutes() || !(mpi.Operation{}).IsNull() || mpi.OpSum.String() != "MPI_SUM" || (mpi.Operation{}).String() != "MPI_OP_NULL" {
		t.Error("the null operation is something")
	}
}

// What lies side by side is reduced where it is.
func TestAllocs_reduceLocal(t *testing.T) {
	in, inout := []float64{1, 2}, []float64{3, 4}
	if n := testing.AllocsPerRun(10, func() {
		if err := mpi.ReduceLocal(mpi.Slice(in), mpi.Slice(inout), mpi.OpMax); err != nil {
			t.Error(err)
		}
	}); n != 0 || inout[1] != 4 || inout[0] != 3 {
		t.Errorf("%v allocations, %v", n, inout)
	}
}

package dtype

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
)

var predefinedOps = []*Op{Sum, Prod, Max, Min, Land, Lor, Lxor, Band, Bor, Bxor, Maxloc, Minloc, Replace, NoOp}

// TestOn_legality is the table of MPI 4.1, section 6.9.2, in its words, and what programs do
// besides: they sum up CHAR, and combine addresses and counts as truth values.
func TestOn_legality(t *testing.T) {
	groups := map[string]string{
		"C integer":            "INT LONG SHORT UNSIGNED_SHORT UNSIGNED UNSIGNED_LONG LONG_LONG UNSIGNED_LONG_LONG SIGNED_CHAR UNSIGNED_CHAR INT8_T INT16_T INT32_T INT64_T UINT8_T UINT16_T UINT32_T UINT64_T CHAR",
		"Fortran integer":      "INTEGER INTEGER1 INTEGER2 INTEGER4 INTEGER8",
		"Floating point":       "FLOAT DOUBLE REAL DOUBLE_PRECISION LONG_DOUBLE REAL4 REAL8",
		"Logical":              "LOGICAL C_BOOL CXX_BOOL",
		"Complex":              "COMPLEX C_FLOAT_COMPLEX C_DOUBLE_COMPLEX C_LONG_DOUBLE_COMPLEX CXX_FLOAT_COMPLEX CXX_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX DOUBLE_COMPLEX COMPLEX8 COMPLEX16",
		"Byte":                 "BYTE",
		"Multi-language types": "AINT OFFSET COUNT",
		"Pairs":                "FLOAT_INT DOUBLE_INT LONG_INT 2INT SHORT_INT LONG_DOUBLE_INT 2REAL 2DOUBLE_PRECISION 2INTEGER",
		"None":                 "PACKED WCHAR CHARACTER INTEGER16 REAL16 COMPLEX32",
	}
	allowed := map[string]string{
		"MAX MIN":       "C integer, Fortran integer, Floating point, Multi-language types",
		"SUM PROD":      "C integer, Fortran integer, Floating point, Complex, Multi-language types",
		"LAND LOR LXOR": "C integer, Logical, Multi-language types",
		"BAND BOR BXOR": "C integer, Fortran integer, Byte, Multi-language types",
		"MAXLOC MINLOC": "Pairs",
		"REPLACE NO_OP": "C integer, Fortran integer, Floating point, Logical, Complex, Byte, Multi-language types, Pairs, None",
	}
	types := 0
	for _, names := range groups {
		types += len(strings.Fields(names))
	}
	if types != len(predefinedTypes) {
		t.Errorf("the table has %d types, there are %d", types, len(predefinedTypes))
	}
	for _, op := range predefinedOps {
		for group, names := range groups {
			for name := range strings.FieldsSeq(names) {
				want := false
				for ops, in := range allowed {
					if strings.Contains(" "+ops+" ", strings.TrimPrefix(op.String(), "MPI_")+" ") || strings.HasSuffix(" "+ops, " "+strings.TrimPrefix(op.String(), "MPI_")) {
						want = strings.Contains(in, group)
					}
				}
				typ := byName(t, "MPI_"+name)
				_, err := op.On(typ)
				if e, ok := errors.AsType[*Error](err); (err == nil) != want || err != nil && (!ok || e.Class != InvalidOp) {
					t.Errorf("%v on %v: %v, want it legal: %v", op, typ, err, want)
				}
			}
		}
	}
}

func byName(t *testing.T, name string) *Type {
	for _, typ := range predefinedTypes {
		if typ.String() == name {
			return typ
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

func TestOn_refuses(t *testing.T) {
	pair, err := Contiguous(2, Int)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		second(Sum.On(pair)), second(Sum.On(nil)), second((*Op)(nil).On(Int)), second(NewOp(nil, true)),
	} {
		if e, ok := errors.AsType[*Error](err); !ok || e.Class != InvalidOp {
			t.Errorf("%v, want an invalid operation", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestApply_userDefined multiplies 2x2 matrices, which is not commutative, of a
// derived type.
func TestApply_userDefined(t *testing.T) {
	matrix, err := Contiguous(4, Int)
	if err != nil {
		t.Fatal(err)
	}
	op, err := NewOp(func(in, inout []byte, n int, typ *Type) {
		if typ != matrix {
			t.Errorf("the type is %v", typ)
		}
		for i := range n {
			var c [4]uint32
			word := func(b []byte, k int) uint32 { return binary.LittleEndian.Uint32(b[16*i+4*k:]) }
			for k := range c {
				r, s := k/2*2, k%2
				c[k] = word(in, r)*word(inout, s) + word(in, r+1)*word(inout, s+2)
			}
			for k := range c {
				binary.LittleEndian.PutUint32(inout[16*i+4*k:], c[k])
			}
		}
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := op.On(matrix)
	if err != nil || r.op.commutative || op.Commutative() || op.Predefined() {
		t.Fatal(err, op)
	}
	le := func(v ...uint32) []byte {
		var b []byte
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	inout := le(5, 6, 7, 8, 1, 0, 0, 1)
	r.Apply(le(1, 2, 3, 4, 9, 8, 7, 6), inout, 2)
	if want := le(19, 22, 43, 50, 9, 8, 7, 6); !bytes.Equal(inout, want) {
		t.Errorf("got %x, want %x", inout, want)
	}
}

// TestApply_allOpsOnAllTypes compares every kernel with an oracle that works on
// one element at a time, for lengths around the word and bounce sizes, aligned
// and not.
func TestApply_allOpsOnAllTypes(t *testing.T) {
	for _, op := range predefinedOps {
		for _, typ := range predefinedTypes {
			r, err := op.On(typ)
			if err != nil {
				continue
			}
			t.Run(fmt.Sprint(op, "/", typ), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(uint64(op.rule), uint64(typ.kind)))
				for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 64, 600} {
					for _, off := range [][2]int{{0, 0}, {8, 16}, {1, 0}, {0, 4}, {3, 3}} {
						compareWithOracle(t, rnd, r, n, off)
					}
				}
			})
		}
	}
}

func compareWithOracle(t *testing.T, rnd *rand.Rand, r Reduction, n int, off [2]int) {
	t.Helper()
	info := &kinds[r.typ.kind]
	_, extent := r.typ.Extent()
	_, end, _ := r.typ.Span(n)
	in, inout := make([]byte, off[0]+end), make([]byte, off[1]+end+8)
	for i := range n {
		fill(rnd, r.typ.kind, in[off[0]+i*extent:])
		fill(rnd, r.typ.kind, inout[off[1]+i*extent:])
		if info.group == groupPair && rnd.IntN(4) == 0 { // equal values
			copy(inout[off[1]+i*extent:][:kinds[info.first].size], in[off[0]+i*extent:])
		}
	}
	want := bytes.Clone(inout)
	for i := range n {
		oracle(r.op.rule, r.typ.kind, in[off[0]+i*extent:], want[off[1]+i*extent:])
	}
	keep := bytes.Clone(in)
	r.Apply(in[off[0]:], inout[off[1]:off[1]+end], n)
	if !bytes.Equal(in, keep) {
		t.Fatal("the input has changed")
	}
	for i := range n {
		a, b := inout[off[1]+i*extent:], want[off[1]+i*extent:]
		if !equalData(r.typ.kind, a, b) {
			t.Fatalf("n=%d, offsets %v: element %d is %x, want %x, in was %x", n, off, i, a[:info.size], b[:info.size], in[off[0]+i*extent:][:info.size])
		}
	}
	if !bytes.Equal(inout[off[1]+end:], want[off[1]+end:]) || !bytes.Equal(inout[:off[1]], want[:off[1]]) {
		t.Fatal("something outside of the elements has changed")
	}
}

// equalData compares what the type has, without padding.
func equalData(k Kind, a, b []byte) bool {
	info := &kinds[k]
	if info.group == groupPair {
		at := secondAt(k)
		return equalData(info.first, a, b) && equalData(info.second, a[at:], b[at:])
	}
	switch info.machine {
	case mFloat80:
		return load80(a) == load80(b)
	case mComplex160:
		return load80(a) == load80(b) && load80(a[16:]) == load80(b[16:])
	}
	return bytes.Equal(a[:info.size], b[:info.size])
}

// fill writes a random value: often a small one, so that values repeat and sums
// are exact.
func fill(rnd *rand.Rand, k Kind, b []byte) {
	info := &kinds[k]
	if info.group == groupPair {
		fill(rnd, info.first, b)
		fill(rnd, info.second, b[secondAt(k):])
		return
	}
	f := float64(rnd.IntN(9) - 4)
	if rnd.IntN(3) == 0 {
		f = rnd.NormFloat64() * 1e3
	}
	switch info.machine {
	case mFloat32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(f)))
	case mFloat64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(f))
	case mComplex64:
		fill(rnd, kFloat, b)
		fill(rnd, kFloat, b[4:])
	case mComplex128:
		fill(rnd, kDouble, b)
		fill(rnd, kDouble, b[8:])
	case mFloat80:
		from64(f).store(b)
	case mComplex160:
		fill(rnd, kLongDouble, b)
		fill(rnd, kLongDouble, b[16:])
	default:
		v := rnd.Uint64()
		if rnd.IntN(2) == 0 {
			v %= 3
		}
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], v)
		copy(b[:info.size], w[:])
	}
}

// oracle sets inout to in op inout for one element.
func oracle(r rule, k Kind, in, inout []byte) {
	info := &kinds[k]
	if info.group == groupPair {
		oraclePair(r, k, in, inout)
		return
	}
	switch r {
	case ruleReplace:
		copy(inout[:info.size], in)
		return
	case ruleNoOp:
		return
	}
	le := binary.LittleEndian
	switch info.machine {
	case mFloat32:
		a, b := math.Float32frombits(le.Uint32(in)), math.Float32frombits(le.Uint32(inout))
		le.PutUint32(inout, math.Float32bits(float32(oracleFloat(r, float64(a), float64(b)))))
	case mFloat64:
		a, b := math.Float64frombits(le.Uint64(in)), math.Float64frombits(le.Uint64(inout))
		le.PutUint64(inout, math.Float64bits(oracleFloat(r, a, b)))
	case mComplex64:
		oracleComplex(r, func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) },
			func(b []byte, v float64) { le.PutUint32(b, math.Float32bits(float32(v))) }, 4, in, inout)
	case mComplex128:
		oracleComplex(r, func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) },
			func(b []byte, v float64) { le.PutUint64(b, math.Float64bits(v)) }, 8, in, inout)
	case mFloat80:
		oracle80(r, in, inout)
	case mComplex160:
		oracleComplex160(r, in, inout)
	default:
		oracleInteger(r, info, in, inout)
	}
}

func oracleFloat(r rule, a, b float64) float64 {
	switch r {
	case ruleSum:
		return a + b
	case ruleProd:
		return a * b
	case ruleMax:
		return math.Max(a, b)
	}
	return math.Min(a, b)
}

// oracleComplex rounds at the end only, as Go does with complex64.
func oracleComplex(r rule, get func([]byte) float64, put func([]byte, float64), part int, in, inout []byte) {
	ar, ai, br, bi := get(in), get(in[part:]), get(inout), get(inout[part:])
	if r == ruleSum {
		put(inout, ar+br)
		put(inout[part:], ai+bi)
		return
	}
	rr, ii, ri, ir := float64(ar*br), float64(ai*bi), float64(ar*bi), float64(ai*br) // else they may be fused with the sums
	put(inout, rr-ii)
	put(inout[part:], ri+ir)
}

func oracleInteger(r rule, info *kindInfo, in, inout []byte) {
	var wide [2][8]byte
	copy(wide[0][:], in[:info.size])
	copy(wide[1][:], inout[:info.size])
	a, b := binary.LittleEndian.Uint64(wide[0][:]), binary.LittleEndian.Uint64(wide[1][:])
	unused := 64 - 8*info.size
	less := a < b
	if info.machine <= mInt64 {
		less = int64(a)<<unused < int64(b)<<unused
	}
	var v uint64
	is := func(cond bool) {
		if cond {
			v = 1
		}
	}
	switch r {
	case ruleSum:
		v = a + b
	case ruleProd:
		v = a * b
	case ruleMax:
		if v = a; less {
			v = b
		}
	case ruleMin:
		if v = b; less {
			v = a
		}
	case ruleBand:
		v = a & b
	case ruleBor:
		v = a | b
	case ruleBxor:
		v = a ^ b
	case ruleLand:
		is(a != 0 && b != 0)
	case ruleLor:
		is(a != 0 || b != 0)
	case ruleLxor:
		is((a != 0) != (b != 0))
	}
	binary.LittleEndian.PutUint64(wide[0][:], v)
	copy(inout[:info.size], wide[0][:])
}

func oraclePair(r rule, k Kind, in, inout []byte) {
	info, at := &kinds[k], secondAt(k)
	if r == ruleReplace || r == ruleNoOp {
		oracle(r, info.first, in, inout)
		oracle(r, info.second, in[at:], inout[at:])
		return
	}
	best := bytes.Clone(inout[:info.size])
	if r == ruleMaxloc {
		oracle(ruleMax, info.first, in, best)
	} else {
		oracle(ruleMin, info.first, in, best)
	}
	switch first := kinds[info.first].size; {
	case bytes.Equal(in[:first], inout[:first]):
		oracle(ruleMin, info.second, in[at:], inout[at:])
	case bytes.Equal(best[:first], in[:first]):
		copy(inout[:first], in)
		copy(inout[at:at+kinds[info.second].size], in[at:])
	}
}

func TestAllocs_reduction(t *testing.T) {
	in, inout := mem.BytesOf(make([]uint64, 64)), mem.BytesOf(make([]uint64, 64))
	for _, typ := range predefinedTypes {
		for _, op := range predefinedOps {
			if _, err := op.On(typ); err != nil {
				continue
			}
			n := testing.AllocsPerRun(10, func() {
				r, _ := op.On(typ)
				r.Apply(in, inout, 8)
			})
			if n != 0 {
				t.Errorf("%v on %v: %v allocations, want none", op, typ, n)
			}
		}
	}
}

func TestAllocs_external32(t *testing.T) {
	buf, ext := make([]byte, 16*100), make([]byte, 12*100)
	n := testing.AllocsPerRun(10, func() {
		if _, err := DoubleInt.PackExternal32(ext, buf, 0, 100); err != nil {
			t.Fatal(err)
		}
		if _, err := DoubleInt.UnpackExternal32(buf, 0, 100, ext); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

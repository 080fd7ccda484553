package dtype

import "github.com/xwarp/xwarp/internal/base/mem"

// kernel reduces n elements that are aligned: inout[i] = in[i] op inout[i].
type kernel func(in, inout []byte, n int)

// layout is how the elements of a machine type lie in memory.
type layout struct {
	extent int
	end    int    // bytes of an element without the padding behind it
	align  uint64 // what its kernels need
}

var layouts = [machines]layout{
	mInt8: {1, 1, 1}, mInt16: {2, 2, 2}, mInt32: {4, 4, 4}, mInt64: {8, 8, 8},
	mUint8: {1, 1, 1}, mUint16: {2, 2, 2}, mUint32: {4, 4, 4}, mUint64: {8, 8, 8},
	mFloat32: {4, 4, 4}, mFloat64: {8, 8, 8}, mFloat80: {16, 16, 1},
	mComplex64: {8, 8, 4}, mComplex128: {16, 16, 8}, mComplex160: {32, 32, 1},
	mPairFloat32: {8, 8, 4}, mPairFloat64: {16, 12, 8}, mPairInt16: {8, 8, 4}, mPairInt32: {8, 8, 4},
	mPairInt64: {16, 12, 8}, mPairFloat80: {32, 20, 1}, mPairFloat32s: {8, 8, 4}, mPairFloat64s: {16, 16, 8},
	mWord128: {16, 16, 1}, mWords128: {32, 32, 1},
}

// vectorBlock is how many bytes the loops in vector_amd64.s reduce at a time.
const vectorBlock = 128

// kernels has the kernel of each operation on each machine type, nil where
// there is no such thing.
var kernels = vectorize(scalarKernels())

// scalarKernels are those in Go, of one element after the other.
func scalarKernels() (t [rules][machines]kernel) {
	integer[int8](&t, mInt8)
	integer[int16](&t, mInt16)
	integer[int32](&t, mInt32)
	integer[int64](&t, mInt64)
	integer[uint8](&t, mUint8)
	integer[uint16](&t, mUint16)
	integer[uint32](&t, mUint32)
	integer[uint64](&t, mUint64)
	ordered[float32](&t, mFloat32)
	ordered[float64](&t, mFloat64)
	arithmetics[complex64](&t, mComplex64)
	arithmetics[complex128](&t, mComplex128)
	t[ruleProd][mComplex128] = lift(prodComplex)
	extended(&t)
	pairs[float32, int32](&t, mPairFloat32, 4)
	pairs[float64, int32](&t, mPairFloat64, 8)
	pairs[int16, int32](&t, mPairInt16, 4)
	pairs[int32, int32](&t, mPairInt32, 4)
	pairs[int64, int32](&t, mPairInt64, 8)
	pairs[float32, float32](&t, mPairFloat32s, 4)
	pairs[float64, float64](&t, mPairFloat64s, 8)
	for m := range machines {
		t[ruleReplace][m] = func(in, inout []byte, _ int) { copy(inout, in) }
		t[ruleNoOp][m] = func(_, _ []byte, _ int) {}
	}
	return t
}

// integerType, orderedType and numberType are the types that have the bitwise
// and logical operations, an order, and sums.
type integerType interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint
}

type orderedType interface {
	integerType | ~float32 | ~float64
}

type numberType interface {
	orderedType | ~complex64 | ~complex128
}

func integer[T integerType](t *[rules][machines]kernel, m machine) {
	ordered[T](t, m)
	t[ruleLand][m] = lift(land[T])
	t[ruleLor][m] = lift(lor[T])
	t[ruleLxor][m] = lift(lxor[T])
	t[ruleBand][m] = words(band[uint64], band[uint8])
	t[ruleBor][m] = words(bor[uint64], bor[uint8])
	t[ruleBxor][m] = words(bxor[uint64], bxor[uint8])
}

func ordered[T orderedType](t *[rules][machines]kernel, m machine) {
	arithmetics[T](t, m)
	t[ruleMax][m] = lift(maximum[T])
	t[ruleMin][m] = lift(minimum[T])
}

func arithmetics[T numberType](t *[rules][machines]kernel, m machine) {
	t[ruleSum][m] = lift(sum[T])
	t[ruleProd][m] = lift(prod[T])
}

// lift makes a kernel of a loop over scalars.
func lift[T mem.Scalar](loop func(in, inout []T)) kernel {
	return func(in, inout []byte, _ int) { loop(mem.ScalarsOf[T](in), mem.ScalarsOf[T](inout)) }
}

// words makes a kernel of a loop over words of 64 bits, for which the bytes
// need not be the elements: the rest, and what does not start at a word, goes
// through the loop over elements.
func words[T mem.Scalar](loop func(in, inout []uint64), elements func(in, inout []T)) kernel {
	rest := lift(elements)
	return func(in, inout []byte, n int) {
		if (mem.AddressOf(in)|mem.AddressOf(inout))%8 == 0 {
			whole := len(in) &^ 7
			loop(mem.ScalarsOf[uint64](in[:whole]), mem.ScalarsOf[uint64](inout[:whole]))
			in, inout = in[whole:], inout[whole:]
		}
		rest(in, inout, n)
	}
}

// bounceBytes is how much is moved to aligned memory at a time.
const bounceBytes = 4096

// unaligned reduces elements that are not aligned, by way of memory that is.
func (k kernel) unaligned(in, inout []byte, n int, l *layout) {
	most := min(n, bounceBytes/l.extent)
	half := (most*l.extent + 7) / 8
	scratch := make([]uint64, 2*half)
	for n > 0 {
		part := min(n, most)
		bytes := (part-1)*l.extent + l.end
		a, b := mem.BytesOf(scratch[:half])[:bytes], mem.BytesOf(scratch[half:])[:bytes]
		copy(a, in)
		copy(b, inout)
		k(a, b, part)
		copy(inout, b)
		if n -= part; n > 0 {
			in, inout = in[part*l.extent:], inout[part*l.extent:]
		}
	}
}

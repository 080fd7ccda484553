package dtype

import "github.com/xwarp/xwarp/internal/base/mem"

// The loops of the reductions for those who have slices. They set inout[i] to in[i]
// op inout[i]; in is at least as long as inout.

// SumOf adds.
func SumOf[T numberType](in, inout []T) {
	in = in[:len(inout)]
	if !byKernel(ruleSum, in, inout) {
		sum(in, inout)
	}
}

// ProdOf multiplies.
func ProdOf[T numberType](in, inout []T) {
	in = in[:len(inout)]
	if !byKernel(ruleProd, in, inout) {
		prod(in, inout)
	}
}

// MaxOf takes the larger one.
func MaxOf[T orderedType](in, inout []T) {
	in = in[:len(inout)]
	if !byKernel(ruleMax, in, inout) {
		maximum(in, inout)
	}
}

// MinOf takes the smaller one.
func MinOf[T orderedType](in, inout []T) {
	in = in[:len(inout)]
	if !byKernel(ruleMin, in, inout) {
		minimum(in, inout)
	}
}

// BandOf is the bitwise and.
func BandOf[T integerType](in, inout []T) {
	in = in[:len(inout)]
	if !byKernel(ruleBand, in, inout) {
		band(in, inout)
	}
}

// BorOf is the bitwise or.
func BorOf[T integerType](in, inout []T) {
	in = in[:len(inout)]
	if !byKernel(ruleBor, in, inout) {
		bor(in, inout)
	}
}

// BxorOf is the bitwise exclusive or.
func BxorOf[T integerType](in, inout []T) {
	in = in[:len(inout)]
	if !byKernel(ruleBxor, in, inout) {
		bxor(in, inout)
	}
}

// byKernel has the kernel of the type reduce two slices that are long enough for what a
// processor does to many elements at once, and reports whether they are.
func byKernel[T mem.Scalar](r rule, in, inout []T) bool {
	a, b := mem.BytesOf(in), mem.BytesOf(inout)
	if len(b) < vectorBlock {
		return false
	}
	kernels[r][kinds[Of[T]().kind].machine](a, b, len(inout))
	return true
}

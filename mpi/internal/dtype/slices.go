package dtype

import "github.com/xwarp/xwarp/internal/base/mem"

// The loops of the reductions for callers that have slices. They set inout[i] to in[i]
// op inout[i]; in is at least as long as inout.

// SumOf adds.
func SumOf[T numberType](in, inout []T) { reduceSlices(ruleSum, sum[T], in, inout) }

// ProdOf multiplies.
func ProdOf[T numberType](in, inout []T) { reduceSlices(ruleProd, prod[T], in, inout) }

// MaxOf takes the larger one.
func MaxOf[T orderedType](in, inout []T) { reduceSlices(ruleMax, maximum[T], in, inout) }

// MinOf takes the smaller one.
func MinOf[T orderedType](in, inout []T) { reduceSlices(ruleMin, minimum[T], in, inout) }

// BandOf is the bitwise and.
func BandOf[T integerType](in, inout []T) { reduceSlices(ruleBand, band[T], in, inout) }

// BorOf is the bitwise or.
func BorOf[T integerType](in, inout []T) { reduceSlices(ruleBor, bor[T], in, inout) }

// BxorOf is the bitwise exclusive or.
func BxorOf[T integerType](in, inout []T) { reduceSlices(ruleBxor, bxor[T], in, inout) }

// reduceSlices reduces short slices in the loop, and those that are long enough for what a
// processor does to many elements at once by the kernel of the type.
func reduceSlices[T mem.Scalar](r rule, loop func(in, inout []T), in, inout []T) {
	in = in[:len(inout)]
	a, b := mem.BytesOf(in), mem.BytesOf(inout)
	if len(b) < vectorBlock {
		loop(in, inout)
		return
	}
	kernels[r][kinds[Of[T]().kind].machine](a, b, len(inout))
}

package dtype

// The loops of the reductions for those who have slices. They set inout[i] to in[i]
// op inout[i]; in is at least as long as inout.

// SumOf adds.
func SumOf[T numberType](in, inout []T) { sum(in[:len(inout)], inout) }

// ProdOf multiplies.
func ProdOf[T numberType](in, inout []T) { prod(in[:len(inout)], inout) }

// MaxOf takes the larger one.
func MaxOf[T orderedType](in, inout []T) { maximum(in[:len(inout)], inout) }

// MinOf takes the smaller one.
func MinOf[T orderedType](in, inout []T) { minimum(in[:len(inout)], inout) }

// BandOf is the bitwise and.
func BandOf[T integerType](in, inout []T) { band(in[:len(inout)], inout) }

// BorOf is the bitwise or.
func BorOf[T integerType](in, inout []T) { bor(in[:len(inout)], inout) }

// BxorOf is the bitwise exclusive or.
func BxorOf[T integerType](in, inout []T) { bxor(in[:len(inout)], inout) }

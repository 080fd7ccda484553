package dtype

import "github.com/xwarp/xwarp/internal/base/mem"

// Of returns the predefined type of the elements of a Go slice. int and uint
// have 64 bits.
func Of[T mem.Scalar]() *Type {
	// There is no switch over types that sees through the names that programs
	// give them. What they do tells them apart.
	var zero T
	one := zero + 1
	minusOne := zero - one
	bytes := mem.BytesOf([]T{one})
	size := len(bytes)
	whole := one/(one+one) == zero
	switch {
	case whole && minusOne/(one+one) == zero: // -1/2 is 0, and the largest number halved is not
		return pick(size, Int8, Int16, Int32, Int64)
	case whole:
		return pick(size, Uint8, Uint16, Uint32, Uint64)
	case size == 4:
		return Float
	case size == 16:
		return CDoubleComplex
	case bytes[7] == 0: // the imaginary part of 1
		return CFloatComplex
	}
	return Double
}

func pick(size int, of1, of2, of4, of8 *Type) *Type {
	switch size {
	case 1:
		return of1
	case 2:
		return of2
	case 4:
		return of4
	}
	return of8
}

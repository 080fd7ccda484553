package dtype

import (
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
)

type int32s int32 // programs give types names

// Long and short slices, of which the long ones go through the kernels, have the same answers.
func TestSlices(t *testing.T) {
	allOf[float32](t)
	allOf[float64](t)
	allOf[int8](t)
	allOf[int16](t)
	allOf[int32s](t)
	allOf[int64](t)
	allOf[uint8](t)
	allOf[uint64](t)
	numbersOf[complex64](t)
	numbersOf[complex128](t)
	alikeOf(t, BandOf[int32s], band[int32s])
	alikeOf(t, BorOf[uint16], bor[uint16])
	alikeOf(t, BxorOf[int64], bxor[int64])
}

func allOf[T orderedType](t *testing.T) {
	numbersOf[T](t)
	alikeOf(t, MaxOf[T], maximum[T])
	alikeOf(t, MinOf[T], minimum[T])
}

func numbersOf[T numberType](t *testing.T) {
	alikeOf(t, SumOf[T], sum[T])
	alikeOf(t, ProdOf[T], prod[T])
}

func alikeOf[T mem.Scalar](t *testing.T, by, loop func(in, inout []T)) {
	t.Helper()
	for n := range 3*vectorBlock + 1 {
		in, got := make([]T, n+1), make([]T, n)
		var a, b T
		for i := range n { // small whole numbers: no rounding, which may depend on fusing
			a, b = a+1, b+1
			if i%7 == 0 {
				a = 1
			}
			if i%5 == 0 {
				b = 1
			}
			in[i], got[i] = a, b
		}
		want := slices.Clone(got)
		loop(in[:n], want)
		by(in, got)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %d elements: %v, want %v", fmt.Sprintf("%T", in), n, got, want)
		}
	}
}

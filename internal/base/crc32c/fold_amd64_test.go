package crc32c

import (
	"math/bits"
	"testing"
)

// power returns x^n modulo the polynomial, reflected, as a factor of folds.
func power(n int) uint64 {
	const polynomial = 0x1edc6f41
	r := uint32(1)
	for range n {
		carry := r >> 31
		r = r<<1 ^ polynomial*carry
	}
	return uint64(bits.Reverse32(r)) << 32
}

func TestFolds(t *testing.T) {
	for i, distance := range [...]int{256, 192, 128, 64, 48, 32, 16} {
		want := [2]uint64{power(8*distance + 63), power(8*distance - 1)}
		if folds[i] != want {
			t.Errorf("%d bytes: %#x, want %#x", distance, folds[i], want)
		}
	}
}

// A processor without the instructions takes the other way to the same result.
func TestFoldable(t *testing.T) {
	for n, want := range map[int]int{0: 0, 511: 0, 512: 512, 513: 512, 575: 512, 576: 576, 767: 704, 8192: 8192} {
		if !canFold {
			want = 0
		}
		if got := foldable(n); got != want {
			t.Errorf("%d bytes: %d, want %d", n, got, want)
		}
	}
}

package dgram

import (
	"math"
	"testing"
)

func TestCredit_table(t *testing.T) {
	for code, want := range map[uint8]int{0: 0, 1: 1, 15: 15, 16: 16, 17: 20, 18: 24, 19: 28, 20: 32, 24: 64, 61: 40960, 62: 49152, 63: CreditUnlimited} {
		if got := CreditOf(code); got != want {
			t.Errorf("code %d means %d, want %d", code, got, want)
		}
	}
}

// Codes grow with what they mean, and the code of every number is the largest
// that does not promise more.
func TestCredit_roundsDown(t *testing.T) {
	for code := range uint8(63) {
		if CreditOf(code) >= CreditOf(code+1) {
			t.Errorf("code %d means %d, the next one %d", code, CreditOf(code), CreditOf(code+1))
		}
		if got := CreditCode(CreditOf(code)); got != code {
			t.Errorf("the code of %d is %d, want %d", CreditOf(code), got, code)
		}
	}
	want := uint8(0)
	for n := range 70000 {
		for want < creditMax && CreditOf(want+1) <= n {
			want++
		}
		if got := CreditCode(n); got != want {
			t.Fatalf("the code of %d is %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int]uint8{-1: 0, math.MinInt: 0, math.MaxInt32: creditMax, math.MaxInt - 1: creditMax, CreditUnlimited: creditLimitless} {
		if got := CreditCode(n); got != want {
			t.Errorf("the code of %d is %d, want %d", n, got, want)
		}
	}
}

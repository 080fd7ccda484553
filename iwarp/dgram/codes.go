package dgram

import (
	"math"
	"math/bits"
)

// CreditUnlimited is the number of credits that means "as many as you like".
const CreditUnlimited = math.MaxInt

const (
	creditMax       = 62 // code of the largest number that is a limit
	creditLimitless = 63
)

// CreditOf returns how many Sends the code of a header allows: 0 to 15 stand
// for themselves; from there on a code is a small floating-point number with
// two bits of mantissa, up to 49152; 63 is CreditUnlimited.
func CreditOf(code uint8) int {
	switch {
	case code < 16:
		return int(code)
	case code >= creditLimitless:
		return CreditUnlimited
	}
	return (4 + int(code&3)) << (code>>2 - 2)
}

// CreditCode returns the code of the largest number that is not above n, so
// that no peer is promised what is not there. Below 0 counts as 0.
func CreditCode(n int) uint8 {
	switch {
	case n == CreditUnlimited:
		return creditLimitless
	case n < 16:
		return uint8(max(n, 0))
	}
	exp := bits.Len(uint(n)) - 3 // n>>exp is 4 to 7
	return uint8(min(exp<<2+8+n>>exp-4, creditMax))
}

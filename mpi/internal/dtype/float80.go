package dtype

import (
	"encoding/binary"
	"math/bits"
)

// float80 is a long double of x86-64: the extended precision of the x87, in 10
// of 16 bytes. Go has no such type, so that its sums and products are computed
// here, with the rounding of the x87: to nearest, ties to even.
type float80 struct {
	mant uint64 // with the integer bit, unlike in the other formats
	sexp uint16 // sign and biased exponent
}

const (
	signBit80 = 0x8000
	expMask80 = 0x7fff
	bias80    = 16383
	intBit80  = 1 << 63
)

func load80(b []byte) float80 {
	return float80{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint16(b[8:])}
}

// store leaves the padding as it is.
func (x float80) store(b []byte) {
	binary.LittleEndian.PutUint64(b, x.mant)
	binary.LittleEndian.PutUint16(b[8:], x.sexp)
}

func nan80() float80         { return float80{0xc000000000000000, 0xffff} }
func inf80(s uint16) float80 { return float80{intBit80, s | expMask80} }

func (x float80) sign() uint16 { return x.sexp & signBit80 }

// exp is the exponent; denormal numbers have the one of the smallest normal
// ones.
func (x float80) exp() int { return max(int(x.sexp&expMask80), 1) }

func (x float80) isInf() bool { return x.sexp&expMask80 == expMask80 && x.mant == intBit80 }

// isNaN holds for the encodings that the x87 refuses, too: exponents without
// an integer bit.
func (x float80) isNaN() bool {
	switch e := x.sexp & expMask80; {
	case e == expMask80:
		return x.mant != intBit80
	case e != 0:
		return x.mant&intBit80 == 0
	}
	return false
}

// order is a number that grows with x, for all but NaN.
func (x float80) order() (hi int, lo uint64) {
	hi, lo = int(x.sexp&expMask80), x.mant
	if x.sign() != 0 {
		return -hi - 1, ^lo
	}
	return hi, lo
}

// less orders numbers, with -0 below 0; no NaN is less or more than anything.
func (x float80) less(y float80) bool {
	if x.isNaN() || y.isNaN() {
		return false
	}
	xh, xl := x.order()
	yh, yl := y.order()
	return xh < yh || xh == yh && xl < yl
}

// equal is what == is in C, but for NaN, which are all equal here.
func (x float80) equal(y float80) bool {
	return x == y || x.mant|y.mant == 0 || x.isNaN() && y.isNaN()
}

func (x float80) neg() float80 { return float80{x.mant, x.sexp ^ signBit80} }

func (x float80) max(y float80) float80 {
	if x.isNaN() || y.less(x) {
		return x
	}
	return y
}

func (x float80) min(y float80) float80 {
	if x.isNaN() || x.less(y) {
		return x
	}
	return y
}

func (x float80) add(y float80) float80 {
	switch {
	case x.isNaN() || y.isNaN() || x.isInf() && y.isInf() && x.sexp != y.sexp:
		return nan80()
	case x.isInf():
		return x
	case y.isInf():
		return y
	}
	if x.exp() < y.exp() || x.exp() == y.exp() && x.mant < y.mant {
		x, y = y, x // |x| >= |y|
	}
	e := x.exp()
	hi, lo := x.mant, uint64(0)
	yhi, ylo := shiftRight(y.mant, 0, e-y.exp())
	if x.sign() == y.sign() {
		var carry uint64
		lo, carry = bits.Add64(lo, ylo, 0)
		if hi, carry = bits.Add64(hi, yhi, carry); carry != 0 {
			hi, lo = shiftRight(hi, lo, 1)
			hi |= intBit80
			e++
		}
		return round80(x.sign(), e, hi, lo)
	}
	var borrow uint64
	lo, borrow = bits.Sub64(lo, ylo, 0)
	hi, _ = bits.Sub64(hi, yhi, borrow)
	if hi|lo == 0 {
		return float80{} // of opposite numbers
	}
	return normalize80(x.sign(), e, hi, lo)
}

func (x float80) mul(y float80) float80 {
	sign := x.sign() ^ y.sign()
	switch {
	case x.isNaN() || y.isNaN() || x.isInf() && y.mant == 0 || y.isInf() && x.mant == 0:
		return nan80()
	case x.isInf() || y.isInf():
		return inf80(sign)
	case x.mant == 0 || y.mant == 0:
		return float80{0, sign}
	}
	hi, lo := bits.Mul64(x.mant, y.mant)
	return normalize80(sign, x.exp()+y.exp()-bias80+1, hi, lo)
}

// normalize80 is the number of this sign, exponent and mantissa of 128 bits,
// which is not 0.
func normalize80(sign uint16, e int, hi, lo uint64) float80 {
	if hi == 0 {
		hi, lo, e = lo, 0, e-64
	}
	n := bits.LeadingZeros64(hi)
	hi, lo, e = hi<<n|lo>>(64-n), lo<<n, e-n
	if e < 1 {
		hi, lo = shiftRight(hi, lo, 1-e)
		e = 1
	}
	return round80(sign, e, hi, lo)
}

// round80 rounds a mantissa of 128 bits; its highest bit is 0 only when the
// number is denormal and e is 1.
func round80(sign uint16, e int, hi, lo uint64) float80 {
	if lo > intBit80 || lo == intBit80 && hi&1 != 0 {
		if hi++; hi == 0 {
			hi, e = intBit80, e+1
		}
	}
	switch {
	case e >= expMask80:
		return inf80(sign)
	case hi&intBit80 == 0:
		e = 0
	}
	return float80{hi, sign | uint16(e)}
}

// shiftRight shifts a number of 128 bits. What falls out at the end is kept as
// its lowest bit, so that it still rounds right.
func shiftRight(hi, lo uint64, n int) (uint64, uint64) {
	var lost uint64
	switch {
	case n == 0:
		return hi, lo
	case n < 64:
		lost = lo << (64 - n)
		hi, lo = hi>>n, hi<<(64-n)|lo>>n
	case n < 128:
		lost = lo | hi<<(128-n)
		hi, lo = 0, hi>>(n-64)
	default:
		lost = hi | lo
		hi, lo = 0, 0
	}
	if lost != 0 {
		lo |= 1
	}
	return hi, lo
}

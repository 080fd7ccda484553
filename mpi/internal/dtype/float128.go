package dtype

import "encoding/binary"

// Long doubles have 128 bits in external32, in the binary128 format of IEEE
// 754: sign, 15 bits of exponent with the bias of the x87, and 112 bits of
// mantissa without the integer bit.

// store128 writes x in big-endian order. Every x has its place there.
func (x float80) store128(b []byte) {
	hi, lo := fraction128(x)
	exp := x.sexp & expMask80
	switch {
	case x.isNaN():
		hi, exp = hi|1<<47, expMask80 // stays a NaN whatever its payload is
	case exp == 0 && x.mant&intBit80 != 0:
		exp = 1 // a pseudo-denormal number
	}
	binary.BigEndian.PutUint64(b, uint64(x.sign()|exp)<<48|hi)
	binary.BigEndian.PutUint64(b[8:], lo)
}

// fraction128 is the mantissa of x without the integer bit, as the lower 112
// bits of 128.
func fraction128(x float80) (hi, lo uint64) {
	m := x.mant << 1 // 63 bits, at the top of 64
	return m >> 16, m << 48
}

// load128 reads a binary128 number, rounded to nearest even.
func load128(b []byte) float80 {
	hi, lo := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	sexp := uint16(hi >> 48)
	sign, exp := sexp&signBit80, sexp&expMask80
	mant, rest := hi&(1<<48-1)<<15|lo>>49, lo<<15
	switch {
	case exp == expMask80 && mant|rest == 0:
		return inf80(sign)
	case exp == expMask80:
		return float80{mant | 3<<62, sexp}
	case exp == 0:
		return round80(sign, 1, mant, rest)
	}
	return round80(sign, int(exp), mant|intBit80, rest)
}

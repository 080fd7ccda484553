package dtype

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// big80 is the exact value of a finite x.
func (x float80) big() *big.Float {
	f := new(big.Float).SetPrec(200).SetInt(new(big.Int).SetUint64(x.mant))
	f.SetMantExp(f, x.exp()-bias80-63)
	if x.sign() != 0 {
		f.Neg(f)
	}
	return f
}

// round is the long double nearest to an exact value other than 0.
func roundBig(f *big.Float) float80 {
	const least = -16445 // exponent of the smallest denormal number
	var sign uint16
	if f.Signbit() {
		sign = signBit80
	}
	abs := new(big.Float).SetPrec(f.Prec()).Abs(f)
	unit := max(abs.MantExp(nil)-64, least)
	mant := new(big.Float).SetPrec(f.Prec()).SetMantExp(abs, -unit)
	low, _ := mant.Int(nil)
	rest := new(big.Float).SetPrec(f.Prec()).Sub(mant, new(big.Float).SetInt(low))
	if c := rest.Cmp(big.NewFloat(0.5)); c > 0 || c == 0 && low.Bit(0) == 1 {
		low.Add(low, big.NewInt(1))
	}
	if low.BitLen() > 64 {
		low.Rsh(low, 1)
		unit++
	}
	e := unit + 63 + bias80
	if low.BitLen() < 64 {
		e = 0
	}
	if e >= expMask80 {
		return inf80(sign)
	}
	return float80{low.Uint64(), sign | uint16(e)}
}

func from64(v float64) float80 {
	if v == 0 {
		if math.Signbit(v) {
			return float80{0, signBit80}
		}
		return float80{}
	}
	return roundBig(new(big.Float).SetPrec(200).SetFloat64(v))
}

func oracleSum80(x, y float80) float80 {
	if x.mant == 0 && y.mant == 0 {
		return float80{0, x.sexp & y.sexp}
	}
	// Exact, however far apart they are: adding more than 2^200 apart would
	// need more bits than that.
	f := new(big.Float).SetPrec(40000).Add(x.big(), y.big())
	if f.Sign() == 0 {
		return float80{}
	}
	return roundBig(f)
}

func oracleProd80(x, y float80) float80 {
	if x.mant == 0 || y.mant == 0 {
		return float80{0, x.sign() ^ y.sign()}
	}
	return roundBig(new(big.Float).SetPrec(200).Mul(x.big(), y.big()))
}

func oracle80(r rule, in, inout []byte) {
	x, y := load80(in), load80(inout)
	c := x.big().Cmp(y.big())
	z := y
	switch {
	case r == ruleSum:
		z = oracleSum80(x, y)
	case r == ruleProd:
		z = oracleProd80(x, y)
	case r == ruleMax && c > 0, r == ruleMin && c < 0:
		z = x
	}
	z.store(inout)
}

func oracleComplex160(r rule, in, inout []byte) {
	if r == ruleSum {
		oracle80(r, in, inout)
		oracle80(r, in[16:], inout[16:])
		return
	}
	ar, ai, br, bi := load80(in), load80(in[16:]), load80(inout), load80(inout[16:])
	minus := oracleProd80(ai, bi)
	minus.sexp ^= signBit80
	oracleSum80(oracleProd80(ar, br), minus).store(inout)
	oracleSum80(oracleProd80(ar, bi), oracleProd80(ai, br)).store(inout[16:])
}

// random80 is a finite number: of any size, near another one, or near the ends
// of the range.
func random80(rnd *rand.Rand, near float80) float80 {
	x := float80{rnd.Uint64() | intBit80, uint16(rnd.Uint32())}
	switch rnd.IntN(6) {
	case 0:
		x.sexp = x.sexp&signBit80 | uint16(max(near.exp()+rnd.IntN(140)-70, 1))
	case 1:
		x.sexp = near.sexp ^ signBit80
		x.mant = near.mant + uint64(rnd.IntN(3))
	case 2:
		x.sexp &= signBit80
		x.mant &= intBit80 - 1
	case 3:
		x.sexp = x.sexp&signBit80 | uint16(bias80-rnd.IntN(80))
	case 4:
		x.mant &= ^uint64(0) << rnd.IntN(64)
	}
	if x.sexp&expMask80 == expMask80 {
		x.sexp--
	}
	switch {
	case x.sexp&expMask80 != 0:
		x.mant |= intBit80
	default:
		x.mant &= intBit80 - 1
	}
	return x
}

func TestFloat80_againstExactArithmetic(t *testing.T) {
	rnd := rand.New(rand.NewPCG(80, 1))
	y := from64(1)
	for range 20000 {
		x := random80(rnd, y)
		if got, want := x.add(y), oracleSum80(x, y); got != want {
			t.Fatalf("%x + %x = %x, want %x", x, y, got, want)
		}
		if got, want := x.mul(y), oracleProd80(x, y); got != want {
			t.Fatalf("%x * %x = %x, want %x", x, y, got, want)
		}
		if got, want := x.less(y), x.big().Cmp(y.big()) < 0 || x.mant|y.mant == 0 && x.sexp > y.sexp; got != want {
			t.Fatalf("%x < %x is %v", x, y, got)
		}
		y = x
	}
}

func TestFloat80_special(t *testing.T) {
	one, zero, inf, nan := from64(1), float80{}, inf80(0), nan80()
	unnormal := float80{1, 5}
	for _, c := range []struct {
		name      string
		got, want float80
	}{
		{"inf+1", inf.add(one), inf},
		{"1+inf", one.add(inf), inf},
		{"inf-inf", inf.add(inf.neg()), nan},
		{"-inf-inf", inf.neg().add(inf.neg()), inf.neg()},
		{"inf*-1", inf.mul(one.neg()), inf.neg()},
		{"inf*0", inf.mul(zero), nan},
		{"0*inf", zero.mul(inf), nan},
		{"nan+1", nan.add(one), nan},
		{"1*nan", one.mul(nan), nan},
		{"unnormal+1", unnormal.add(one), nan},
		{"-0+-0", zero.neg().add(zero.neg()), zero.neg()},
		{"-0+0", zero.neg().add(zero), zero},
		{"1-1", one.add(one.neg()), zero},
		{"-1*0", one.neg().mul(zero), zero.neg()},
		{"max(nan,1)", nan.max(one), nan},
		{"max(1,nan)", one.max(nan), nan},
		{"min(1,nan)", one.min(nan), nan},
		{"max(-0,0)", zero.neg().max(zero), zero},
		{"min(0,-0)", zero.min(zero.neg()), zero.neg()},
		{"min(-inf,-1)", inf.neg().min(one.neg()), inf.neg()},
	} {
		if c.got != c.want {
			t.Errorf("%s = %x, want %x", c.name, c.got, c.want)
		}
	}
}

package dtype

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// TestExternal32_vectors has one line per representation; Open MPI gives the
// same but for long doubles and wide characters, which it does not convert.
func TestExternal32_vectors(t *testing.T) {
	longDoubles := make([]byte, 64)
	float80{intBit80, bias80}.store(longDoubles)                       // 1
	float80{0xcccccccccccccccd, 0xbffb}.store(longDoubles[16:])        // -0.1
	float80{1, 0}.store(longDoubles[32:])                              // the smallest of all
	float80{0xc000000000000001, 0x7fff}.store(longDoubles[48:])        // NaN
	doubleInt := append(mem.BytesOf([]float64{2.5}), 9, 0, 0, 0)       // with no padding behind it
	shortInt := append([]byte{255, 255, 77, 77}, 4, 0, 0, 0)           // 77 is padding
	longInt := append(mem.BytesOf([]int64{-1}), 4, 0, 0, 0)            //
	shortsAndDouble := append(mem.BytesOf([]float64{1.5}), 2, 1, 3, 1) // in another order than in memory
	mixed, err := Struct([]int{2, 1}, []int{8, 0}, []*Type{Short, Double})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typ  *Type
		n    int
		mem  []byte
		want string
	}{
		{Byte, 2, []byte{1, 2}, "0102"},
		{Char, 2, []byte("ab"), "6162"},
		{Short, 2, mem.BytesOf([]int16{258, -3}), "0102fffd"},
		{Int, 2, mem.BytesOf([]int32{1, -2}), "00000001fffffffe"},
		{Long, 2, mem.BytesOf([]int64{5, -6}), "00000005fffffffa"},
		{UnsignedLong, 1, mem.BytesOf([]uint64{math.MaxUint32}), "ffffffff"},
		{LongLong, 2, mem.BytesOf([]int64{1, -7}), "0000000000000001fffffffffffffff9"},
		{WChar, 2, mem.BytesOf([]int32{0x41, 0x20ac}), "004120ac"},
		{Float, 2, mem.BytesOf([]float32{3.25, -1e-40}), "40500000800116c2"},
		{Double, 2, mem.BytesOf([]float64{1.5, -0.1}), "3ff8000000000000bfb999999999999a"},
		{LongDouble, 1, longDoubles, "3fff0000000000000000000000000000"},
		{LongDouble, 1, longDoubles[16:], "bffb999999999999999a000000000000"},
		{LongDouble, 1, longDoubles[32:], "00000000000000000002000000000000"},
		{LongDouble, 1, longDoubles[48:], "7fff8000000000000002000000000000"},
		{CFloatComplex, 1, mem.BytesOf([]complex64{1 + 2i}), "3f80000040000000"},
		{CDoubleComplex, 1, mem.BytesOf([]complex128{1 - 2i}), "3ff0000000000000c000000000000000"},
		{CLongDoubleComplex, 1, longDoubles[:32], "3fff0000000000000000000000000000bffb999999999999999a000000000000"},
		{DoubleInt, 1, doubleInt, "400400000000000000000009"},
		{ShortInt, 1, shortInt, "ffff00000004"},
		{LongInt, 1, longInt, "ffffffff00000004"},
		{mixed, 1, shortsAndDouble, "010201033ff8000000000000"},
	} {
		got := make([]byte, len(c.want)/2+1)
		n, err := c.typ.PackExternal32(got, c.mem, 0, c.n)
		size, _ := c.typ.External32Size(c.n)
		if err != nil || n != size || hex.EncodeToString(got[:n]) != c.want {
			t.Errorf("%v: %x, %d bytes of %d, %v, want %s", c.typ, got[:n], n, size, err, c.want)
		}
		back := make([]byte, len(c.mem))
		if n, err := c.typ.UnpackExternal32(back, 0, c.n, got); err != nil || n != size {
			t.Errorf("%v: unpacked %d, %v", c.typ, n, err)
		}
		again := make([]byte, size)
		if _, err := c.typ.PackExternal32(again, back, 0, c.n); err != nil || !bytes.Equal(again, got[:n]) {
			t.Errorf("%v: packed again it is %x, %v, want %x", c.typ, again, err, got[:n])
		}
	}
}

// TestExternal32_roundTrip compares all data of random types after a round trip.
func TestExternal32_roundTrip(t *testing.T) {
	for seed := range 600 {
		g := &generator{rand.New(rand.NewPCG(uint64(seed), 8)), t}
		typ, m := g.nested(g.IntN(4))
		count := g.IntN(3)
		lo, hi, err := typ.Span(count)
		if err != nil {
			t.Fatal(err)
		}
		src, dst := make([]byte, hi-lo), make([]byte, hi-lo)
		for i := range count {
			for _, e := range m.elems {
				small(g, e.kind, src[i*m.extent()+e.at-lo:])
			}
		}
		// Elements that lie on top of each other are a matter of their own.
		if overlaps(m.bytes(count)) {
			continue
		}
		size, err := typ.External32Size(count)
		if err != nil {
			t.Fatal(err)
		}
		ext := make([]byte, size)
		if n, err := typ.PackExternal32(ext, src, -lo, count); n != size || err != nil {
			t.Fatal(n, err)
		}
		if n, err := typ.UnpackExternal32(dst, -lo, count, ext); n != size || err != nil {
			t.Fatal(n, err)
		}
		if !bytes.Equal(src, dst) {
			t.Fatalf("seed %d: a round trip changed %x to %x", seed, src, dst)
		}
	}
}

// small writes a value that external32 can hold.
func small(g *generator, k Kind, b []byte) {
	fill(g.Rand, k, b)
	switch k {
	case kLong, kUnsignedLong:
		clear(b[2:8])
	case kWChar:
		clear(b[2:4])
	}
}

func overlaps(where []int) bool {
	seen := map[int]bool{}
	for _, at := range where {
		if seen[at] {
			return true
		}
		seen[at] = true
	}
	return false
}

func TestExternal32_refuses(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func() error
		want Class
	}{
		{"negative count", func() error { return second(Int.External32Size(-1)) }, InvalidCount},
		{"huge count", func() error { return second(Int.External32Size(1 << 60)) }, InvalidCount},
		{"short target", func() error { return second(Int.PackExternal32(make([]byte, 7), make([]byte, 8), 0, 2)) }, Truncated},
		{"short source", func() error { return second(Int.UnpackExternal32(make([]byte, 8), 0, 2, make([]byte, 7))) }, Truncated},
		{"short buffer", func() error { return second(Int.PackExternal32(make([]byte, 8), make([]byte, 7), 0, 2)) }, InvalidBuffer},
		{"long", func() error { return second(Long.PackExternal32(make([]byte, 4), mem.BytesOf([]int64{1 << 31}), 0, 1)) }, ConversionFailed},
		{"negative long", func() error {
			return second(Long.PackExternal32(make([]byte, 4), mem.BytesOf([]int64{-1<<31 - 1}), 0, 1))
		}, ConversionFailed},
		{"unsigned long", func() error {
			return second(UnsignedLong.PackExternal32(make([]byte, 4), mem.BytesOf([]uint64{1 << 32}), 0, 1))
		}, ConversionFailed},
		{"wide character", func() error {
			return second(WChar.PackExternal32(make([]byte, 2), mem.BytesOf([]int32{0x1f600}), 0, 1))
		}, ConversionFailed},
	} {
		var e *Error
		if err := c.do(); !errors.As(err, &e) || e.Class != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestFloat128_roundTrip converts there and back, and rounds numbers that are
// finer than a long double.
func TestFloat128_roundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(128, 1))
	x := from64(1)
	for range 20000 {
		x = random80(rnd, x)
		var b [16]byte
		x.store128(b[:])
		if y := load128(b[:]); y != x {
			t.Fatalf("%x became %x, by way of %x", x, y, b)
		}
		// Half a unit of the last place and less goes to the nearest even one.
		b[9] |= byte(rnd.Uint32()) & 1
		b[15] = byte(rnd.IntN(2))
		up := b[9]&1 != 0 && (b[15] != 0 || x.mant&1 != 0)
		want := x
		if up {
			if want.mant++; want.mant == 0 {
				want.mant = intBit80
				want.sexp++
			} else if want.mant == intBit80 { // no longer denormal
				want.sexp |= 1
			}
		}
		if want.sexp&expMask80 == expMask80 {
			want = inf80(want.sign())
		}
		if y := load128(b[:]); y != want {
			t.Fatalf("%x rounded to %x, want %x", b, y, want)
		}
	}
	for _, x := range []float80{{}, {0, signBit80}, inf80(0), inf80(signBit80), nan80(), {intBit80, 1}} {
		var b [16]byte
		x.store128(b[:])
		if y := load128(b[:]); y != x {
			t.Errorf("%x became %x", x, y)
		}
	}
	var b [16]byte
	float80{intBit80, 0}.store128(b[:]) // pseudo-denormal
	if y := load128(b[:]); y != (float80{intBit80, 1}) {
		t.Errorf("a pseudo-denormal number became %x", y)
	}
	float80{1, 77}.store128(b[:]) // without integer bit
	if y := load128(b[:]); !y.isNaN() {
		t.Errorf("an invalid number became %x", y)
	}
}

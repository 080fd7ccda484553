package dtype

import "testing"

func TestOf(t *testing.T) {
	type celsius float64
	type flags uint16
	type level int8
	type phase complex64
	for _, c := range []struct{ got, want *Type }{
		{Of[int8](), Int8}, {Of[int16](), Int16}, {Of[int32](), Int32}, {Of[int64](), Int64}, {Of[int](), Int64},
		{Of[uint8](), Uint8}, {Of[uint16](), Uint16}, {Of[uint32](), Uint32}, {Of[uint64](), Uint64}, {Of[uint](), Uint64},
		{Of[float32](), Float}, {Of[float64](), Double}, {Of[complex64](), CFloatComplex}, {Of[complex128](), CDoubleComplex},
		{Of[celsius](), Double}, {Of[flags](), Uint16}, {Of[level](), Int8}, {Of[phase](), CFloatComplex},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

func TestAllocs_of(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Of[float64](); Of[uint16]() }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

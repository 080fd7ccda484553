package dtype

import (
	"math/rand/v2"
	"testing"
)

// script is a source of random numbers that the fuzzer has written, two bytes
// for each; where it ends, others follow.
type script struct {
	bytes []byte
	rest  rand.PCG
}

func (s *script) Uint64() uint64 {
	v := s.rest.Uint64()
	if len(s.bytes) >= 2 {
		v = v>>16 | uint64(s.bytes[0])<<56 | uint64(s.bytes[1])<<48
		s.bytes = s.bytes[2:]
	}
	return v
}

// FuzzModel compares types that the fuzzer composes with their models.
func FuzzModel(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a type of vectors of structures of subarrays"))
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 4096 {
			t.Skip("the rest is never read")
		}
		g := &generator{rand.New(&script{bytes: choices}), t}
		typ, m := g.nested(g.IntN(4))
		if lo, hi, err := typ.Span(4); err == nil && hi-lo > 1<<22 {
			t.Skip("memory of that size takes time only")
		}
		checkModel(g, typ, &m)
	})
}

// FuzzConstruct gives the constructors whatever numbers there are: they refuse,
// or make a type whose bounds and bytes hold together.
func FuzzConstruct(f *testing.F) {
	f.Add(uint8(0), 1, 2, 3, 4)
	f.Add(uint8(7), 3, 2, 3, 1)
	f.Add(uint8(8), 1<<62, -1<<63, 1<<31, -1)
	f.Fuzz(func(t *testing.T, which uint8, a, b, c, d int) {
		if a > 1000 && b > 1000 && which%9 > 5 {
			return // lists of that length take time only
		}
		var typ *Type
		var err error
		old := must(Struct([]int{1, 1}, []int{0, 8}, []*Type{Int, Double}))
		switch which % 9 {
		case 0:
			typ, err = Contiguous(a, old)
		case 1:
			typ, err = Vector(a, b, c, old)
		case 2:
			typ, err = Hvector(a, b, c, old)
		case 3:
			typ, err = Indexed([]int{a, b}, []int{c, d}, old)
		case 4:
			typ, err = Hindexed([]int{a, b}, []int{c, d}, old)
		case 5:
			typ, err = Struct([]int{a, b}, []int{c, d}, []*Type{old, Byte})
		case 6:
			typ, err = Resized(old, a, b)
		case 7:
			typ, err = Subarray([]int{a, b}, []int{c, d}, []int{a - c, 0}, OrderC, old)
		case 8:
			typ, err = Darray(c, d, []int{a, b}, []Distribution{DistributeCyclic, DistributeBlock}, []int{2, DefaultBlock}, []int{c, 1}, OrderFortran, old)
		}
		if err != nil {
			return
		}
		checkAnyType(t, typ, which)
	})
}

// checkAnyType works on types of every size.
func checkAnyType(t *testing.T, typ *Type, which uint8) {
	lo, hi, err := typ.Span(1)
	if err != nil {
		t.Fatal(err)
	}
	if lb, extent := typ.TrueExtent(); lo != lb || hi != lb+extent || typ.Size() < 0 || extent < 0 {
		t.Fatalf("size %d, true lb %d, true extent %d, but it spans %d to %d", typ.Size(), lb, extent, lo, hi)
	}
	n, whole := typ.GetElements(typ.Size())
	if want := len(kindsOf(typ, 1)); !whole || n != want {
		t.Fatalf("%d bytes are %d elements, want %d", typ.Size(), n, want)
	}
	if hi-lo > 1<<20 || typ.Size() == 0 || typ.Size() > 1<<20 {
		return
	}
	c, err := typ.Cursor(make([]byte, hi-lo), -lo, 1)
	if err != nil {
		t.Fatal(err)
	}
	packed := make([]byte, typ.Size())
	for i := range packed {
		packed[i] = byte(i + int(which))
	}
	if n := c.Unpack(packed); n != len(packed) {
		t.Fatalf("unpacked %d of %d bytes", n, len(packed))
	}
	c.Seek(len(packed) - 1)
	var last [2]byte
	if n := c.Pack(last[:]); n != 1 || last[0] != packed[len(packed)-1] {
		t.Fatalf("the last byte is %d, want %d", last[0], packed[len(packed)-1])
	}
}

package mem

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

const all = ^uint64(0)

// number returns 8 bytes that hold v, and a second view of them.
func number(v uint64) (b []byte, w *uint64) {
	s := []uint64{v}
	return BytesOf(s), &s[0]
}

// addBitwise is FetchAdd64 by the letter of RFC 7306: bit for bit, and the
// carry is lost where mask has a 1.
func addBitwise(a, b, mask uint64) (sum uint64) {
	carry := uint64(0)
	for i := range 64 {
		s := a>>i&1 + b>>i&1 + carry
		sum |= s & 1 << i
		carry = s >> 1 &^ (mask >> i & 1)
	}
	return sum
}

func TestFetchAdd64(t *testing.T) {
	for _, c := range []struct{ old, add, mask, want uint64 }{
		{5, 3, 0, 8},
		{all, 1, 0, 0},
		{5, all, 0, 4},                     // minus 1
		{0xffffffff, 1, 1 << 31, 0},        // two halves: the lower wraps
		{1<<32 - 1, 1, 1<<31 | 1<<63, 0},   // likewise
		{all, 1<<32 | 1, 1<<31 | 1<<63, 0}, // both wrap
		{0b1010, 0b0110, all, 0b1100},      // no carry at all
	} {
		b, w := number(c.old)
		if old, ok := FetchAdd64(b, c.add, c.mask); !ok || old != c.old || *w != c.want {
			t.Errorf("%#x + %#x with mask %#x: %#x, was %#x, %v", c.old, c.add, c.mask, *w, old, ok)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10000 {
		a, add, mask := rng.Uint64(), rng.Uint64(), rng.Uint64()&rng.Uint64()&rng.Uint64()
		b, w := number(a)
		if old, _ := FetchAdd64(b, add, mask); old != a || *w != addBitwise(a, add, mask) {
			t.Fatalf("%#x + %#x with mask %#x: %#x, want %#x", a, add, mask, *w, addBitwise(a, add, mask))
		}
	}
}

func TestSwap64(t *testing.T) {
	for _, c := range []struct{ old, swap, mask, want uint64 }{
		{5, 9, all, 9},
		{5, 9, 0, 5},
		{0x1111, 0xffff, 0x0ff0, 0x1ff1},
		{0xffff, 0, 0x0ff0, 0xf00f},
	} {
		b, w := number(c.old)
		if old, ok := Swap64(b, c.swap, c.mask); !ok || old != c.old || *w != c.want {
			t.Errorf("%#x by %#x with mask %#x: %#x, was %#x, %v", c.old, c.swap, c.mask, *w, old, ok)
		}
	}
}

func TestCompareSwap64(t *testing.T) {
	for _, c := range []struct{ old, compare, swap, compareMask, swapMask, want uint64 }{
		{5, 5, 9, all, all, 9},
		{5, 4, 9, all, all, 5},
		{5, 4, 9, 0, all, 9},                           // compares nothing
		{0x1234, 0xff34, 0xabcd, 0xff, 0xff00, 0xab34}, // compares the low byte, swaps the next
		{0x1234, 0xff35, 0xabcd, 0xff, 0xff00, 0x1234},
		{5, 5, 9, all, 0, 5},
	} {
		b, w := number(c.old)
		if old, ok := CompareSwap64(b, c.compare, c.swap, c.compareMask, c.swapMask); !ok || old != c.old || *w != c.want {
			t.Errorf("%+v: %#x, was %#x, %v", c, *w, old, ok)
		}
	}
}

// Memory that is no word is left alone.
func TestAtomics_alignment(t *testing.T) {
	b := BytesOf([]uint64{1, 2, 3})
	before := string(b)
	for from := range 16 {
		for to := from; to <= len(b); to++ {
			word := b[from:to]
			want := from%8 == 0 && to-from == 8
			_, ok1 := FetchAdd64(word, 0, 0)
			_, ok2 := Swap64(word, 77, 0)
			_, ok3 := CompareSwap64(word, 0, 77, 0, 0)
			if ok1 != want || ok2 != want || ok3 != want {
				t.Errorf("bytes %d to %d: %v, %v, %v", from, to, ok1, ok2, ok3)
			}
		}
	}
	if _, ok := FetchAdd64(nil, 1, 0); ok || string(b) != before {
		t.Error("something changed")
	}
}

// Nothing is lost among threads that use all of these and sync/atomic, through
// two mappings of the same memory as two processes have them.
func TestAtomics_amongThreads(t *testing.T) {
	a := newArena(t, Config{Size: 4096, Huge: HugeNever})
	fd, err := unix.Dup(a.FD())
	if err != nil {
		t.Fatal(err)
	}
	other, err := Map(fd, a.Len())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	here, there := a.At(64, 8), other.At(64, 8)
	const each = 20000
	increment := []func(){
		func() { FetchAdd64(here, 1, 0) },
		func() { FetchAdd64(there, 1, 1<<63) },
		func() { atomic.AddUint64(&ScalarsOf[uint64](there)[0], 1) },
		func() {
			for {
				old, _ := CompareSwap64(there, 0, 0, all, 0) // reads
				if was, _ := CompareSwap64(here, old, old+1, all, all); was == old {
					return
				}
			}
		},
	}
	var wg sync.WaitGroup
	for _, inc := range increment {
		wg.Go(func() {
			for range each {
				inc()
			}
		})
	}
	wg.Wait()
	if got, _ := Swap64(here, 0, all); got != uint64(each*len(increment)) {
		t.Errorf("%d of %d increments were counted", got, each*len(increment))
	}
}

func TestAllocs_atomics(t *testing.T) {
	b, _ := number(0)
	if n := testing.AllocsPerRun(100, func() {
		FetchAdd64(b, 1, 1<<31)
		Swap64(b, 1, 1)
		CompareSwap64(b, 1, 2, all, all)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

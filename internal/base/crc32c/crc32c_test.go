package crc32c

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// RFC 3720, appendix B.4.
func TestUpdate_vectors(t *testing.T) {
	ascending := make([]byte, 32)
	for i := range ascending {
		ascending[i] = byte(i)
	}
	for _, c := range []struct {
		data []byte
		want uint32
	}{
		{nil, 0},
		{make([]byte, 32), 0x8a9136aa},
		{bytes.Repeat([]byte{0xff}, 32), 0x62a8ab43},
		{ascending, 0x46dd794e},
		{[]byte("123456789"), 0xe3069283},
	} {
		if got := Update(0, c.data); got != c.want {
			t.Errorf("%s: %#08x, want %#08x", hex.EncodeToString(c.data), got, c.want)
		}
	}
}

// reference is the definition, bit by bit.
func reference(crc uint32, b []byte) uint32 {
	crc = ^crc
	for _, v := range b {
		crc ^= uint32(v)
		for range 8 {
			crc = crc>>1 ^ 0x82f63b78&-(crc&1)
		}
	}
	return ^crc
}

func TestUpdate_everyLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 3000+64)
	for i := range buf {
		buf[i] = byte(r.Uint32())
	}
	for n := range 3000 {
		b := buf[n%64:][:n]
		seed := r.Uint32()
		if got, want := Update(seed, b), reference(seed, b); got != want {
			t.Fatalf("%d bytes, continued from %#x: %#08x, want %#08x", n, seed, got, want)
		}
	}
}

func TestUpdate_inPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, 20_000)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	want := reference(0, b)
	for range 200 {
		var crc uint32
		for rest := b; len(rest) > 0; {
			n := min(1+r.IntN(5000), len(rest))
			crc = Update(crc, rest[:n])
			rest = rest[n:]
		}
		if crc != want {
			t.Fatalf("%#08x, want %#08x", crc, want)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add(uint32(0), bytes.Repeat([]byte("xwarp"), 200))
	f.Add(uint32(0xffffffff), make([]byte, 512))
	f.Fuzz(func(t *testing.T, seed uint32, b []byte) {
		if got, want := Update(seed, b), crc32.Update(seed, castagnoli, b); got != want {
			t.Errorf("%d bytes from %#x: %#08x, want %#08x", len(b), seed, got, want)
		}
	})
}

func TestAllocs_Update(t *testing.T) {
	b := make([]byte, 8192)
	if n := testing.AllocsPerRun(100, func() { Update(0, b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{64, 256, 512, 1456, 4096, 8192} {
		buf := make([]byte, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				Update(0, buf)
			}
		})
		b.Run(fmt.Sprintf("%d/hash", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				crc32.Update(0, castagnoli, buf)
			}
		})
	}
}

package dtype

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Each benchmark runs the best loop that one would write by hand for the very
// same layout, and then the cursor.

func benchCursor(b *testing.B, t *Type, err error, count int, unpacks bool) {
	if err != nil {
		b.Fatal(err)
	}
	_, hi, _ := t.Span(count)
	buf := make([]byte, hi)
	dst := make([]byte, t.Size()*count)
	c, err := t.Cursor(buf, 0, count)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		c.Seek(0)
		if unpacks {
			c.Unpack(dst)
		} else {
			c.Pack(dst)
		}
	}
}

func BenchmarkVector_8(b *testing.B) {
	const blocks, stride = 4096, 4
	b.Run("pack/hand", func(b *testing.B) {
		src, dst := make([]float64, blocks*stride), make([]float64, blocks)
		b.SetBytes(8 * blocks)
		for b.Loop() {
			for i, j := 0, 0; i < len(dst) && j < len(src); i, j = i+1, j+stride {
				dst[i] = src[j]
			}
		}
	})
	t, err := Vector(blocks, 1, stride, Double)
	b.Run("pack/cursor", func(b *testing.B) { benchCursor(b, t, err, 1, false) })
	b.Run("unpack/hand", func(b *testing.B) {
		src, dst := make([]float64, blocks*stride), make([]float64, blocks)
		b.SetBytes(8 * blocks)
		for b.Loop() {
			for i, j := 0, 0; i < len(dst) && j < len(src); i, j = i+1, j+stride {
				src[j] = dst[i]
			}
		}
	})
	b.Run("unpack/cursor", func(b *testing.B) { benchCursor(b, t, err, 1, true) })
}

func BenchmarkVector_4(b *testing.B) {
	const blocks, stride = 4096, 4
	b.Run("pack/hand", func(b *testing.B) {
		src, dst := make([]float32, blocks*stride), make([]float32, blocks)
		b.SetBytes(4 * blocks)
		for b.Loop() {
			for i, j := 0, 0; i < len(dst) && j < len(src); i, j = i+1, j+stride {
				dst[i] = src[j]
			}
		}
	})
	t, err := Vector(blocks, 1, stride, Float)
	b.Run("pack/cursor", func(b *testing.B) { benchCursor(b, t, err, 1, false) })
}

// BenchmarkVector_blocks has longer blocks, as the face of a cube.
func BenchmarkVector_blocks(b *testing.B) {
	for _, n := range []int{2, 3, 8, 64} {
		const bytes = 32768
		blocks := bytes / 8 / n
		b.Run(fmt.Sprint(8*n, "/hand"), func(b *testing.B) {
			src, dst := make([]float64, blocks*n*2), make([]float64, blocks*n)
			b.SetBytes(int64(8 * blocks * n))
			for b.Loop() {
				for i := range blocks {
					copy(dst[i*n:(i+1)*n], src[2*i*n:])
				}
			}
		})
		t, err := Vector(blocks, n, 2*n, Double)
		b.Run(fmt.Sprint(8*n, "/cursor"), func(b *testing.B) { benchCursor(b, t, err, 1, false) })
	}
}

func BenchmarkContiguous(b *testing.B) {
	for _, bytes := range []int{8, 1024, 32768} {
		b.Run(fmt.Sprint(bytes, "/hand"), func(b *testing.B) {
			src, dst := make([]byte, bytes), make([]byte, bytes)
			b.SetBytes(int64(bytes))
			for b.Loop() {
				copy(dst, src)
			}
		})
		t, err := Contiguous(bytes/8, Double)
		b.Run(fmt.Sprint(bytes, "/cursor"), func(b *testing.B) { benchCursor(b, t, err, 1, false) })
	}
}

// BenchmarkStruct packs particles: a position, a charge, a kind of one byte,
// and a neighbour that is not sent.
func BenchmarkStruct(b *testing.B) {
	type particle struct {
		pos    [3]float64
		charge float32
		kind   uint8
		_      int64 // a neighbour
		id     int32
	}
	const particles = 1024
	b.Run("hand", func(b *testing.B) {
		src, dst := make([]particle, particles), make([]byte, particles*33)
		b.SetBytes(int64(len(dst)))
		for b.Loop() {
			at := 0
			for i := range src {
				p := &src[i]
				copy(dst[at:at+24], mem.BytesOf(p.pos[:]))
				binary.LittleEndian.PutUint32(dst[at+24:], uint32(p.charge))
				dst[at+28] = p.kind
				binary.LittleEndian.PutUint32(dst[at+29:], uint32(p.id))
				at += 33
			}
		}
	})
	t, err := Struct([]int{3, 1, 1, 1}, []int{0, 24, 28, 40}, []*Type{Double, Float, Byte, Int})
	b.Run("cursor", func(b *testing.B) { benchCursor(b, t, err, particles, false) })
}

// BenchmarkIndexed has irregular blocks of 8 bytes.
func BenchmarkIndexed(b *testing.B) {
	const blocks = 4096
	displs := make([]int, blocks)
	for i := range displs {
		displs[i] = 2*i + i%2*3
	}
	b.Run("hand", func(b *testing.B) {
		src, dst := make([]float64, 3*blocks), make([]float64, blocks)
		b.SetBytes(8 * blocks)
		for b.Loop() {
			for i, d := range displs {
				dst[i] = src[d]
			}
		}
	})
	t, err := IndexedBlock(1, displs, Double)
	b.Run("cursor", func(b *testing.B) { benchCursor(b, t, err, 1, false) })
}

// BenchmarkSeek goes to random places of a deep type and packs 64 bytes there.
func BenchmarkSeek(b *testing.B) {
	t, err := Struct([]int{1, 1}, []int{0, 8}, []*Type{Int, Double})
	for range 5 {
		if err == nil {
			t, err = Indexed([]int{1, 2, 1}, []int{0, 2, 7}, t)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	_, hi, _ := t.Span(64)
	c, err := t.Cursor(make([]byte, hi), 0, 64)
	if err != nil {
		b.Fatal(err)
	}
	var dst [64]byte
	at := 0
	for b.Loop() {
		at = (at + 12347) % (c.Len() - 64)
		c.Seek(at)
		c.Pack(dst[:])
	}
}

func BenchmarkReduce(b *testing.B) {
	const bytes = 16384
	for _, c := range []struct {
		op  *Op
		typ *Type
	}{
		{Sum, Double}, {Sum, Float}, {Sum, Int}, {Sum, Int8}, {Sum, Short}, {Max, Double}, {Max, Int}, {Prod, DoubleComplex},
		{Band, Byte}, {Land, Int}, {Maxloc, DoubleInt}, {Sum, LongDouble}, {Replace, Int},
	} {
		b.Run(fmt.Sprint(c.op, "/", c.typ), func(b *testing.B) {
			r, err := c.op.On(c.typ)
			if err != nil {
				b.Fatal(err)
			}
			_, extent := c.typ.Extent()
			in, inout := make([]byte, bytes), make([]byte, bytes)
			b.SetBytes(bytes)
			for b.Loop() {
				r.Apply(in, inout, bytes/extent)
			}
		})
	}
	b.Run("hand/float64", func(b *testing.B) {
		in, inout := make([]float64, bytes/8), make([]float64, bytes/8)
		b.SetBytes(bytes)
		for b.Loop() {
			for i, v := range in[:len(inout)] {
				inout[i] += v
			}
		}
	})
}

// BenchmarkConstruct makes an indexed type of irregular blocks.
func BenchmarkConstruct(b *testing.B) {
	const blocks = 10_000
	lens, displs := make([]int, blocks), make([]int, blocks)
	for i := range displs {
		lens[i], displs[i] = 1+i%3, 4*i+i%2
	}
	for b.Loop() {
		if _, err := Indexed(lens, displs, Double); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blocks, "ns/block")
}

// BenchmarkFrames packs a vector of blocks of 8 bytes into frames, and lists
// one of blocks of 64 bytes for a gathering send.
func BenchmarkFrames(b *testing.B) {
	const frame = 1408
	cursor := func(b *testing.B, length int) Cursor {
		t, err := Vector(32768/8/length, length, 4*length, Double)
		if err != nil {
			b.Fatal(err)
		}
		_, hi, _ := t.Span(1)
		c, err := t.Cursor(make([]byte, hi), 0, 1)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(c.Len()))
		return c
	}
	b.Run("pack", func(b *testing.B) {
		c, dst := cursor(b, 1), make([]byte, frame)
		for b.Loop() {
			for c.Seek(0); c.Rest() > 0; {
				c.Pack(dst)
			}
		}
	})
	b.Run("pieces", func(b *testing.B) {
		c, dst := cursor(b, 8), make([]Piece, 32)
		for b.Loop() {
			for c.Seek(0); c.Rest() > 0; {
				c.Pieces(dst, frame)
			}
		}
	})
}

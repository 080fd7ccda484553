package dtype

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkCursor packs, unpacks and lists count elements in pieces of random
// sizes, and compares with the model byte by byte.
func checkCursor(g *generator, typ *Type, m *model, count int) {
	t := g.t
	t.Helper()
	where := m.bytes(count)
	lo, hi := 0, 0
	if len(where) > 0 {
		lo, hi = slices.Min(where), slices.Max(where)+1
	}
	if l, h, err := typ.Span(count); l != lo || h != hi || err != nil {
		t.Fatalf("%d elements span %d to %d (%v), want %d to %d", count, l, h, err, lo, hi)
	}
	margin := g.IntN(5)
	mem := make([]byte, hi-lo+2*margin)
	for i := range mem {
		mem[i] = byte(g.Uint32())
	}
	origin := margin - lo
	want := make([]byte, len(where))
	for i, at := range where {
		want[i] = mem[origin+at]
	}
	c, err := typ.Cursor(mem, origin, count)
	if err != nil {
		t.Fatal(err)
	}
	if c.Len() != len(want) {
		t.Fatalf("the cursor has %d bytes, want %d", c.Len(), len(want))
	}
	chunk := 1 + g.IntN(len(want)+9)
	checkPack(g, c, want, chunk)
	checkUnpack(g, typ, where, lo, hi, count, chunk)
	checkPieces(g, c, want, chunk)
	if at, ok := typ.Contiguous(count); ok {
		if len(want) > 0 && !bytes.Equal(mem[origin+at:origin+at+len(want)], want) {
			t.Fatalf("contiguous at %d, but that is something else", at)
		}
		if b, ok := c.Contiguous(); !ok || !bytes.Equal(b, want) {
			t.Fatalf("the type is contiguous and its cursor is not")
		}
	}
	if len(want) > 0 {
		if _, err := typ.Cursor(mem[:origin+hi-1], origin, count); err == nil {
			t.Fatal("a buffer that is too short by a byte was accepted")
		}
		if _, err := typ.Cursor(mem, -lo-1, count); err == nil {
			t.Fatal("a buffer that starts a byte too late was accepted")
		}
	}
}

func checkPack(g *generator, c Cursor, want []byte, chunk int) {
	g.t.Helper()
	var got []byte
	for c.Rest() > 0 {
		buf := make([]byte, 1+g.IntN(chunk))
		n := c.Pack(buf)
		if n == 0 || n < len(buf) && c.Rest() > 0 {
			g.t.Fatalf("Pack filled %d of %d bytes with %d left", n, len(buf), c.Rest())
		}
		got = append(got, buf[:n]...)
	}
	if !bytes.Equal(got, want) {
		g.t.Fatal("packed in pieces it is something else than the model")
	}
	for range 10 {
		from := g.IntN(len(want) + 1)
		c.Seek(from)
		buf := make([]byte, g.IntN(len(want)-from+1))
		if n := c.Pack(buf); n != len(buf) || c.Pos() != from+n || !bytes.Equal(buf, want[from:from+n]) {
			g.t.Fatalf("packing %d bytes from %d on gave %d and something else", len(buf), from, n)
		}
	}
}

func checkUnpack(g *generator, typ *Type, where []int, lo, hi, count, chunk int) {
	g.t.Helper()
	src := make([]byte, len(where))
	for i := range src {
		src[i] = byte(g.Uint32())
	}
	got, want := make([]byte, hi-lo), make([]byte, hi-lo)
	for i, at := range where { // what is written twice has the later value
		want[at-lo] = src[i]
	}
	c, err := typ.Cursor(got, -lo, count)
	if err != nil {
		g.t.Fatal(err)
	}
	for rest := src; len(rest) > 0; {
		n := min(1+g.IntN(chunk), len(rest))
		if done := c.Unpack(rest[:n]); done != n {
			g.t.Fatalf("Unpack took %d of %d bytes", done, n)
		}
		rest = rest[n:]
	}
	if !bytes.Equal(got, want) {
		g.t.Fatal("unpacked in pieces it is something else than the model")
	}
}

func checkPieces(g *generator, c Cursor, want []byte, chunk int) {
	g.t.Helper()
	var got []byte
	for c.Seek(0); c.Rest() > 0; {
		before, limit := c.Pos(), 1+g.IntN(chunk)
		pieces := make([]Piece, 1+g.IntN(4))
		n := c.Pieces(pieces, limit)
		for i, p := range pieces[:n] {
			if i > 0 && pieces[i-1].At+pieces[i-1].Len == p.At {
				g.t.Fatal("two pieces lie side by side")
			}
			got = append(got, c.mem[p.At:p.At+p.Len]...)
		}
		if moved := c.Pos() - before; moved != len(got)-before || moved == 0 || moved > limit || n < len(pieces) && c.Rest() > 0 && moved != limit {
			g.t.Fatalf("%d pieces of %d, moved by %d of %d", n, len(pieces), moved, limit)
		}
	}
	if !bytes.Equal(got, want) {
		g.t.Fatal("the pieces are something else than the model")
	}
	if at, n := c.Next(10); at != 0 || n != 0 {
		g.t.Fatal("there is a piece behind the end")
	}
}

func TestCursor_refusesWhatDoesNotFit(t *testing.T) {
	_, err := Int.Cursor(make([]byte, 7), 0, 2)
	var e *Error
	if !errors.As(err, &e) || e.Class != InvalidBuffer {
		t.Errorf("two ints in 7 bytes: %v", err)
	}
	if _, err = Int.Cursor(nil, 0, -1); !errors.As(err, &e) || e.Class != InvalidCount {
		t.Errorf("-1 ints: %v", err)
	}
	if _, err = Int.Cursor(nil, 0, 1<<60); !errors.As(err, &e) || e.Class != InvalidCount {
		t.Errorf("2^60 ints: %v", err)
	}
	if _, err = Int.Cursor(make([]byte, 8), 1<<62, 1); !errors.As(err, &e) || e.Class != InvalidBuffer {
		t.Errorf("an int at 2^62: %v", err)
	}
	if _, err = Int.Cursor(nil, 0, 0); err != nil {
		t.Errorf("no ints in nothing: %v", err)
	}
}

// TestCopy_randomTypes copies between types of different shape, by way of
// packing all at once.
func TestCopy_randomTypes(t *testing.T) {
	for seed := range 500 {
		g := &generator{rand.New(rand.NewPCG(uint64(seed), 9)), t}
		cursor := func() (Cursor, []byte, func() Cursor) {
			typ, _ := g.nested(g.IntN(4))
			count := g.IntN(200)
			lo, hi, err := typ.Span(count)
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, hi-lo)
			for i := range buf {
				buf[i] = byte(g.Uint32())
			}
			again := func() Cursor {
				c, err := typ.Cursor(buf, -lo, count)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			return again(), buf, again
		}
		src, _, srcAgain := cursor()
		dst, got, dstAgain := cursor()
		src.Seek(src.Len() / 3)
		want := bytes.Clone(got)
		n := min(src.Rest(), dst.Len())
		packed := make([]byte, n)
		from := srcAgain()
		from.Seek(src.Pos())
		from.Pack(packed)
		if moved := Copy(&dst, &src); moved != n || dst.Pos() != n || src.Pos() != from.Pos() {
			t.Fatalf("seed %d: copied %d bytes, want %d", seed, moved, n)
		}
		have := bytes.Clone(got)
		copy(got, want)
		to := dstAgain()
		to.Unpack(packed)
		if !bytes.Equal(have, got) {
			t.Fatalf("seed %d: the copy is something else", seed)
		}
	}
}

func TestCursor_zeroValue(t *testing.T) {
	var c Cursor
	var b [4]byte
	if c.Pack(b[:]) != 0 || c.Unpack(b[:]) != 0 || c.Rest() != 0 {
		t.Error("the zero Cursor has bytes")
	}
	if b, ok := c.Contiguous(); len(b) != 0 || !ok {
		t.Error("nothing is not contiguous")
	}
}

// TestAllocs_cursor makes and runs cursors over a type that has every form of
// node.
func TestAllocs_cursor(t *testing.T) {
	vector, err := Vector(5, 1, 3, Double)
	if err != nil {
		t.Fatal(err)
	}
	scatter, err := IndexedBlock(1, []int{0, 3, 4, 9}, vector)
	if err != nil {
		t.Fatal(err)
	}
	typ, err := Struct([]int{2, 3, 1}, []int{0, 5000, 3000}, []*Type{scatter, vector, Int})
	if err != nil {
		t.Fatal(err)
	}
	_, hi, err := typ.Span(3)
	if err != nil {
		t.Fatal(err)
	}
	mem, packed := make([]byte, hi), make([]byte, 3*typ.Size())
	var pieces [64]Piece
	n := testing.AllocsPerRun(100, func() {
		c, err := typ.Cursor(mem, 0, 3)
		if err != nil {
			t.Fatal(err)
		}
		for c.Rest() > 0 {
			c.Pack(packed[c.Pos():min(c.Pos()+100, len(packed))])
		}
		c.Seek(17)
		c.Unpack(packed[17:])
		c.Seek(3)
		for c.Rest() > 0 {
			c.Pieces(pieces[:], 500)
		}
		from, to := c, c
		from.Seek(0)
		to.Seek(0)
		Copy(&to, &from)
		c.Seek(100)
		c.Next(8)
		c.Contiguous()
		typ.Contiguous(3)
		typ.GetElements(100)
		typ.GetCount(100)
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

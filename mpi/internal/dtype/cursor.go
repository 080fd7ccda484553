package dtype

// Cursor moves over the packed bytes of count elements of a type in a buffer.
// Copies of it move independently of each other. It allocates nothing; moving
// to any position costs nothing, and going on from there O(depth of the type x
// log of the length of its lists).
//
// The zero value has no bytes.
type Cursor struct {
	nd    *node // the program of one element
	count int   // elements
	step  int   // bytes from one to the next
	base  int   // index in mem of the first byte of the first element
	size  int   // packed bytes of all
	pos   int   // packed bytes behind the cursor
	mem   []byte
	dense bool // all in one piece
}

// Cursor returns a cursor at the start of count elements of t, for a buffer
// whose address is that of mem[origin]: origin is not 0 when the type has
// displacements below 0, or when displacements are addresses (MPI_BOTTOM).
// Everything that the elements touch must be inside mem, else the error is of
// the class InvalidBuffer. The cursor uses mem for as long as it is used.
func (t *Type) Cursor(mem []byte, origin, count int) (Cursor, error) {
	lo, hi, err := t.Span(count)
	if err != nil {
		return Cursor{}, err
	}
	if lo == hi {
		return Cursor{}, nil
	}
	if origin >= limit || origin <= -limit || lo < -origin || hi > len(mem)-origin {
		return Cursor{}, fail(InvalidBuffer, "Cursor", "%d elements of %v touch bytes %d to %d of the buffer, which has bytes %d to %d", count, t, lo, hi-1, -origin, len(mem)-origin-1)
	}
	return t.cursor(mem, origin, count), nil
}

// Layout returns a cursor over count elements of t in memory that another rank has: Next
// and Pieces tell displacements from the address of the first element, and nothing is
// packed or unpacked.
func (t *Type) Layout(count int) (Cursor, error) {
	lo, hi, err := t.Span(count)
	if err != nil || lo == hi {
		return Cursor{}, err
	}
	return t.cursor(nil, 0, count), nil
}

// cursor is for callers that have checked.
func (t *Type) cursor(mem []byte, origin, count int) Cursor {
	if n := t.Flat(count); n > 0 {
		return Cursor{nd: t.prog.nd, count: count, step: t.dense, base: origin, size: n, mem: mem, dense: true}
	}
	c := Cursor{nd: t.prog.nd, count: count, step: t.extent(), base: origin + t.prog.off, size: t.size * count, mem: mem}
	if nd := c.nd; nd.form == formLoop && (count == 1 || c.step == nd.count*nd.step) { // one loop instead of two
		c.nd, c.count, c.step = nd.child, count*nd.count, nd.step
	}
	c.dense = c.nd.form == formBlock && (c.count == 1 || c.step == c.nd.size)
	return c
}

// Len returns the number of packed bytes.
func (c *Cursor) Len() int { return c.size }

// Pos returns how many packed bytes are behind the cursor.
func (c *Cursor) Pos() int { return c.pos }

// Rest returns how many packed bytes are before the cursor.
func (c *Cursor) Rest() int { return c.size - c.pos }

// Seek moves the cursor to a position from 0 to Len.
func (c *Cursor) Seek(pos int) {
	if pos < 0 || pos > c.size {
		panic("dtype: Seek to a position outside of the packed bytes")
	}
	c.pos = pos
}

// Pack copies the next bytes into dst, moves behind them, and returns how many
// there were: len(dst) or what was left. dst must not overlap the buffer.
func (c *Cursor) Pack(dst []byte) int {
	if c.dense {
		n := copy(dst, c.mem[c.base+c.pos:c.base+c.size])
		c.pos += n
		return n
	}
	w := walk{act: pack, mem: c.mem, packed: dst}
	return c.walk(&w, len(dst))
}

// Unpack copies src to where the next bytes belong, moves behind them, and
// returns how many there were: len(src) or what was left. src must not overlap
// the buffer.
func (c *Cursor) Unpack(src []byte) int {
	if c.dense {
		n := copy(c.mem[c.base+c.pos:c.base+c.size], src)
		c.pos += n
		return n
	}
	w := walk{act: unpack, mem: c.mem, packed: src}
	return c.walk(&w, len(src))
}

// Next returns where in mem the next bytes are that lie side by side, at most
// limit of them, and moves behind them. n is 0 at the end.
func (c *Cursor) Next(limit int) (at, n int) {
	var one [1]Piece
	if c.Pieces(one[:], limit) == 0 {
		return 0, 0
	}
	return one[0].At, one[0].Len
}

// Piece is a range of the memory of a cursor.
type Piece struct {
	At, Len int // bytes
}

// Pieces lists where the next bytes are, at most limit of them and in at most
// len(dst) pieces. It moves behind them and returns the number of pieces, which
// is 0 at the end.
func (c *Cursor) Pieces(dst []Piece, limit int) int {
	w := walk{act: list, pieces: dst}
	c.walk(&w, limit)
	return w.n
}

// Contiguous returns the bytes before the cursor if they lie side by side, so
// that they need no packing.
func (c *Cursor) Contiguous() ([]byte, bool) {
	if c.dense {
		return c.mem[c.base+c.pos : c.base+c.size], true
	}
	rest := *c
	at, n := rest.Next(c.size)
	return c.mem[at : at+n], rest.pos == c.size
}

// Copy copies bytes from one cursor to another until one of them is at its end,
// as a message from a rank to itself does, and returns how many. Their buffers
// must not overlap.
func Copy(dst, src *Cursor) int {
	n := min(dst.Rest(), src.Rest())
	switch {
	case src.dense:
		dst.Unpack(src.mem[src.base+src.pos:][:n])
		src.pos += n
	case dst.dense:
		src.Pack(dst.mem[dst.base+dst.pos:][:n])
		dst.pos += n
	default:
		var buf [2048]byte
		for left := n; left > 0; {
			part := src.Pack(buf[:min(left, len(buf))])
			dst.Unpack(buf[:part])
			left -= part
		}
	}
	return n
}

// walk goes on from the cursor's position over at most room bytes, and returns
// how far it came.
func (c *Cursor) walk(w *walk, room int) int {
	w.room = min(room, c.size-c.pos)
	if w.room <= 0 {
		return 0
	}
	w.loop(c.nd, c.count, c.step, c.base, c.pos)
	c.pos += w.done
	return w.done
}
